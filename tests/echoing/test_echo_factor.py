"""The echo factor as an exact number."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoing.echo_factor import EchoFactor
from echoing.errors import OptionError


@pytest.mark.parametrize(
    ("given_factor", "exact"),
    [
        (1, Fraction(1)),
        (2, Fraction(2)),
        (1.5, Fraction(3, 2)),
        (7.1, Fraction(71, 10)),
        ("2.25", Fraction(9, 4)),
        (Decimal("1.1"), Fraction(11, 10)),
        (Fraction(4, 3), Fraction(4, 3)),
        (4 / 3, Fraction(4, 3)),
    ],
)
def test_factor_counts_as_the_decimal_it_prints_as(given_factor, exact):
    assert EchoFactor.parse(given_factor).value == exact


@pytest.mark.parametrize(
    "value", [0, 0.99, -1, math.nan, math.inf, -math.inf, "nan", "two", "", None, True, 10**6 + 1, 1e300]
)
def test_factor_below_one_or_no_number_is_refused(value):
    with pytest.raises(OptionError, match=r"echo_factor is .*from 1 to 1000000"):
        EchoFactor.parse(value)


@given(
    st.integers(10, 99_999).map(lambda tenths: Decimal(tenths) / 10),
    st.integers(0, 10**6),
)
def test_outputs_are_the_floor_of_the_exact_product(factor, inputs):
    expected = int(inputs * factor)  # Decimal arithmetic, exact for these digits
    assert EchoFactor.parse(float(factor)).outputs_of(inputs) == expected


@given(st.integers(100, 999).map(lambda hundredths: Decimal(hundredths) / 100), st.integers(0, 500))
def test_every_output_belongs_to_the_element_that_a_stream_written_out_says(factor, output):
    uses = [int((n + 1) * factor) - int(n * factor) for n in range(output + 2)]
    stream = [n for n, count in enumerate(uses) for _ in range(count)]
    assert EchoFactor.parse(factor).element_of(output) == stream[output]


@pytest.mark.parametrize(
    ("batch", "factor", "distinct"),
    [
        (8, 4, 2.0),  # two whole groups
        (10, 4, 3.0),  # 4 + 4 + 2, then 2 + 4 + 4
        (3, 2, 2.0),  # 2 + 1, then 1 + 2
        (4, 8, 1.0),
        (5, 1, 5.0),
        (3, 1.5, 2.0),  # uses 1, 2, 1, 2, ...
    ],
)
def test_distinct_elements_of_an_unshuffled_batch(batch, factor, distinct):
    assert EchoFactor.parse(factor).distinct_in_batch(batch) == distinct


@given(st.integers(10, 99).map(lambda tenths: tenths / 10), st.integers(1, 12))
def test_distinct_elements_agree_with_a_stream_written_out(factor, batch):
    exact = EchoFactor.parse(factor)
    stream = [n for n in range(1300) for _ in range(exact.outputs_of(n + 1) - exact.outputs_of(n))]
    counts = [len(set(stream[first : first + batch])) for first in range(0, 100 * batch, batch)]
    assert exact.distinct_in_batch(batch) == sum(counts) / 100


def test_string_form_is_a_short_decimal():
    assert str(EchoFactor.parse(2.0)) == "2"
    assert str(EchoFactor.parse(1.5)) == "1.5"
