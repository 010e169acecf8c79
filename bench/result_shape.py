"""Whether a JSON value has the shape of a dataclass: a result file may be damaged or edited by hand."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from typing import Any

LARGEST_INTEGER = 2**53
"""Integers beyond it are not exact in JSON readers that use doubles; no count of ours comes near."""


def shape_problem(value: Any, hint: Any, name: str = "the document") -> str:
    """Returns what about `value` does not fit the type `hint`, or an empty string.

    Args:
        value: a value as `json.loads` returns it.
        hint: a dataclass, `int`, `float` (finite; an int will do), `str`, `bool`, `None`, `Any`, or a list,
            tuple, union or dict of such. The values of a `dict[str, Any]` are free.
        name: where the value stands, for the message.
    """
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _dataclass_problem(value, hint, name)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return ""
    if origin in (types.UnionType, typing.Union):
        problems = [shape_problem(value, option, name) for option in arguments]
        return "" if "" in problems else problems[0]
    if origin is list:
        return _list_problem(value, [arguments[0]] * len(value) if isinstance(value, list) else [], name)
    if origin is tuple:
        return _list_problem(value, list(arguments), name)
    if origin is dict:
        return "" if isinstance(value, dict) else _mismatch(value, "an object", name)
    return _scalar_problem(value, hint, name)


def _scalar_problem(value: Any, hint: Any, name: str) -> str:
    if hint in (None, type(None)):
        return "" if value is None else _mismatch(value, "null", name)
    if hint is bool or hint is str:
        return "" if isinstance(value, hint) else _mismatch(value, hint.__name__, name)
    integer = isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST_INTEGER
    if hint is int:
        return "" if integer else _mismatch(value, "an integer", name)
    if hint is float:
        number = integer or (isinstance(value, float) and math.isfinite(value))
        return "" if number else _mismatch(value, "a finite number", name)
    raise TypeError(f"no rule for {hint!r}")


def _dataclass_problem(value: Any, hint: type, name: str) -> str:
    if not isinstance(value, dict):
        return _mismatch(value, "an object", name)
    hints = typing.get_type_hints(hint)
    unknown = sorted(set(value) - {field.name for field in dataclasses.fields(hint)})
    if unknown:
        return f"{name} has the unknown key {unknown[0]!r}"
    for field in dataclasses.fields(hint):
        if field.name not in value:
            return f"{name} lacks {field.name!r}"
        problem = shape_problem(value[field.name], hints[field.name], f"{name}.{field.name}")
        if problem:
            return problem
    return ""


def _list_problem(value: Any, hints: list[Any], name: str) -> str:
    if not isinstance(value, list | tuple) or len(value) != len(hints):
        return _mismatch(value, f"a list of {len(hints)}" if hints else "a list", name)
    for index, (item, hint) in enumerate(zip(value, hints, strict=True)):
        problem = shape_problem(item, hint, f"{name}[{index}]")
        if problem:
            return problem
    return ""


def _mismatch(value: Any, expected: str, name: str) -> str:
    shown = repr(value)
    return f"{name} is {shown if len(shown) <= 60 else shown[:57] + '...'}, but should be {expected}"
