"""Checks of option values."""

from __future__ import annotations

import math

import numpy as np
import pytest

from echoing.checks import check_choice, check_integer, check_number
from echoing.errors import OptionError


@pytest.mark.parametrize("value", [1, 7, np.int64(3)])
def test_integer_in_range_is_returned_as_int(value):
    result = check_integer("steps", value, minimum=1)
    assert result == value
    assert type(result) is int


@pytest.mark.parametrize("value", [0, -1, 1.0, "2", None, True])
def test_integer_out_of_range_or_of_another_type_is_refused(value):
    with pytest.raises(OptionError, match=r"steps is .*an integer >= 1"):
        check_integer("steps", value, minimum=1)


def test_integer_above_maximum_is_refused_with_both_bounds():
    with pytest.raises(OptionError, match="from 1 to 3"):
        check_integer("steps", 4, minimum=1, maximum=3)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "1", None, True])
def test_number_that_is_not_finite_is_refused(value):
    with pytest.raises(OptionError, match="a finite number >= 0"):
        check_number("seconds", value, minimum=0)


def test_number_at_an_exclusive_minimum_is_refused():
    assert check_number("seconds", 0.0, minimum=0) == 0.0
    with pytest.raises(OptionError, match="> 0"):
        check_number("seconds", 0.0, minimum=0, exclusive_minimum=True)


def test_unknown_choice_is_refused_with_the_choices():
    assert check_choice("dtype", "float32", ("float32", "bfloat16")) == "float32"
    with pytest.raises(OptionError, match="one of float32, bfloat16"):
        check_choice("dtype", "float64", ("float32", "bfloat16"))
