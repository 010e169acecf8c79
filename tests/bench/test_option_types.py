from fractions import Fraction

import click
import pytest

from bench.option_types import ECHO_FACTOR, INSERT_POINT, NON_EMPTY, POSITIVE_FLOAT


def convert(kind, value):
    return kind.convert(value, None, None)


@pytest.mark.parametrize(
    "text, value",
    [("1", Fraction(1)), ("2", Fraction(2)), ("1.5", Fraction(3, 2)), ("7.1", Fraction(71, 10))],
)
def test_an_echo_factor_is_exact(text, value):
    assert convert(ECHO_FACTOR, text).value == value


def test_a_default_that_is_a_number_is_an_echo_factor():
    assert convert(ECHO_FACTOR, 1).is_one


@pytest.mark.parametrize("text", ["two", "", "0.5", "0", "-2", "nan", "inf", "-inf", "1e7", "1,5"])
def test_what_is_no_echo_factor_is_refused_with_the_value_and_the_rule(text):
    with pytest.raises(click.BadParameter) as refused:
        convert(ECHO_FACTOR, text)
    assert repr(text) in refused.value.message
    assert "from 1 to" in refused.value.message


@pytest.mark.parametrize(
    "text, canonical",
    [
        ("after_read", "after_read"),
        ("before_decode", "after_read"),
        ("after_decode", "after_decode"),
        ("before_augment", "after_decode"),
        ("after_augment", "after_augment"),
        ("before_batch", "after_augment"),
        ("after_batch", "after_batch"),
        ("before_transfer", "after_batch"),
    ],
)
def test_an_insertion_point_in_either_spelling_gets_its_canonical_name(text, canonical):
    assert convert(INSERT_POINT, text) == canonical


@pytest.mark.parametrize("text", ["after_lunch", "", "AFTER READ"])
def test_an_unknown_insertion_point_is_refused_with_the_choices(text):
    with pytest.raises(click.BadParameter) as refused:
        convert(INSERT_POINT, text)
    assert repr(text) in refused.value.message
    for point in ("after_read", "after_decode", "after_augment", "after_batch", "before_augment"):
        assert point in refused.value.message


@pytest.mark.parametrize("text", ["", " ", "\t"])
def test_empty_text_is_refused_with_the_likely_cause(text):
    with pytest.raises(click.BadParameter, match=r"empty.*shell variable"):
        convert(NON_EMPTY, text)


def test_other_text_is_kept_as_it_is():
    assert convert(NON_EMPTY, " a [b]*") == " a [b]*"


@pytest.mark.parametrize("text, number", [("1", 1.0), ("0.25", 0.25), ("1e-3", 0.001)])
def test_a_positive_number_is_taken(text, number):
    assert convert(POSITIVE_FLOAT, text) == number


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "-inf", "ten", "", "1s"])
def test_what_is_no_positive_number_is_refused_with_the_value(text):
    with pytest.raises(click.BadParameter) as refused:
        convert(POSITIVE_FLOAT, text)
    assert repr(text) in refused.value.message
    assert "above 0" in refused.value.message
