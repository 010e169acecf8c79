"""`pipebench eval`: evaluates checkpoints of a model folder, those there are or those to come."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bench.evaluation_data import evaluation_dataset
from bench.predictions import predictions
from echoing.errors import DataError
from pipeline.config import PipelineConfig
from pipeline.data_source import DataSource
from trainer.checkpoint_folder import Restored
from trainer.checkpoint_manifest import check_averages
from trainer.checkpoints import CheckpointKeeper
from trainer.evaluation import Evaluation
from trainer.placement import Placement
from trainer.session import TrainSession
from trainer.train_options import TrainOptions

POLL_SECONDS = 5.0
"""How often the model folder is looked at for a new checkpoint."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class EvaluationOptions:
    """What to evaluate.

    Attributes:
        model_dir: folder of the checkpoints.
        pipeline: the evaluation's input; image size and preprocessing are completed from the checkpoint.
        batch_size: examples of a batch over all replicas.
        total_size: evaluate the first so many examples; 0 for all.
        raw: evaluate the raw weights, and not their moving averages.
        step: the checkpoint of this step; None for the newest.
        best: the one with the best evaluation.
        compute_dtype: `float32` or `bfloat16`.
        num_classes: as given; None for the checkpoint's.
        display_tensors: print predictions and labels of the first examples.
    """

    model_dir: str
    pipeline: PipelineConfig
    batch_size: int
    total_size: int = 0
    raw: bool = False
    step: int | None = None
    best: bool = False
    compute_dtype: str = "float32"
    num_classes: int | None = None
    display_tensors: bool = False


class EvaluationJob:
    """Evaluates the checkpoints of one folder.

    Args:
        options: what to evaluate.
        source: the evaluation data.
        placement: where.
        say: takes lines for the user.
    """

    def __init__(
        self, options: EvaluationOptions, source: DataSource, placement: Placement, say: Say
    ) -> None:
        self._options = options
        self._source = source
        self._placement = placement
        self._say = say
        facts = {} if options.num_classes is None else {"num_classes": options.num_classes}
        self._keeper = CheckpointKeeper(options.model_dir, facts, writes=False, say=say)
        self._session: TrainSession | None = None

    def find(self) -> Restored:
        """Returns the checkpoint asked for.

        Raises:
            DataError: there is none, or it is damaged.
        """
        options = self._options
        if options.best:
            found = self._keeper.best()
        elif options.step is not None:
            found = self._keeper.at(options.step)
        else:
            found = self._keeper.newest()
        if found is None:
            raise DataError(
                f"There is no checkpoint to evaluate in {options.model_dir}. Train first with "
                "`pipebench train`, or name its model folder."
            )
        return found

    def evaluate(self, restored: Restored) -> Evaluation:
        """Evaluates a checkpoint.

        Raises:
            DataError: it has no averages and they were asked for, it does not fit, or the data are unusable.
        """
        options = self._options
        if not options.raw:
            check_averages(restored.manifest, restored.path, "--raw")
        session = self._session_for(restored)
        objects = {name: session.state[name] for name in session.state if name != "optimizer"}
        restored.read(objects, partial=True)
        dataset = self._dataset(restored)
        if options.display_tensors:
            self._say(predictions(session, dataset, average=not options.raw))
        return session.evaluate(dataset, average=not options.raw)

    def watch(
        self,
        timeout_seconds: float | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Iterator[tuple[int, Evaluation]]:
        """Evaluates the newest checkpoint whenever there is a new one, until the training's last step.

        Checkpoints that are followed by newer ones while another is evaluated are passed over.

        Args:
            timeout_seconds: how long to wait for a new one; None for ever.
            clock: monotonic seconds.
            sleep: waits some seconds.

        Yields:
            The step and the evaluation of each.
        """
        seen, waiting_since = -1, clock()
        while True:
            steps = self._keeper.steps()
            if steps and steps[-1] > seen:
                restored = self.find()
                if restored.step > seen:
                    seen = restored.step
                    yield seen, self.evaluate(restored)
                    waiting_since = clock()
                    last = restored.position.get("train_steps")
                    if isinstance(last, int) and seen >= last:
                        return
                    continue
            if timeout_seconds is not None and clock() - waiting_since >= timeout_seconds:
                self._say(f"No new checkpoint in {timeout_seconds:g} s.")
                return
            sleep(POLL_SECONDS)

    def _session_for(self, restored: Restored) -> TrainSession:
        """Returns the session of the checkpoint's model; one for all checkpoints of the folder."""
        if self._session is None:
            facts, options = restored.manifest.facts, self._options
            train: dict[str, Any] = {
                name: facts[name] for name in ("model", "image_size", "width_multiplier", "num_classes")
            }
            self._session = TrainSession(
                TrainOptions(
                    batch_size=options.batch_size,
                    train_steps=1,
                    eval_batch_size=options.batch_size,
                    compute_dtype=options.compute_dtype,
                    # The one without slots: nothing is trained.
                    optimizer="sgd",
                    moving_average=restored.has_averages,
                    layout=options.pipeline.layout,
                    **train,
                ),
                self._placement,
            )
        return self._session

    def _dataset(self, restored: Restored) -> Any:
        options = self._options
        facts: Mapping[str, Any] = restored.manifest.facts
        config = replace(options.pipeline, image_size=facts["image_size"])
        if (facts["preprocess"] == "vgg") != (config.preprocess == "vgg"):
            raise DataError(
                f"The checkpoint was trained with the preprocessing of {facts['preprocess']}, and "
                f"--preprocess is {config.preprocess}. Evaluate with the same."
            )
        return evaluation_dataset(
            config, self._source, self._placement, options.batch_size, options.total_size
        )
