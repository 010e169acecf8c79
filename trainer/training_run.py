"""One call of a trainer's `steps`: runs compiled loops in a thread and turns their reports into records."""

from __future__ import annotations

import math
import threading
from typing import Any

from echoing.errors import DataError, PipebenchError
from trainer.channel import Channel
from trainer.device_echo import check_uses_value
from trainer.host_clock import ClockSample, HostClock
from trainer.loop_report import LoopStatus, TimedStep
from trainer.step import StepRecord
from trainer.training_loop import TrainingLoop

LOOP_SECONDS = 1.0
"""How long one compiled loop should take. Longer loops would delay the records; returning to Python costs
about a millisecond, so that this keeps the cost near 0.1 percent."""


class TrainingRun:
    """Feeds a dataset to a training loop until it ends or is stopped.

    Args:
        loop: the compiled loop.
        dataset: a `tf.data.Dataset` with the elements that the loop was built for.
        first_step: number of the first step, counted over all runs of the trainer.

    Attributes:
        records: the record of each step done, and the error that ended the run.
        next_step: number of the step after the last one done.
    """

    def __init__(self, loop: TrainingLoop, dataset: Any, first_step: int) -> None:
        self._loop = loop
        self._loop.reset()
        self._dataset = dataset
        self._stopped = threading.Event()
        self._index = 0
        self._next_limit = 1
        self._ended_seconds: float | None = None
        self.next_step = first_step
        self.records: Channel[StepRecord] = Channel(loop.steps_per_loop)

    def stop(self) -> None:
        """Ends the run after the step in work; to be called from the thread that reads the records."""
        self._stopped.set()
        self._loop.stop()
        self.records.close()

    def work(self) -> None:
        """Runs loops to the end; to be called in a thread of its own."""
        try:
            iterator = iter(self._dataset)
            while not self._stopped.is_set() and not self._run_loop(iterator):
                pass
            self.records.finish()
        except BaseException as error:  # every kind is raised again, in the caller's thread
            self.records.finish(error)
        finally:
            self._loop.release()

    def _run_loop(self, iterator: Any) -> bool:
        """Runs one loop and hands on its records. Returns whether the data ended."""
        before = ClockSample.take()
        began_seconds = before.wall_seconds
        try:
            status, refused, began_seconds = self._loop.run(iterator, self._next_limit, self.next_step)
        finally:
            clock = HostClock(before, ClockSample.take(), self._ended_seconds)
            if self._ended_seconds is None:
                self._ended_seconds = clock.to_monotonic(began_seconds)
            self._report(list(self._loop.finished_steps()), clock)
        if status is LoopStatus.LABELS_OUTSIDE:
            raise self._label_error(refused)
        if status is LoopStatus.USES_BELOW_ONE:
            check_uses_value(refused[0])
        return status is LoopStatus.DATASET_ENDED

    def _report(self, steps: list[TimedStep], clock: HostClock) -> None:
        self.next_step += len(steps)
        for step in steps:
            if not math.isfinite(step.loss):
                raise PipebenchError(
                    f"The loss of step {self._index} is {step.loss}: training stopped. "
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
            self.records.put(record)
        if steps:
            seconds = (steps[-1].ended_seconds - steps[0].arrived_seconds) / len(steps)
            most = self._loop.steps_per_loop
            self._next_limit = most if seconds * most <= LOOP_SECONDS else max(1, int(LOOP_SECONDS / seconds))

    def _label_error(self, outside: list[int]) -> DataError:
        classes = self._loop.num_classes
        found = ", ".join(str(label) for label in sorted(set(outside)))
        return DataError(
            f"The batch of step {self._index} has labels outside 0 to {classes - 1} "
            f"(num_classes is {classes}): {found}. Set num_classes to the largest label + 1, "
            "or correct the records; `pipebench data check` lists them."
        )
