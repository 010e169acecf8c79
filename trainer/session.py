"""A training in this process: model, optimizer and averages under one strategy; trains and evaluates them."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from echoing.errors import DataError, OptionError, PipebenchError
from trainer.element_check import check_element_spec
from trainer.evaluation import Evaluation
from trainer.evaluator import Evaluator
from trainer.loop_caller import LoopCaller
from trainer.models.batch_norm_decay import batch_norm_decay_for_replicas
from trainer.models.registry import make_model
from trainer.moving_average import MovingAverage
from trainer.optimizers import make_optimizer
from trainer.placement import Placement, check_divisible
from trainer.replica_feed import ReplicaFeed
from trainer.step import DeviceDescription, StepRecord
from trainer.strategies import use_deterministic_kernels
from trainer.train_input import TrainInput
from trainer.train_options import TrainOptions
from trainer.train_step import TrainStep
from trainer.training_loop import TrainingLoop

OnSteps = Callable[[Sequence[StepRecord]], bool | None]


class TrainEnd(enum.Enum):
    """Why a call of `TrainSession.train` returned."""

    STEP_REACHED = "the step asked for was reached"
    STOPPED = "it was asked to stop"
    DATA_ENDED = "the data ended"


class TrainSession:
    """Everything that is trained, and the compiled functions that train and evaluate it.

    Args:
        options: what to train and how.
        placement: where; `trainer.strategies.make_strategy` makes it.

    Attributes:
        model: the network.
        optimizer: of its trainable variables.
        average: the moving averages of its variables; None without.
        schedule: the learning rate of every step.

    Raises:
        OptionError: the replicas cannot share a batch equally, or an option does not work with the strategy.
    """

    def __init__(self, options: TrainOptions, placement: Placement) -> None:
        # Before any variable is made: a batch of the wrong size is an error in seconds.
        self._host_batch_size = placement.host_batch_size("batch_size", options.batch_size)
        if options.eval_batch_size is not None:
            check_divisible("eval_batch_size", options.eval_batch_size, placement.replicas)
        if options.jit_compile and placement.replicas > 1 and not placement.compiles_anyway:
            raise OptionError(
                "jit_compile",
                True,
                f"False with {placement.replicas} replicas",
                "TensorFlow's mirrored variables cannot be updated inside a function that XLA compiles.",
            )
        if options.deterministic:
            use_deterministic_kernels()
        self.options, self.placement = options, placement
        self.schedule = options.schedule
        decay = options.batch_norm_decay
        if options.batch_norm_decay_per_replica:
            decay = batch_norm_decay_for_replicas(decay, placement.replicas)
        with placement.strategy.scope():
            self.model = make_model(
                options.model,
                image_size=options.image_size,
                width_multiplier=options.width_multiplier,
                num_classes=options.num_classes,
                compute_dtype=options.compute_dtype,
                seed=options.seed,
                batch_norm_decay=decay,
                batch_norm_epsilon=options.batch_norm_epsilon,
            )
            self.optimizer = make_optimizer(options.optimizer, self.model.trainable_variables)
            self._global_step = tf.Variable(0, trainable=False, dtype=tf.int64, name="global_step")
            self.average = None
            if options.moving_average:
                self.average = MovingAverage(
                    [*self.model.trainable_variables, *self.model.moving_variables],
                    options.moving_average_decay,
                    num_updates=self._global_step,
                )
        self._feed = placement.feed(options.layout)
        self._step = TrainStep(
            options,
            placement.strategy,
            self._feed if isinstance(self._feed, ReplicaFeed) else None,
            self.model,
            self.optimizer,
            self.schedule,
            self.average,
            self._global_step,
        )
        self._evaluator = Evaluator(options, placement, self._feed, self.model)
        self._loops: dict[Any, TrainingLoop] = {}
        self._input: TrainInput | None = None

    @property
    def device(self) -> DeviceDescription:
        """What trains, and what it trains."""
        options, model = self.options, self.options.model
        if options.width_multiplier != 1 or options.image_size != 299:
            model += f" (width {options.width_multiplier:g}, {options.image_size} px)"
        return dataclasses.replace(self.placement.device, model=model)

    @property
    def step(self) -> int:
        """Steps done since the beginning of the training, also in runs before this one."""
        return int(self._global_step.numpy())

    @property
    def state(self) -> dict[str, Any]:
        """What a checkpoint holds, by name: trackable objects, all of them variables of this process."""
        state = {"model": self.model, "optimizer": self.optimizer, "step": self._global_step}
        return state if self.average is None else state | {"average": self.average}

    def check_finite(self) -> None:
        """Checks that all variables are finite, so that no checkpoint replaces a good one by a bad one.

        Raises:
            PipebenchError: one is not.
        """
        averages = [] if self.average is None else self.average.variables
        for variable in (
            *self.model.trainable_variables,
            *self.model.moving_variables,
            *self.optimizer.variables,
            *averages,
        ):
            if not np.isfinite(variable.numpy()).all():
                raise PipebenchError(
                    f"After step {self.step} the variable {variable.name} is not finite: training stopped, "
                    "and nothing was saved. Lower the learning rate."
                )

    def open(self, dataset: Any, batch: int = 0, uses: int = 0) -> TrainInput:
        """Opens a dataset for training; the compiled loop for its elements is built, which takes a while.

        A dataset that was opened before is closed by it.

        Args:
            dataset: a `tf.data.Dataset` of this host's batches, see `trainer.step.Trainer.steps`. To go on
                with another run, it begins with the batch that `TrainInput.position` names.
            batch: the number of its first batch.
            uses: how many uses of that batch are done.

        Raises:
            DataError: the elements are no such batches.
            OptionError: the images are not of the network's size, or the batches not of the size asked for.
        """
        spec = getattr(dataset, "element_spec", None)
        check_element_spec(spec, self.options.image_size, self.options.layout)
        assert isinstance(spec, Mapping)
        size = spec["label"].shape[0]
        if size not in (None, self._host_batch_size):
            raise OptionError(
                "batch_size",
                self.options.batch_size,
                f"{size} x {self.placement.worker_count}, examples of the dataset's batches x workers",
            )
        loop = self._loop_for(spec)
        loop.reset()
        loop.skip_uses(uses)
        step = self.step
        self._input = TrainInput(iter(dataset), LoopCaller(loop, step, step, named_from=1), batch)
        return self._input

    def train(self, batches: TrainInput, until_step: int, on_steps: OnSteps) -> TrainEnd:
        """Trains until so many steps are done in all; it may be called again with the same input.

        Steps are counted from the beginning of the training: with `step` at 20 and `until_step` 30 it does
        ten, and none if `until_step` is not greater than `step`. Loops run in the calling thread, so that
        nothing moves the variables while `on_steps` is at work or after `train` has returned. All workers
        have to call it alike.

        Args:
            batches: of `open`.
            until_step: the number of steps done to stop at.
            on_steps: is called after each compiled loop with the records of its steps, whose `index` is the
                step's number from 0. If it returns True, training stops there; on several workers, all stop
                if it does so on one. It must not save: the last of the steps may have been one whose loss is
                not finite. Save after `train` has returned.

        Raises:
            DataError: a batch was refused: see `LoopCaller.call`. On several workers also: the data ended.
            PipebenchError: a loss is not finite. The variables are then those after that step.
        """
        if batches is not self._input or batches.caller.next_step != self.step:
            raise RuntimeError("Another input was opened since, or the step was changed; open it again.")
        batches.caller.pause()
        with self.placement.watching_workers():
            return self._train(batches, until_step, on_steps)

    def evaluate(self, dataset: Any, average: bool = False) -> Evaluation:
        """Counts right answers over a dataset that ends; the variables are afterwards what they were.

        Every example counts once, whatever the sizes of the batches; let the pipeline keep its last batch. On
        several workers each evaluates its own share, all have to call it, and all get the sums.

        Args:
            dataset: a `tf.data.Dataset` of this host's batches.
            average: whether to evaluate with the moving averages of the variables.

        Raises:
            DataError: the dataset has no examples, its elements are no batches, or a label is out of range.
            OptionError: there are no averages, or the images are not of the network's size.
        """
        if average and self.average is None:
            raise OptionError(
                "moving_average",
                False,
                "True to evaluate with the averages",
                "Evaluate the raw weights, or train with moving averages.",
            )
        with self.placement.watching_workers():
            if self.average is None or not average:
                return self._evaluator.evaluate(dataset, "raw")
            with self.average.swapped(self.placement.strategy):
                return self._evaluator.evaluate(dataset, "average")

    def _train(self, batches: TrainInput, until_step: int, on_steps: OnSteps) -> TrainEnd:
        caller = batches.caller
        while caller.next_step < until_step:
            limit = self._agree(min(caller.next_limit, until_step - caller.next_step))
            records: list[StepRecord] = []
            try:
                ended = caller.call(batches.iterator, limit, records.append)
            finally:
                batches.count(records)
                stopped = bool(records) and bool(on_steps(records))
            if ended and self.placement.worker_count > 1:
                raise DataError(
                    f"The data of worker {self.placement.worker_index} ended after step {caller.next_step}, "
                    "and the others would wait for it for ever. Repeat the data of every worker."
                )
            if ended:
                return TrainEnd.DATA_ENDED
            if self._any(stopped):
                return TrainEnd.STOPPED
        return TrainEnd.STEP_REACHED

    def _agree(self, limit: int) -> int:
        """Returns the least limit of all workers: loops of different lengths would wait for each other."""
        return int(self.placement.gather([limit]).min())

    def _any(self, stopped: bool) -> bool:
        return bool(self.placement.gather([stopped]).max())

    def _loop_for(self, element_spec: Mapping[str, Any]) -> TrainingLoop:
        """Returns the compiled loop for elements of a specification."""
        key = tuple(sorted(element_spec.items()))
        if key not in self._loops:
            options, step = self.options, self._step
            if self.placement.replicas == 1:
                step = tf.function(step, jit_compile=options.jit_compile or None, autograph=False)
            self._loops[key] = TrainingLoop(
                step,
                element_spec,
                options.image_size,
                options.num_classes,
                self._feed,
                options.steps_per_loop,
                options.layout,
            )
        return self._loops[key]
