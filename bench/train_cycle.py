"""The cycle of a training: compiled loops, and between them lines, checkpoints, evaluations and signals."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bench.elastic_echo import MAX_STEPS_PER_LOOP, settle_steps
from bench.input_position import InputPosition
from bench.job_options import JobOptions
from bench.reporters.train_progress import TrainProgress
from bench.reporters.train_summary import evaluation_line
from bench.train_log import TrainLog
from echoing.elastic import ElasticController, ElasticOptions
from echoing.errors import DataError
from echoing.freshness import count_fresh
from pipeline.element import EXAMPLE_ID, REPEAT_INDEX
from pipeline.input_pipeline import InputPipeline
from trainer.checkpoints import CheckpointKeeper
from trainer.evaluation import Evaluation
from trainer.preemption import PreemptionGuard
from trainer.profile_window import ProfileWindow
from trainer.session import TrainEnd, TrainSession
from trainer.step import StepRecord
from trainer.train_input import TrainInput

SIGNALS = (signal.SIGTERM, signal.SIGINT)
"""What ends a training after it is saved: a machine that is taken away, and Ctrl-C."""


class TrainCycle:
    """Trains from where a session stands to the last step.

    The order at a checkpoint: lines first, on the disk, then the checkpoint, then the evaluation. A kill
    anywhere leaves a checkpoint whose lines are whole, and an evaluation that is missing is made up for.

    On several workers, all of them decide alike: what may differ between them is gathered first.

    Args:
        options: everything that was asked for, completed.
        session: what is trained.
        keeper: of the checkpoints.
        log: of lines and curves.
        window: of the profiler.
        start: where the input begins.
        identity: of the input, see `input_identity`.
        evaluation_dataset: makes this host's dataset of an evaluation; None to train only.
        say: takes lines for the user.
        clock: monotonic seconds.

    Attributes:
        last_evaluation: the last one of this run.
    """

    def __init__(
        self,
        options: JobOptions,
        session: TrainSession,
        keeper: CheckpointKeeper,
        log: TrainLog,
        window: ProfileWindow,
        start: InputPosition,
        identity: dict[str, Any],
        evaluation_dataset: Callable[[], Any] | None,
        say: Callable[[str], None],
        clock: Callable[[], float],
    ) -> None:
        self._options = options
        self._session = session
        self._placement = session.placement
        self._keeper = keeper
        self._log = log
        self._window = window
        self._identity = identity
        self._evaluation_dataset = evaluation_dataset
        self._say = say
        self._clock = clock
        self._saved_seconds = clock()
        self._elastic: ElasticController | None = None
        self._echo_variable: Any = None
        self._next_example = start.example
        self.last_evaluation: Evaluation | None = None

    def train(self, pipeline: InputPipeline, batches: TrainInput, progress: TrainProgress) -> None:
        """Trains to the last step.

        Args:
            pipeline: the training's input.
            batches: its dataset, opened.
            progress: is shown how far it has come.

        Raises:
            PreemptedError: a signal came; the checkpoint is saved.
            PipebenchError: see `TrainSession.train` and `CheckpointKeeper.save`.
        """
        self._begin_echo(pipeline)
        session, last = self._session, self._options.train.train_steps
        self.evaluate_if_due()
        self._saved_seconds = self._clock()
        while session.step < last:
            # Not around the evaluation, which may take minutes: whatever ends it loses nothing.
            with PreemptionGuard(SIGNALS) as guard:
                self._train_to_evaluation(batches, guard, progress)
            self.evaluate_if_due()

    def evaluate_if_due(self) -> None:
        """Evaluates where the step calls for it and no evaluation of it has been written."""
        session, options = self._session, self._options
        if not self._is_evaluated(session.step):
            return
        # Only the first worker reads the log of evaluations.
        if self._placement.gather([self._log.last_evaluated])[0, 0] >= session.step:
            return
        assert self._evaluation_dataset is not None
        averaged = options.train.moving_average
        self._say(f"Evaluating step {session.step:,}")
        found = session.evaluate(self._evaluation_dataset(), average=averaged)
        self.last_evaluation = found
        self._log.add_evaluation(
            session.step,
            {
                "accuracy": found.accuracy,
                "accuracy_top_5": found.accuracy_top_5,
                "loss": found.mean_loss,
                "examples": found.examples,
                "averaged": averaged,
            },
        )
        self._keeper.keep_best(session.step, found.accuracy)
        self._say(evaluation_line(session.step, found))

    def _train_to_evaluation(
        self, batches: TrainInput, guard: PreemptionGuard, progress: TrainProgress
    ) -> None:
        """Trains and saves up to the next evaluation or the end."""
        session, last = self._session, self._options.train.train_steps
        while True:
            limit = self._window.before(session.step, self._next_stop() - session.step)
            end = self._train_some(batches, session.step + self._bounded(limit))
            step = session.step
            self._window.after(step)
            counts = self._log.counts
            progress.update(step, self._log.last_loss, counts.fresh, counts.trained)
            if end is TrainEnd.DATA_ENDED and step < last:
                raise DataError(f"The data ended after step {step:,} of {last:,}.")
            requested, late = self._signals(guard)
            if requested or late or self._is_saved(step):
                self._save(batches)
            if requested:
                raise guard.error(step)
            if step >= last or self._is_evaluated(step):
                return

    def _signals(self, guard: PreemptionGuard) -> tuple[bool, bool]:
        """Returns whether a signal came to any worker, and whether a checkpoint is due by the clock."""
        options = self._options
        late = options.save_seconds and self._clock() - self._saved_seconds >= options.save_seconds
        flags = self._placement.gather([float(guard.requested), float(bool(late))])
        return bool(flags[:, 0].max()), bool(flags[0, 1])

    def _train_some(self, batches: TrainInput, until_step: int) -> TrainEnd:
        """Runs one compiled loop and takes in its steps, also those before an error."""
        records: list[StepRecord] = []

        def stop_after_loop(new: Sequence[StepRecord]) -> bool:
            records.extend(new)
            return True

        try:
            end = self._session.train(batches, until_step, stop_after_loop)
        except BaseException:
            # The other workers do not come to the sum over all: this one's steps stay uncounted.
            if self._placement.worker_count == 1:
                self._log.add(records, self._fresh(records))
            raise
        fresh = self._placement.gather(self._fresh(records)).sum(axis=0).astype(int).tolist()
        self._log.add(records, fresh, self._placement.worker_count)
        self._observe(records, fresh)
        return end

    def _fresh(self, records: Sequence[StepRecord]) -> list[int]:
        # A step on a batch that the device held is a repeat of all its examples.
        return [count_fresh(record.tags[REPEAT_INDEX] + record.device_repeat) for record in records]

    def _is_saved(self, step: int) -> bool:
        options = self._options
        by_steps = options.save_steps is not None and step % options.save_steps == 0
        return by_steps or step >= options.train.train_steps or self._is_evaluated(step)

    def _save(self, batches: TrainInput) -> None:
        session, log = self._session, self._log
        elastic = self._elastic is not None
        position = InputPosition(
            batch=0 if elastic else batches.position["batch"],
            uses=batches.position["uses"],
            example=self._next_example,
            echo_value=float(self._echo_variable.numpy()) if elastic else 1.0,
            examples_fresh=log.counts.fresh,
            examples_trained=log.counts.trained,
            seed=self._options.train.seed,
        )
        log.flush()
        self._keeper.save(
            session.state,
            session.step,
            position.to_scalars(self._identity) | {"train_steps": self._options.train.train_steps},
            has_averages=session.average is not None,
        )
        self._saved_seconds = self._clock()

    def _is_evaluated(self, step: int) -> bool:
        """Whether there is an evaluation at a step."""
        options = self._options
        if self._evaluation_dataset is None:
            return False
        at_the_end = step >= options.train.train_steps
        return step > 0 and (at_the_end or step % options.train_steps_per_eval == 0)

    def _next_stop(self) -> int:
        """Returns the next step at which something other than training has to be done."""
        options, step = self._options, self._session.step
        stops = [options.train.train_steps]
        if options.save_steps is not None:
            stops.append((step // options.save_steps + 1) * options.save_steps)
        if self._evaluation_dataset is not None:
            stops.append((step // options.train_steps_per_eval + 1) * options.train_steps_per_eval)
        return min(stops)

    def _bounded(self, limit: int) -> int:
        """Returns a limit that lets an elastic factor follow."""
        return limit if self._elastic is None else min(limit, MAX_STEPS_PER_LOOP)

    def _begin_echo(self, pipeline: InputPipeline) -> None:
        if pipeline.echo_variable is None:
            return
        config = pipeline.config
        self._echo_variable = pipeline.echo_variable
        self._elastic = ElasticController(
            ElasticOptions(
                max_factor=config.max_echo_factor,
                initial_factor=float(pipeline.echo_variable.numpy()),
                settle_steps=settle_steps(config, MAX_STEPS_PER_LOOP),
            )
        )

    def _observe(self, records: Sequence[StepRecord], fresh: Sequence[int]) -> None:
        if self._elastic is None:
            return
        for record, new in zip(records, fresh, strict=True):
            factor = self._elastic.observe(record.wait_seconds, record.busy_seconds, new, record.examples)
            self._echo_variable.assign(factor)
            self._next_example = max(self._next_example, int(np.max(record.tags[EXAMPLE_ID])) + 1)
