"""Batches for the replicas of a distribution strategy: each of this host's replicas gets an equal part."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from trainer.feed import any_size, batch_axis
from trainer.time_stamp import time_stamp
from trainer.transfer import HOST, Transfer


class ReplicaFeed:
    """Splits the batches of one plain iterator over the replicas of this host.

    The dataset is not distributed: a distributed iterator cannot be checkpointed, and its input cannot be
    measured.

    Args:
        strategy: a `tf.distribute.Strategy`.
        parts: its replicas on this host.
        layout: of the images, `nhwc` or `hwcn`.
        times_transfer: whether the copy to the devices is a step of its own that is timed. Not on a TPU,
            where a program takes its input along.
    """

    def __init__(self, strategy: Any, parts: int, layout: str = "nhwc", times_transfer: bool = True) -> None:
        self._strategy = strategy
        self._axis = batch_axis(layout)
        self._times_transfer = times_transfer
        self.parts = parts

    def split(self, values: Any, axis: int = 0) -> Any:
        """Returns a value a replica: equal parts of a tensor, in the order of the replicas.

        Args:
            values: a tensor whose size along `axis` is a multiple of `parts`.
            axis: that of the examples.
        """
        return self.join(tf.split(values, self.parts, axis))

    def join(self, parts: Sequence[Any]) -> Any:
        """Returns a value a replica from a tensor for each, in the order of the replicas."""
        return per_replica(self._strategy, parts)

    def load(self, batch: Mapping[str, Any], arrived: Any) -> tuple[dict[str, Any], Transfer]:
        """See `trainer.feed.Feed.load`; the images become a tuple of parts, for `join`."""
        if not self._times_transfer:
            parts = tuple(tf.split(batch["image"], self.parts, self._axis))
            return {**batch, "image": parts}, Transfer.at(arrived)

        def copy(part: Any) -> tuple[Any, Any]:
            copied = tf.identity(part)
            return copied, tf.math.abs(tf.reduce_sum(tf.cast(copied[:1, :1, :1, :1], tf.float32)))

        split = self.split(batch["image"], self._axis)
        images, corners = map(
            self._strategy.experimental_local_results, self._strategy.run(copy, args=(split,))
        )
        # Read on the host and reported, because what nobody reads is optimised away.
        with tf.device(HOST):
            probe = tf.add_n(corners)
            with tf.control_dependencies([probe]):
                started = time_stamp()
        return {**batch, "image": images}, Transfer(arrived, started, probe)

    def room(self, shape: Any, dtype: Any, batch_axis: int) -> ReplicaRoom:
        """See `trainer.feed.Feed.room`."""
        return ReplicaRoom(self._strategy, self.parts, shape, dtype, batch_axis)

    def place(self) -> Any:
        """See `trainer.feed.Feed.place`: the step function runs on the replicas by itself."""
        return contextlib.nullcontext()

    def done(self, loss: Any) -> Any:
        """See `trainer.feed.Feed.done`; one loss a replica."""
        # As on one device: each device computes something after its updates, which the host then reads.
        pairs = self._strategy.run(lambda value: tf.stack([value, value]), args=(loss,))
        with tf.device(HOST):
            return tf.concat(self._strategy.experimental_local_results(pairs), axis=0)


class ReplicaRoom:
    """Room in the memory of every replica of this host: a variable that each replica has for itself.

    Args:
        strategy: a `tf.distribute.Strategy`.
        parts: its replicas on this host.
        shape: of the images of a whole batch of this host.
        dtype: theirs.
        batch_axis: axis of the examples.
    """

    def __init__(self, strategy: Any, parts: int, shape: Any, dtype: Any, batch_axis: int) -> None:
        self._strategy, self._parts = strategy, parts
        sizes = [size // parts if axis == batch_axis and size else size for axis, size in enumerate(shape)]
        self._shape = tf.TensorShape(sizes)
        # A TPU's variables cannot change their shape, so that room for a batch of a known size stays
        # allocated; it is freed with the loop.
        self._is_fixed = self._shape.is_fully_defined()
        empty = [0 if axis == batch_axis else size or 0 for axis, size in enumerate(sizes)]
        self._empty = sizes if self._is_fixed else empty
        with strategy.scope():
            self._images = tf.Variable(
                tf.zeros(self._empty, dtype),
                trainable=False,
                shape=self._shape if self._is_fixed else any_size(self._shape, batch_axis),
                synchronization=tf.VariableSynchronization.ON_READ,
                aggregation=tf.VariableAggregation.NONE,
            )

    def assign(self, images: Any) -> Any:
        """See `trainer.feed.Room.assign`."""

        def assign(part: Any) -> Any:
            with tf.control_dependencies([self._images.assign(part, read_value=False)]):
                return tf.constant(True)

        done = self._strategy.run(assign, args=(per_replica(self._strategy, images),))
        return tf.group(*self._strategy.experimental_local_results(done))

    def use(self) -> Any:
        """See `trainer.feed.Room.use`; a tuple of parts, as of `ReplicaFeed.load`."""

        def read() -> Any:
            part = self._images.read_value()
            part.set_shape(self._shape)
            return part

        return self._strategy.experimental_local_results(self._strategy.run(read))

    def clear(self) -> Any:
        """See `trainer.feed.Room.clear`."""
        if self._is_fixed:
            return tf.no_op()
        return self.assign([tf.zeros(self._empty, self._images.dtype)] * self._parts)


def per_replica(strategy: Any, parts: Sequence[Any]) -> Any:
    """Returns a value a replica of this host from a tensor for each.

    Replicas are numbered over all workers, but only this worker's are asked for.
    """
    return strategy.experimental_distribute_values_from_function(
        lambda context: parts[context.replica_id_in_sync_group % len(parts)]
    )
