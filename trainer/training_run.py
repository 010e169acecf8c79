"""One call of a trainer's `steps`: runs compiled loops in a thread and hands on their records."""

from __future__ import annotations

import threading
from typing import Any

from trainer.channel import Channel
from trainer.loop_caller import LoopCaller
from trainer.step import StepRecord
from trainer.training_loop import TrainingLoop


class TrainingRun:
    """Feeds a dataset to a training loop until it ends or is stopped.

    Args:
        loop: the compiled loop.
        dataset: a `tf.data.Dataset` with the elements that the loop was built for.
        first_step: number of the first step, counted over all runs of the trainer.

    Attributes:
        records: the record of each step done, and the error that ended the run.
    """

    def __init__(self, loop: TrainingLoop, dataset: Any, first_step: int) -> None:
        self._loop = loop
        self._loop.reset()
        self._caller = LoopCaller(loop, first_step)
        self._dataset = dataset
        self._stopped = threading.Event()
        self.records: Channel[StepRecord] = Channel(loop.steps_per_loop)

    @property
    def next_step(self) -> int:
        """Number of the step after the last one done."""
        return self._caller.next_step

    def stop(self) -> None:
        """Ends the run after the step in work; to be called from the thread that reads the records."""
        self._stopped.set()
        self._loop.stop()
        self.records.close()

    def work(self) -> None:
        """Runs loops to the end; to be called in a thread of its own."""
        try:
            iterator = iter(self._dataset)
            ended = False
            while not self._stopped.is_set() and not ended:
                ended = self._caller.call(iterator, self._caller.next_limit, self.records.put)
            self.records.finish()
        except BaseException as error:  # every kind is raised again, in the caller's thread
            self.records.finish(error)
        finally:
            self._loop.release()
