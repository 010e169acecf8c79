"""`pipebench train`: prepares a training, from its newest checkpoint on, and runs it to its last step."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from bench.evaluation_data import evaluation_dataset, host_context, serving_preprocessing
from bench.input_position import InputPosition, changes, input_identity
from bench.job_options import JobOptions
from bench.progress import Progress
from bench.reporters.train_progress import TrainProgress
from bench.train_cycle import TrainCycle
from bench.train_log import Counts, TrainLog
from bench.train_result import TrainResult
from echoing.errors import DataError, OptionError
from pipeline.data_source import DataSource
from pipeline.input_pipeline import InputPipeline
from trainer.checkpoint_folder import Restored
from trainer.checkpoints import CheckpointKeeper
from trainer.export import export_model
from trainer.model_folder import join, names
from trainer.placement import Placement
from trainer.profile_window import ProfileWindow
from trainer.session import TrainSession

Say = Callable[[str], None]


class TrainJob:
    """One training in one model folder.

    Args:
        options: everything that was asked for, completed by `with_data`.
        source: the training data.
        evaluation_source: the evaluation data; None to train only.
        placement: where to train.
        say: takes lines for the user.
        clock: monotonic seconds, for the time between checkpoints.

    Raises:
        OptionError: an option does not work with the devices.
        DataError: the folder holds a training that this one cannot go on with.
    """

    def __init__(
        self,
        options: JobOptions,
        source: DataSource,
        evaluation_source: DataSource | None,
        placement: Placement,
        say: Say,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source = source
        self._evaluation_source = evaluation_source
        self._placement = placement
        self._say = say
        self._clock = clock
        options = options.for_placement(placement)
        self._model_dir = options.model_dir
        self._keeper = CheckpointKeeper(
            options.model_dir, options.facts, options.keep, writes=placement.is_chief, say=say
        )
        self._restored = self._agreed(self._keeper.newest())
        self._position = InputPosition()
        if self._restored is not None:
            self._position = InputPosition.from_scalars(self._restored.position)
        self._options = options.with_seed(self._seed(options.seed))
        self._check_export()
        config = self._options.pipeline
        self._identity = input_identity(config, source, placement.worker_count, self._options.train.seed)

    def run(self, bar: Progress, say_progress: Say | None = None) -> TrainResult:
        """Trains to the last step, evaluates, saves, exports.

        Args:
            bar: is shown how far it has come.
            say_progress: takes a line of it now and then; None where the bar is seen.

        Raises:
            PreemptedError: a signal came; the checkpoint is saved.
            PipebenchError: the loss is not finite, the data are unusable, or the disk is full.
        """
        options, placement = self._options, self._placement
        session = TrainSession(options.train, placement)
        if self._restored is not None:
            self._restored.read(session.state)
            self._say_resumed(self._restored)
        begun_at = session.step
        with ExitStack() as stack:
            log = self._open_log(session)
            stack.callback(log.close)
            window = ProfileWindow(options.profile_steps, options.model_dir)
            stack.callback(window.close)
            cycle = TrainCycle(
                options,
                session,
                self._keeper,
                log,
                window,
                self._position,
                self._identity,
                None if self._evaluation_source is None else self._evaluation_dataset,
                self._say,
                self._clock,
            )
            if begun_at < options.train.train_steps:
                pipeline = InputPipeline(options.pipeline, source=self._source)
                batches = self._open_input(session, pipeline)
                progress = TrainProgress(bar, say_progress, begun_at, options.train.train_steps, self._clock)
                cycle.train(pipeline, batches, progress)
            else:
                self._say(f"All {options.train.train_steps:,} steps are done already.")
                cycle.evaluate_if_due()
            exported = self._export(session)
            best = self._keeper.best() if cycle.last_evaluation is not None else None
            return TrainResult(
                session.device,
                begun_at,
                session.step,
                log.last_loss,
                log.counts.fresh,
                log.counts.trained,
                cycle.last_evaluation,
                None if best is None else best.step,
                exported,
            )

    def _agreed(self, restored: Restored | None) -> Restored | None:
        """Checks that all workers found the same checkpoint: they train on only together."""
        step = -1 if restored is None else restored.step
        steps = self._placement.gather([step])[:, 0].astype(int).tolist()
        if len(set(steps)) > 1:
            found = ", ".join("none" if step < 0 else f"step {step}" for step in steps)
            raise DataError(
                f"The workers found different checkpoints in {self._model_dir}: {found}. Let all hosts "
                "have the same model folder, on a shared file system."
            )
        return restored

    def _seed(self, given: int | None) -> int:
        """Returns the seed given, that of the checkpoint, or one that is drawn by the first worker."""
        if given is not None:
            return given
        if self._restored is not None:
            return self._position.seed
        return int(self._placement.gather([random.randrange(2**31)])[0, 0])

    def _say_resumed(self, restored: Restored) -> None:
        self._say(f"Going on from the checkpoint of step {restored.step:,} in {restored.path}")
        differences = changes(restored.position, self._identity)
        if not differences:
            return
        workers = self._placement.worker_count
        self._position = self._position.moved_to(self._options.pipeline, workers)
        self._say(
            f"Warning: the input has changed ({differences}). Training goes on after as many fresh examples, "
            "but in another order: within this epoch some come twice and others not at all."
        )

    def _open_log(self, session: TrainSession) -> TrainLog:
        options = self._options
        return TrainLog(
            options.model_dir,
            session.schedule,
            Counts(self._position.examples_fresh, self._position.examples_trained),
            session.step,
            options.lines_every,
            options.summary_steps if options.summaries else None,
            options.train.train_steps,
            self._placement.is_chief,
        )

    def _open_input(self, session: TrainSession, pipeline: InputPipeline) -> Any:
        position = self._position
        if pipeline.echo_variable is not None:
            pipeline.echo_variable.assign(position.echo_value)
        dataset = pipeline(
            input_context=host_context(self._placement),
            start_batch=position.batch,
            start_example=position.example if pipeline.config.is_elastic else None,
        )
        self._say("Building the training step")
        return session.open(dataset, position.batch, position.uses)

    def _evaluation_dataset(self) -> Any:
        options, source = self._options, self._evaluation_source
        assert source is not None
        return evaluation_dataset(
            options.eval_config, source, self._placement, options.eval_batch_size, options.eval_total_size
        )

    def _check_export(self) -> None:
        """Checks early that the model may be written: weeks later it would be in vain."""
        options = self._options
        steps = options.train.train_steps
        done = 0 if self._restored is None else self._restored.step
        if options.export_dir is not None and done < steps and names(join(options.export_dir, str(steps))):
            raise OptionError(
                "export_dir",
                options.export_dir,
                f"a folder without a version {steps}",
                "It is of another training. Remove it, or name another folder.",
            )

    def _export(self, session: TrainSession) -> str | None:
        options = self._options
        if options.export_dir is None or not self._placement.is_chief:
            return None
        path = join(options.export_dir, str(session.step))
        if names(path):
            self._say(f"The model is exported already: {path}")
            return path
        average, strategy = session.average, self._placement.strategy
        with ExitStack() as stack:
            if average is not None:
                stack.enter_context(average.swapped(strategy))
            return export_model(
                session.model,
                lambda images: session.model(images, training=False).main,
                options.export_dir,
                session.step,
                options.train.image_size,
                serving_preprocessing(options.eval_config),
            )
