"""Checks of option values on construction: each states the rule and the value received."""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection

from echoing.errors import OptionError


def check_integer(
    name: str, value: object, minimum: int, maximum: int | None = None, advice: str = ""
) -> int:
    """Returns `value` as an int.

    Args:
        name: the option's name, for the message.
        value: the value received. A bool is not an integer here.
        minimum: smallest value allowed.
        maximum: largest value allowed, or None.
        advice: what to do, for the message.

    Raises:
        OptionError: the value is no integer or out of range.
    """
    allowed = f"an integer >= {minimum}" if maximum is None else f"an integer from {minimum} to {maximum}"
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        raise OptionError(name, value, allowed, advice)
    number = int(value)
    if number < minimum or (maximum is not None and number > maximum):
        raise OptionError(name, value, allowed, advice)
    return number


def check_number(
    name: str,
    value: object,
    minimum: float,
    maximum: float | None = None,
    exclusive_minimum: bool = False,
    advice: str = "",
) -> float:
    """Returns `value` as a finite float.

    Args:
        name: the option's name, for the message.
        value: the value received. NaN and infinities are never allowed.
        minimum: smallest value allowed.
        maximum: largest value allowed, or None.
        exclusive_minimum: whether `minimum` itself is refused.
        advice: what to do, for the message.

    Raises:
        OptionError: the value is no finite number or out of range.
    """
    relation = ">" if exclusive_minimum else ">="
    allowed = f"a finite number {relation} {minimum:g}"
    if maximum is not None:
        allowed += f" and <= {maximum:g}"
    if not isinstance(value, numbers.Real) or isinstance(value, bool) or not math.isfinite(value):
        raise OptionError(name, value, allowed, advice)
    number = float(value)
    below = number <= minimum if exclusive_minimum else number < minimum
    if below or (maximum is not None and number > maximum):
        raise OptionError(name, value, allowed, advice)
    return number


def check_choice(name: str, value: object, choices: Collection[str], advice: str = "") -> str:
    """Returns `value` if it is one of `choices`.

    Raises:
        OptionError: it is not; the message lists the choices.
    """
    if not isinstance(value, str) or value not in choices:
        raise OptionError(name, value, f"one of {', '.join(choices)}", advice)
    return value
