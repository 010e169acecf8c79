"""Calls a compiled loop and turns what it reports into records and errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from echoing.errors import DataError, PipebenchError
from trainer.device_echo import check_uses_value
from trainer.host_clock import ClockSample, HostClock
from trainer.loop_report import LoopStatus, TimedStep
from trainer.step import StepRecord
from trainer.training_loop import TrainingLoop

LOOP_SECONDS = 1.0
"""How long one compiled loop should take. Longer loops would delay the records; returning to Python costs
about a millisecond, so that this keeps the cost near 0.1 percent."""


class LoopCaller:
    """Keeps the number of the next step and the time of the last one from call to call of a loop.

    Args:
        loop: the compiled loop.
        first_step: number of the first step, for the step function.
        first_index: number of the first record.
        named_from: added to a record's number where a message names its step.

    Attributes:
        next_step: number of the step after the last one done.
        next_limit: how many steps the next call should do, so that it takes about `LOOP_SECONDS`.
    """

    def __init__(
        self, loop: TrainingLoop, first_step: int, first_index: int = 0, named_from: int = 0
    ) -> None:
        self.loop = loop
        self.next_step = first_step
        self.next_limit = 1
        self._index = first_index
        self._named_from = named_from
        self._ended_seconds: float | None = None

    def pause(self) -> None:
        """Leaves the time until the next call out of the next step's wait."""
        self._ended_seconds = None

    def call(self, iterator: Any, limit: int, report: Callable[[StepRecord], object]) -> bool:
        """Runs the loop once and reports its steps, also those before an error.

        Args:
            iterator: of the dataset.
            limit: the most steps to do.
            report: is called with the record of each step, in order.

        Returns:
            Whether the data ended.

        Raises:
            DataError: a batch was refused; its step was not done.
            PipebenchError: a loss is not finite; its step was done, and its record is not reported.
        """
        before = ClockSample.take()
        began_seconds = before.wall_seconds
        try:
            status, refused, began_seconds = self.loop.run(iterator, limit, self.next_step)
        finally:
            clock = HostClock(before, ClockSample.take(), self._ended_seconds)
            if self._ended_seconds is None:
                self._ended_seconds = clock.to_monotonic(began_seconds)
            self._report(list(self.loop.finished_steps()), clock, report)
        if status is LoopStatus.LABELS_OUTSIDE:
            raise self._label_error(refused)
        if status is LoopStatus.USES_BELOW_ONE:
            raise self._uses_error(refused[0])
        if status is LoopStatus.BATCH_UNEVEN:
            raise DataError(
                f"The batch of step {self._name} has {refused[0]} examples, which the devices of this host "
                "cannot share equally. Drop the smaller last batch, or repeat the data before batching."
            )
        return status is LoopStatus.DATASET_ENDED

    @property
    def _name(self) -> int:
        """What messages call the step of the next record."""
        return self._index + self._named_from

    def _report(
        self, steps: list[TimedStep], clock: HostClock, report: Callable[[StepRecord], object]
    ) -> None:
        self.next_step += len(steps)
        for step in steps:
            if not math.isfinite(step.loss):
                raise PipebenchError(
                    f"The loss of step {self._name} is {step.loss}: training stopped. "
                    "Lower the learning rate, or check the images with `pipebench data check`."
                )
            assert self._ended_seconds is not None
            arrived = clock.to_monotonic(step.arrived_seconds)
            started = clock.to_monotonic(step.started_seconds)
            ended = clock.to_monotonic(step.ended_seconds)
            record = StepRecord(
                index=self._index,
                wait_seconds=started - self._ended_seconds,
                start_seconds=started,
                end_seconds=ended,
                transfer_seconds=started - arrived,
                examples=step.examples,
                tags=step.tags,
                loss=step.loss,
                device_repeat=step.device_repeat,
            )
            self._ended_seconds = ended
            self._index += 1
            report(record)
        if steps:
            seconds = (steps[-1].ended_seconds - steps[0].arrived_seconds) / len(steps)
            most = self.loop.steps_per_loop
            self.next_limit = most if seconds * most <= LOOP_SECONDS else max(1, int(LOOP_SECONDS / seconds))

    def _label_error(self, outside: list[int]) -> DataError:
        classes = self.loop.num_classes
        found = ", ".join(str(label) for label in sorted(set(outside)))
        return DataError(
            f"The batch of step {self._name} has labels outside 0 to {classes - 1} "
            f"(num_classes is {classes}): {found}. Set num_classes to the largest label + 1, "
            "or correct the records; `pipebench data check` lists them."
        )

    def _uses_error(self, uses: int) -> DataError:
        check_uses_value(uses)
        return DataError(
            f"The batch of step {self._name} is to be used {uses} times, but the run that this one goes on "
            "with used it as often already. Resume with the data and the echo factor of that run."
        )
