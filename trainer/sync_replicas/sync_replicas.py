"""Synchronous training with backups: the first gradients to come make the update, late ones are dropped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import tensorflow as tf

from echoing.checks import check_integer, check_number
from echoing.errors import OptionError
from trainer.sync_replicas.gradient_accumulators import GradientAccumulators
from trainer.sync_replicas.replica_counts import Push, ReplicaReport
from trainer.sync_replicas.replica_plan import ReplicaPlan
from trainer.sync_replicas.replica_run import GradientFunction, ReplicaRun

if TYPE_CHECKING:
    from trainer.optimizers import Optimizer

STEP_TIMEOUT_SECONDS = 600.0
"""Longest time to an update: the first one includes tracing and, under XLA, minutes of compiling."""
STOP_TIMEOUT_SECONDS = 60.0
"""Longest time for the last batches to come back after the end."""


class Averages(Protocol):
    """Averages of variables, such as `trainer.moving_average.MovingAverage`."""

    def update(self) -> Any:
        """Takes the variables' new values in. Called after an update has moved the global step."""


class SyncReplicas:
    """Trains variables with gradients of several replicas that run as threads of this process.

    A step is what `tf.compat.v1.train.SyncReplicasOptimizer` makes it:

    1. Each replica computes a batch's gradients for the current step and adds them to accumulators, which
       drop those of a step that is over.
    2. As soon as `plan.replicas_to_aggregate` batches are in, their mean is applied, the global step moves by
       one and the averages are updated, once each.
    3. Only then are tokens with the new step put out. A replica takes one before its next batch: this is
       the barrier. A token of a step that is over is passed over.

    With all replicas in every update the step equals one of gradient descent on their batches together, to
    the rounding of a sum in another order. With backups an update uses the first batches to come, so that
    runs differ from one another, as they do in TensorFlow.

    A replica may read variables while an update moves them; what it computes is then stale for certain.
    A gradient function may change its gradients as it likes, such as clip them by their global norm. Its
    random numbers should depend on the replica and the step.

    Args:
        plan: how many replicas there are, and how many an update takes.
        variables: the variables to train; float16, float32 or float64, for which there are accumulators.
        optimizer: its `apply` is called with the averaged gradients, within a `tf.function`.
        learning_rate: a number > 0, or a function from the global step (int64 scalar tensor) to a float32
            scalar, such as `trainer.learning_rate.LearningRateSchedule`.
        averages: updated after each update, or None.
        global_step: an int64 variable to count updates in, for checkpoints; None: it is made here.

    Raises:
        OptionError: there are no variables, one has another dtype, or the learning rate is out of range.
    """

    def __init__(
        self,
        plan: ReplicaPlan,
        variables: Sequence[Any],
        optimizer: Optimizer,
        learning_rate: float | Callable[[Any], Any],
        averages: Averages | None = None,
        global_step: Any = None,
    ) -> None:
        if not variables:
            raise OptionError("variables", list(variables), "at least one variable")
        for variable in variables:
            if variable.dtype not in (tf.float16, tf.float32, tf.float64):
                raise OptionError(
                    f"The dtype of {variable.name}", variable.dtype.name, "float16, float32 or float64"
                )
        if not callable(learning_rate):
            check_number("learning_rate", learning_rate, minimum=0, exclusive_minimum=True)
        self.plan = plan
        self.global_step = (
            tf.Variable(0, dtype=tf.int64, trainable=False, name="global_step")
            if global_step is None
            else global_step
        )
        self._variables = list(variables)
        self._optimizer, self._learning_rate, self._averages = optimizer, learning_rate, averages

    def run(
        self,
        replicas: Sequence[GradientFunction],
        steps: int,
        on_push: Callable[[Push], object] | None = None,
        step_timeout_seconds: float = STEP_TIMEOUT_SECONDS,
        stop_timeout_seconds: float = STOP_TIMEOUT_SECONDS,
    ) -> ReplicaReport:
        """Makes `steps` updates and returns when all replicas have ended.

        Batches that are being computed at the last update are waited for, and are counted as dropped.

        Args:
            replicas: the gradient function of each replica: from the global step to one gradient a variable.
                It runs on the replica's own thread, so functions must not share what is not safe to share.
                A `tf.function` that they share is best traced before (`get_concrete_function`): threads that
                call it for the first time together trace it once each.
            steps: updates to make, at least 1.
            on_push: called with each batch that came in, in order and under the lock: be quick.
            step_timeout_seconds: longest time to an update.
            stop_timeout_seconds: longest time for all replicas to come back once the run ends. Those that
                do not are left behind, with a warning and in the report: a backup may be stuck for good.

        Raises:
            OptionError: an argument is out of range, or gradients do not fit the variables.
            DataError: the data of a replica ended.
            ReplicasStalledError: an update did not come within its time limit.
            BaseException: whatever a gradient function, the optimizer or `on_push` raised first, the same
                object. All replicas end; the updates made before it stand.
        """
        if len(replicas) != self.plan.replicas:
            raise OptionError(
                "The number of gradient functions",
                len(replicas),
                f"{self.plan.replicas}: one for each replica",
            )
        check_integer("steps", steps, minimum=1)
        check_number("step_timeout_seconds", step_timeout_seconds, minimum=0, exclusive_minimum=True)
        check_number("stop_timeout_seconds", stop_timeout_seconds, minimum=0)
        first_step = int(self.global_step.numpy())
        accumulators = GradientAccumulators(self._variables, first_step)
        # A function for each run, because it holds the accumulators, which hold gradients.
        update = tf.function(lambda: self._update(accumulators), autograph=False)
        run = ReplicaRun(self.plan, accumulators, update, first_step, first_step + steps, on_push)
        return run.run(replicas, step_timeout_seconds, stop_timeout_seconds)

    def _update(self, accumulators: GradientAccumulators) -> None:
        gradients = accumulators.take(self.plan.replicas_to_aggregate)
        rate = self._learning_rate
        self._optimizer.apply(gradients, rate(self.global_step.read_value()) if callable(rate) else rate)
        self.global_step.assign_add(1)
        if self._averages is not None:
            self._averages.update()
