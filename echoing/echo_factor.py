"""The echo factor: how often each upstream element is used, as an exact rational number."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from echoing.errors import OptionError

MAX_DENOMINATOR = 10**9
"""Fractions are held to nine decimals, so that every product in `repeats_of` fits a signed 64-bit integer."""

MAX_FACTOR = 10**6
"""More uses than this of one element are taken for a slip of the keyboard."""


@dataclass(frozen=True)
class EchoFactor:
    """How often each upstream element is used, e >= 1.

    A float counts as the decimal that it prints as: 7.1 is 71/10, not the binary number next to it, so that
    n elements give exactly floor(7.1 n) uses.

    Attributes:
        value: the exact factor.
    """

    value: Fraction

    @classmethod
    def parse(cls, factor: object) -> EchoFactor:
        """Returns the factor that `factor` denotes.

        Args:
            factor: an int, float, `Fraction`, `Decimal`, a string of a decimal number, or an `EchoFactor`.

        Raises:
            OptionError: it is no number, NaN, infinite, below 1 or above `MAX_FACTOR`.
        """
        if isinstance(factor, EchoFactor):
            return factor
        advice = "1 means no echo."
        allowed = f"a number from 1 to {MAX_FACTOR}"
        if isinstance(factor, bool) or not isinstance(factor, numbers.Real | Decimal | str):
            raise OptionError("echo_factor", factor, allowed, advice)
        try:
            if isinstance(factor, numbers.Rational):
                exact = Fraction(int(factor.numerator), int(factor.denominator))
            elif isinstance(factor, str):
                exact = Fraction(Decimal(factor.strip()))
            else:
                exact = Fraction(Decimal(str(factor)))
        except (ArithmeticError, ValueError, OverflowError):
            raise OptionError("echo_factor", factor, allowed, advice) from None
        if not 1 <= exact <= MAX_FACTOR:
            raise OptionError("echo_factor", factor, allowed, advice)
        return cls(exact.limit_denominator(MAX_DENOMINATOR))

    @property
    def is_one(self) -> bool:
        """Whether there is no echo."""
        return self.value == 1

    @property
    def is_integer(self) -> bool:
        """Whether every element is used equally often."""
        return self.value.denominator == 1

    @property
    def whole(self) -> int:
        """floor(e): the least number of uses of one element."""
        return math.floor(self.value)

    @property
    def remainder(self) -> Fraction:
        """What e has above its whole number."""
        return self.value - self.whole

    def outputs_of(self, inputs: int) -> int:
        """Returns the number of elements that `inputs` elements become: floor(inputs e)."""
        return math.floor(inputs * self.value)

    def element_of(self, output: int) -> int:
        """Returns which input element the output of this number is a use of: ceil((output + 1) / e) - 1."""
        return math.ceil((output + 1) / self.value) - 1

    def distinct_in_batch(self, batch_size: int, batches: int = 100) -> float:
        """Returns how many different elements a batch holds on average without a shuffle after the echo.

        Batches begin anywhere within the uses of an element.

        Args:
            batch_size: elements a batch.
            batches: how many batches, from the first one on, the mean is taken over.
        """
        firsts = range(0, batches * batch_size, batch_size)
        distinct = sum(
            self.element_of(first + batch_size - 1) - self.element_of(first) + 1 for first in firsts
        )
        return distinct / batches

    def __float__(self) -> float:
        """Returns the factor as a float."""
        return float(self.value)

    def __str__(self) -> str:
        """Returns the factor as a short decimal."""
        return f"{float(self.value):.10g}"
