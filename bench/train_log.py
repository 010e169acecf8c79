"""What a training writes about its steps: lines of `metrics.jsonl` and TensorBoard's points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trainer.learning_rate import LearningRateSchedule
from trainer.metrics_log import EVALUATIONS_NAME, MetricsLog
from trainer.model_folder import join
from trainer.step import StepRecord
from trainer.summaries import TensorBoardWriter

EVALUATION_FIELDS = ("accuracy", "accuracy_top_5", "loss", "examples", "averaged")
"""What every line of `evaluations.jsonl` has beside `step`."""
EVALUATION_FOLDER = "eval"
"""Folder of the evaluation's event files inside the model folder: a curve of its own, as in TF 1."""


@dataclass
class Counts:
    """Examples trained since the beginning of the training, over all hosts.

    Attributes:
        fresh: those that had just been read from storage.
        trained: all, repeats included.
    """

    fresh: int = 0
    trained: int = 0


@dataclass
class _Interval:
    """What happened since the last point of the curves."""

    fresh: int = 0
    trained: int = 0
    busy_seconds: float = 0.0
    wait_seconds: float = 0.0

    def scalars(self) -> dict[str, float | None]:
        seconds = self.busy_seconds + self.wait_seconds
        known = seconds > 0
        return {
            "images_per_second_fresh": self.fresh / seconds if known else None,
            "images_per_second_trained": self.trained / seconds if known else None,
            "accelerator_utilization": self.busy_seconds / seconds if known else None,
            "echo_factor": self.trained / self.fresh if self.fresh else None,
        }


class TrainLog:
    """Writes the steps of a training; on hosts that do not write it only counts.

    Args:
        folder: the model folder.
        schedule: the learning rate of every step.
        counts: those at the checkpoint that the training goes on from.
        step: training steps done there.
        lines_every: steps between lines; the last step has one as well.
        summary_steps: steps between TensorBoard's points; None for no event files.
        train_steps: steps of the whole training.
        writes: whether this process writes.

    Attributes:
        counts: examples up to the last step added.
        last_loss: loss of the last step added; None before.
    """

    def __init__(
        self,
        folder: str,
        schedule: LearningRateSchedule,
        counts: Counts,
        step: int,
        lines_every: int,
        summary_steps: int | None,
        train_steps: int,
        writes: bool = True,
    ) -> None:
        self.counts = counts
        self.last_loss: float | None = None
        self._schedule = schedule
        self._lines_every = lines_every
        self._summary_steps = summary_steps or 0
        self._train_steps = train_steps
        self._interval = _Interval()
        self._lines = MetricsLog(folder, step) if writes else None
        self._evaluations = MetricsLog(folder, step, EVALUATIONS_NAME, EVALUATION_FIELDS) if writes else None
        self._curves = self._evaluation_curves = None
        if writes and summary_steps is not None:
            self._curves = TensorBoardWriter(folder, step)
            self._evaluation_curves = TensorBoardWriter(join(folder, EVALUATION_FOLDER), step)

    @property
    def last_evaluated(self) -> int:
        """Step of the last evaluation; 0 before the first and on hosts that do not write."""
        return 0 if self._evaluations is None else self._evaluations.last_step

    def add(self, records: Sequence[StepRecord], fresh: Sequence[int], workers: int = 1) -> None:
        """Takes in steps, in order.

        Args:
            records: of this host.
            fresh: fresh examples of each step, over all hosts.
            workers: the number of hosts; all have as many examples a step.
        """
        for record, new in zip(records, fresh, strict=True):
            trained = record.examples * workers
            self.counts.fresh += new
            self.counts.trained += trained
            self._interval.fresh += new
            self._interval.trained += trained
            self._interval.busy_seconds += record.busy_seconds
            self._interval.wait_seconds += record.wait_seconds
            self.last_loss = record.loss
            self._write(record)

    def add_evaluation(self, step: int, figures: dict[str, Any]) -> None:
        """Writes an evaluation.

        Args:
            step: training steps done.
            figures: what `EVALUATION_FIELDS` names.
        """
        if self._evaluations is not None:
            self._evaluations.write_scalars(step, figures)
            self._evaluations.flush()
        if self._evaluation_curves is not None:
            self._evaluation_curves.write_scalars(step, figures)
            self._evaluation_curves.flush()

    def flush(self) -> None:
        """Brings the lines and points to the disk: before a checkpoint, so that none up to it is missing."""
        for writer in (self._lines, self._curves):
            if writer is not None:
                writer.flush()

    def close(self) -> None:
        """Flushes and closes all files."""
        for writer in (self._lines, self._evaluations, self._curves, self._evaluation_curves):
            if writer is not None:
                writer.close()

    def _write(self, record: StepRecord) -> None:
        step = record.index + 1
        rate = self._schedule.at(record.index)
        is_last = step == self._train_steps
        if self._lines is not None and (step % self._lines_every == 0 or is_last):
            self._lines.write_scalars(
                step,
                {
                    "loss": record.loss,
                    "learning_rate": rate,
                    "examples_fresh": self.counts.fresh,
                    "examples_trained": self.counts.trained,
                },
            )
        if self._summary_steps and (step % self._summary_steps == 0 or is_last):
            if self._curves is not None:
                epoch = self.counts.trained / self._schedule.examples_per_epoch
                scalars = {"loss": record.loss, "learning_rate": rate, "epoch": epoch}
                self._curves.write_scalars(step, scalars | self._interval.scalars())
            self._interval = _Interval()
