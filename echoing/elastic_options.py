"""The options of the elastic echo factor."""

from __future__ import annotations

from dataclasses import dataclass

from echoing.checks import check_integer, check_number
from echoing.echo_factor import MAX_FACTOR


@dataclass(frozen=True)
class ElasticOptions:
    """Options of the elastic factor.

    Attributes:
        max_factor: largest factor, at most `MAX_FACTOR`.
        min_factor: smallest factor, >= 1.
        initial_factor: the factor to start from; None starts from the smallest.
        target_waiting: share of the time that the device may wait, above 0 and at most 0.5.
        window_steps: steps over which waiting is averaged; bursts shorter than this average out.
        settle_steps: steps that a new factor needs to reach the device: the batches buffered behind the echo
            (prefetch 2, infeed queue 2) and those in work. The factor never changes within them.
    """

    max_factor: float
    min_factor: float = 1.0
    initial_factor: float | None = None
    target_waiting: float = 0.01
    window_steps: int = 8
    settle_steps: int = 6

    def __post_init__(self) -> None:
        """Checks the options.

        Raises:
            OptionError: a value is not allowed.
        """
        check_number("min_echo_factor", self.min_factor, minimum=1, maximum=MAX_FACTOR)
        check_number("max_echo_factor", self.max_factor, minimum=self.min_factor, maximum=MAX_FACTOR)
        if self.initial_factor is not None:
            check_number("initial_echo_factor", self.initial_factor, self.min_factor, self.max_factor)
        check_number("target_waiting", self.target_waiting, 0, 0.5, exclusive_minimum=True)
        check_integer("window_steps", self.window_steps, minimum=1)
        check_integer("settle_steps", self.settle_steps, minimum=0)
