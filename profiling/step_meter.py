"""Adds up steps: exact counts over all of them, rates over those after the warm-up."""

from __future__ import annotations

from dataclasses import dataclass

from echoing.checks import check_integer, check_number


@dataclass(frozen=True)
class WarmUp:
    """How long the rates leave out. The first step never counts: it holds compilation and empty buffers.

    Attributes:
        steps: steps left out, >= 1.
        seconds: time left out since the start; whichever of the two lasts longer decides.
    """

    steps: int = 1
    seconds: float = 0.0

    def __post_init__(self) -> None:
        """Checks the options.

        Raises:
            OptionError: less than one step or negative seconds.
        """
        check_integer("warmup_steps", self.steps, minimum=1, advice="The first step never counts.")
        check_number("warmup_seconds", self.seconds, minimum=0)


class StepMeter:
    """Counts every step and measures those after the warm-up.

    Rates are sums over sums, never means of rates: `examples / span`, where the span runs from the end of
    the last warm-up step to the end of the last step, so that waiting is part of it. What cannot be
    measured, for want of steps or because no time passed, is None.

    Args:
        warm_up: what the rates leave out.
    """

    def __init__(self, warm_up: WarmUp) -> None:
        self._warm_up = warm_up
        self._end_of_warm_up_seconds: float | None = None
        self._last_end_seconds = 0.0
        self._measured_trained = 0
        self._measured_fresh = 0
        self._busy_seconds = 0.0
        self._wait_seconds = 0.0
        self.steps = 0
        self.warm_up_steps = 0
        self.trained_examples = 0
        self.fresh_examples = 0

    def add(
        self, end_seconds: float, wait_seconds: float, busy_seconds: float, trained: int, fresh: int
    ) -> bool:
        """Adds one finished step and returns whether it belongs to the warm-up.

        Args:
            end_seconds: end of the step on the device, seconds since the phase began.
            wait_seconds: time that the device waited for data before it.
            busy_seconds: time that the device worked on it.
            trained: examples of the batch.
            fresh: those of them that were used for the first time.
        """
        self.steps += 1
        self.trained_examples += trained
        self.fresh_examples += fresh
        self._last_end_seconds = end_seconds
        if self._end_of_warm_up_seconds is None:
            self.warm_up_steps += 1
            if self.warm_up_steps >= self._warm_up.steps and end_seconds >= self._warm_up.seconds:
                self._end_of_warm_up_seconds = end_seconds
            return True
        self._measured_trained += trained
        self._measured_fresh += fresh
        self._busy_seconds += busy_seconds
        self._wait_seconds += wait_seconds
        return False

    @property
    def is_warm(self) -> bool:
        """Whether the warm-up is over."""
        return self._end_of_warm_up_seconds is not None

    @property
    def measured_steps(self) -> int:
        """Steps that the rates cover."""
        return self.steps - self.warm_up_steps

    @property
    def measured_seconds(self) -> float:
        """Span that the rates cover."""
        if self._end_of_warm_up_seconds is None:
            return 0.0
        return self._last_end_seconds - self._end_of_warm_up_seconds

    @property
    def trained_examples_per_second(self) -> float | None:
        """Examples used per second, repeats included."""
        return self._rate(self._measured_trained)

    @property
    def fresh_examples_per_second(self) -> float | None:
        """Examples used for the first time, per second."""
        return self._rate(self._measured_fresh)

    @property
    def accelerator_utilization(self) -> float | None:
        """Busy / (busy + waiting for data), 0 to 1."""
        total = self._busy_seconds + self._wait_seconds
        return self._busy_seconds / total if self.measured_steps and total > 0 else None

    def _rate(self, examples: int) -> float | None:
        seconds = self.measured_seconds
        return examples / seconds if self.measured_steps and seconds > 0 else None
