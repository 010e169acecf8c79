"""How figures are written in every report: one table from a figure's unit to its formatter."""

from __future__ import annotations

import math
from collections.abc import Callable

NOT_AVAILABLE = "n/a"
"""Stands for whatever could not be measured: never 0, inf or NaN."""

SIGNIFICANT_DIGITS = 3
"""Timings of a shared machine do not repeat to more digits than these."""


def format_value(value: float | None, unit: str) -> str:
    """Returns `value` for people to read, `n/a` for None and for what is not finite.

    Args:
        value: the figure, in the base unit that its row of `FORMATTERS` names.
        unit: a key of `FORMATTERS`.

    Raises:
        KeyError: no such unit.
    """
    formatter = FORMATTERS[unit]
    if value is None or not math.isfinite(value):
        return NOT_AVAILABLE
    return formatter(value)


def printable(text: str) -> str:
    r"""Returns `text` with control characters and lone surrogates shown as escapes (`\x1b`).

    File names and damaged result files may hold them; a terminal would obey them, UTF-8 cannot hold them.
    """
    return "".join(
        char if char.isprintable() or char in "\n\t " else char.encode("unicode_escape").decode("ascii")
        for char in text
    )


def plural(count: int, noun: str) -> str:
    """Returns a count with its noun: `1 step`, `2,000 steps`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _significant(value: float) -> str:
    """Writes three significant digits, whole numbers in full, thousands with commas."""
    if value == 0:
        return "0"
    # The exponent of the rounded value, so that 9.999 counts as 10.0 and not as 10.00.
    exponent = int(f"{value:.{SIGNIFICANT_DIGITS - 1}e}".split("e")[1])
    if exponent < -9:
        return f"{value:.{SIGNIFICANT_DIGITS - 1}e}"
    return f"{value:,.{max(0, SIGNIFICANT_DIGITS - 1 - exponent)}f}"


def _seconds(value: float) -> str:
    # Each limit lies where the smaller unit would round up to a full larger one.
    size = abs(value)
    if size == 0:
        return "0 s"
    if size < 0.9995e-3:
        return f"{_significant(value * 1e6)} µs"
    if size < 0.9995:
        return f"{_significant(value * 1e3)} ms"
    if size < 59.95:
        return f"{_significant(value)} s"
    total = round(size)
    sign = "-" if value < 0 else ""
    if total < 3600:
        return f"{sign}{total // 60} min {total % 60:02d} s"
    return f"{sign}{total // 3600:,} h {total % 3600 // 60:02d} min"


def _bytes(value: float) -> str:
    # Decimal prefixes, as storage and networks are sold and as the reference's "110 KB" is meant.
    size, prefixes = float(value), ["B", "kB", "MB", "GB", "TB", "PB"]
    while abs(size) >= 999.5 and len(prefixes) > 1:
        size /= 1000
        prefixes.pop(0)
    number = f"{size:.0f}" if prefixes[0] == "B" else _significant(size)
    return f"{number} {prefixes[0]}"


def _percent(value: float) -> str:
    percent = value * 100
    if 0 < abs(percent) < 0.1:
        return "< 0.1 %" if percent > 0 else "> -0.1 %"
    if 99.9 < percent < 100:
        return "> 99.9 %"  # 100 % would claim that nothing was lost
    return f"{percent:.1f} %"


FORMATTERS: dict[str, Callable[[float], str]] = {
    "seconds": _seconds,  # seconds; written in the prefix that fits
    "milliseconds": lambda value: f"{_significant(value)} ms",  # milliseconds
    "examples/s": lambda value: f"{_significant(value)}/s",  # examples per second
    "bytes": _bytes,  # bytes
    "percent": _percent,  # a fraction: 1.0 is 100 %
    "signed percent": lambda value: f"{value * 100:+.1f} %",  # a fraction
    "count": lambda value: f"{value:,.0f}",  # a whole number
    "ratio": lambda value: f"{_significant(value)}×",  # a fraction of two like figures
    "number": _significant,  # anything without a unit, such as a loss
}
"""Unit of a figure (in the comment: what the value passed counts in) to its formatter."""
