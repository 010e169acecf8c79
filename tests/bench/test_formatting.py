import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.formatting import FORMATTERS, format_value, plural, printable


@pytest.mark.parametrize("unit", FORMATTERS)
@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf])
def test_what_could_not_be_measured_is_not_available_in_every_unit(unit, value):
    assert format_value(value, unit) == "n/a"


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (0, "seconds", "0 s"),
        (0.000_045, "seconds", "45.0 µs"),
        (0.815, "seconds", "815 ms"),
        (0.999_4, "seconds", "999 ms"),
        (0.999_6, "seconds", "1.00 s"),
        (9.999, "seconds", "10.0 s"),
        (59.94, "seconds", "59.9 s"),
        (59.96, "seconds", "1 min 00 s"),
        (3599.6, "seconds", "1 h 00 min"),
        (7322, "seconds", "2 h 02 min"),
        (-0.5, "seconds", "-500 ms"),
        (815, "milliseconds", "815 ms"),
        (1.5, "milliseconds", "1.50 ms"),
        (1256.4, "examples/s", "1,256/s"),
        (99.96, "examples/s", "100/s"),
        (9.1, "examples/s", "9.10/s"),
        (0, "examples/s", "0/s"),
        (0, "bytes", "0 B"),
        (999, "bytes", "999 B"),
        (999_600, "bytes", "1.00 MB"),
        (110_000, "bytes", "110 kB"),
        (8_000_000_000, "bytes", "8.00 GB"),
        (0.52, "percent", "52.0 %"),
        (1.0, "percent", "100.0 %"),
        (0.99996, "percent", "> 99.9 %"),
        (0.0002, "percent", "< 0.1 %"),
        (0, "percent", "0.0 %"),
        (0.05, "signed percent", "+5.0 %"),
        (-0.312, "signed percent", "-31.2 %"),
        (1234567, "count", "1,234,567"),
        (1.94, "ratio", "1.94×"),
        (0.375, "ratio", "0.375×"),
        (6.9087, "number", "6.91"),
        (1e-12, "number", "1.00e-12"),
    ],
)
def test_value_is_written_in_its_unit(value, unit, expected):
    assert format_value(value, unit) == expected


def test_unknown_unit_is_refused():
    with pytest.raises(KeyError):
        format_value(1.0, "furlongs")


@given(st.floats(1e-6, 1e7))
def test_number_read_back_lies_within_half_a_unit_of_the_third_digit(value):
    written = float(format_value(value, "number").replace(",", ""))
    assert abs(written - value) <= 0.5000001 * 10 ** (math.floor(math.log10(value)) - 2) + 1e-15


@given(st.floats(allow_nan=True, allow_infinity=True) | st.integers(-(2**53), 2**53))
def test_every_number_can_be_written_in_every_unit(value):
    for unit in FORMATTERS:
        assert format_value(value, unit)


@given(st.text())
def test_printable_text_has_no_control_character_and_fits_utf8(text):
    shown = printable(text)
    shown.encode("utf-8")
    assert all(char.isprintable() or char in "\n\t" for char in shown)


def test_printable_shows_escapes_of_terminal_codes_and_surrogates():
    assert printable("a\x1b[31mb\udcffc é") == "a\\x1b[31mb\\udcffc é"


def test_plural_counts():
    assert [plural(0, "step"), plural(1, "step"), plural(2000, "step")] == [
        "0 steps",
        "1 step",
        "2,000 steps",
    ]
