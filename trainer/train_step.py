"""One training step under any distribution strategy."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from trainer.incoming_images import prepare
from trainer.learning_rate import LearningRateSchedule
from trainer.losses import training_loss
from trainer.models.model import Model, average_moments, update_moments
from trainer.moving_average import MovingAverage
from trainer.optimizers import Optimizer
from trainer.reaugment import reaugment_repeat
from trainer.replica_feed import ReplicaFeed
from trainer.train_options import TrainOptions
from trainer.transfer import HOST


class TrainStep:
    """Maps a batch to its loss and moves all variables by one step, equally on every replica.

    Each replica computes loss and gradients on its part of the batch. Gradients, losses and the moments of
    batch normalisation are averaged over all replicas, of other workers too, before anything is assigned.
    Every replica then makes the same assignments to its own copies, so that these stay equal to the last bit.

    Under several replicas call it where the loop is traced and not from a `tf.function` of its own: the keys
    of TensorFlow's collective operations do not pass from such a function through a condition of the loop.

    Args:
        options: what to train and how.
        strategy: a `tf.distribute.Strategy`, inside whose scope everything below was made.
        feed: what splits the batches over several replicas of this host; None for one replica.
        model: the network.
        optimizer: of its trainable variables.
        schedule: the learning rate of every step.
        average: the moving averages of the variables; None for none.
        global_step: int64 variable, the number of steps done.
    """

    def __init__(
        self,
        options: TrainOptions,
        strategy: Any,
        feed: ReplicaFeed | None,
        model: Model,
        optimizer: Optimizer,
        schedule: LearningRateSchedule,
        average: MovingAverage | None,
        global_step: Any,
    ) -> None:
        self._options = options
        self._strategy = strategy
        self._feed = feed
        self._model = model
        self._optimizer = optimizer
        self._schedule = schedule
        self._average = average
        self._global_step = global_step
        averages = () if average is None else average.variables
        self._updated = [*model.trainable_variables, *model.moving_variables, *averages]

    def __call__(self, images: Any, labels: Any, step: Any, repeat: Any, color_shift: Any = None) -> Any:
        """Trains on a batch; returns the mean loss of the batches of all workers, float32 [].

        Args:
            images: this host's, where they are trained on, as `Feed.load` gives them.
            labels: integers `[batch]`, this host's.
            step: int64 [], number of the step, from 0.
            repeat: int64 [], how many steps have used the batch before.
            color_shift: see `trainer.feed.COLOR_SHIFT`; None without.
        """
        # A TPU takes int32 only; the loop has checked that they are small.
        labels = tf.cast(labels, tf.int32)
        if self._feed is not None:
            images = self._feed.join(images)
            labels = self._feed.split(labels)
            color_shift = None if color_shift is None else self._feed.split(color_shift)
        losses = self._strategy.run(self._on_replica, args=(images, labels, step, repeat, color_shift))
        losses = self._strategy.experimental_local_results(losses)
        # Equal ones, but to be had only when the last of this host's replicas is done.
        with tf.device(HOST), tf.control_dependencies(losses):
            return tf.identity(losses[0])

    def _on_replica(self, images: Any, labels: Any, step: Any, repeat: Any, color_shift: Any) -> Any:
        options, model = self._options, self._model
        context = tf.distribute.get_replica_context()
        replica, replicas = context.replica_id_in_sync_group, context.num_replicas_in_sync
        images = prepare(images, color_shift, options.layout)
        if options.device_echo is not None and options.device_echo.reaugment:
            images = reaugment_repeat(images, repeat, options.device_echo.seed, step, replica, replicas)
        with tf.GradientTape() as tape:
            outputs = model(images, training=True, step=step, replica=replica)
            loss = training_loss(
                labels,
                outputs.main,
                outputs.auxiliary,
                model.regularized_variables,
                label_smoothing=options.label_smoothing,
                auxiliary_weight=options.auxiliary_weight,
                weight_decay=options.weight_decay,
            )
        gradients = tape.gradient(loss, list(model.trainable_variables))
        if replicas > 1:
            # Each replica has as many examples, so that the mean over replicas is that over the batch.
            loss, *gradients = context.all_reduce(tf.distribute.ReduceOp.MEAN, [loss, *gradients])
        self._optimizer.apply(gradients, self._schedule(step))
        update_moments(average_moments(outputs.moments))
        self._global_step.assign_add(1)
        if self._average is not None:
            self._average.update()
        # Read after the updates, because TensorFlow orders what is done to a variable, so that the loss comes
        # after them too. The values share the variables' memory.
        with tf.control_dependencies([variable.read_value() for variable in self._updated]):
            return tf.identity(loss)
