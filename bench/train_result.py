"""What a run of a training did, for its reports."""

from __future__ import annotations

from dataclasses import dataclass

from trainer.evaluation import Evaluation
from trainer.step import DeviceDescription


@dataclass(frozen=True)
class TrainResult:
    """What a run of a training did.

    Attributes:
        device: what trained.
        resumed_from: step of the checkpoint that it went on from; 0 for a new training.
        step: training steps done.
        loss: of the last step; None if this run did none.
        examples_fresh: examples trained that had just been read, since the beginning of the training.
        examples_trained: all examples trained.
        evaluation: the last one of this run; None without.
        best_step: step of the best checkpoint by evaluation; None without.
        export_path: the SavedModel written; None without.
    """

    device: DeviceDescription
    resumed_from: int
    step: int
    loss: float | None
    examples_fresh: int
    examples_trained: int
    evaluation: Evaluation | None = None
    best_step: int | None = None
    export_path: str | None = None
