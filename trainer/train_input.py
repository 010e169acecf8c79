"""An open dataset that training takes its batches from, and how far it has come in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainer.loop_caller import LoopCaller
from trainer.step import StepRecord


class TrainInput:
    """An iterator of training batches and the compiled loop for them; `TrainSession.open` makes it.

    Args:
        iterator: of the dataset.
        caller: of the compiled loop.
        first_batch: the number of the iterator's first batch, counted over all runs of a training.

    Attributes:
        iterator: as given.
        caller: as given.
        batches_begun: number of batches that training has begun, those of the runs before included.
    """

    def __init__(self, iterator: Any, caller: LoopCaller, first_batch: int = 0) -> None:
        self.iterator = iterator
        self.caller = caller
        self.batches_begun = first_batch
        self._is_new = True

    def count(self, records: Sequence[StepRecord]) -> None:
        """Counts the batches that steps began; call it with the records of all steps, in order."""
        self.batches_begun += sum(record.device_repeat == 0 for record in records)
        if records and self._is_new:
            # The first batch may be one that a run before began: then its first step here is a repeat.
            self.batches_begun += records[0].device_repeat > 0
            self._is_new = False

    @property
    def position(self) -> dict[str, int]:
        """Where another run has to go on, for a checkpoint.

        `batch` is the number of the batch to begin with, and `uses` how many of its uses are done: more than
        zero where the device holds a batch for further steps.
        """
        uses = self.caller.loop.uses_done()
        return {"batch": self.batches_begun - (uses > 0), "uses": uses}
