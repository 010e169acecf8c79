"""Types of command line options whose rule lives elsewhere, so that a slip is a usage error at once."""

from __future__ import annotations

import math
from typing import Any

import click

from echoing.echo_factor import EchoFactor
from echoing.errors import OptionError
from echoing.insertion_point import InsertionPoint
from pipeline.config import ELASTIC


class EchoFactorType(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.2 on
    """An echo factor: a number >= 1, or `elastic`."""

    name = "number|elastic"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> EchoFactor | str:
        """Returns the factor, or fails with the rule."""
        if value == ELASTIC:
            return ELASTIC
        try:
            return EchoFactor.parse(value)
        except OptionError as error:
            self.fail(str(error), param, ctx)


class InsertPointType(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.2 on
    """The canonical name of an insertion point; either spelling is accepted."""

    name = "point"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Returns the canonical name, or fails with the choices."""
        try:
            return InsertionPoint.parse(value).value
        except OptionError as error:
            self.fail(str(error), param, ctx)


class NonEmptyType(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.2 on
    """Text with at least one character: an unset shell variable is caught here."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Returns the text, or fails if it is empty."""
        if not str(value).strip():
            self.fail(f"{value!r} is empty. Is a shell variable unset, or a blank after the '='?", param, ctx)
        return str(value)


class PositiveFloatType(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.2 on
    """A finite number above zero."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Returns the number, or fails with the rule."""
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not (math.isfinite(number) and number > 0):
            self.fail(f"{value!r} is not a finite number above 0.", param, ctx)
        return number


ECHO_FACTOR = EchoFactorType()
INSERT_POINT = InsertPointType()
NON_EMPTY = NonEmptyType()
POSITIVE_FLOAT = PositiveFloatType()
