"""An echo with its accounts: for `keras.Model.fit` and training loops of one's own."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from echoing.echo_operator import echo
from echoing.elastic import ElasticController, ElasticOptions
from echoing.freshness import FreshnessReport, FreshnessTracker
from echoing.wait_meter import WaitMeter, as_the_consumer_asks

MAX_PENDING_BATCHES = 10_000
"""Batches whose ids wait to be counted; beyond, those of further batches are left out and said to be."""


class MeasuredEcho:
    """Echoes a dataset, counts fresh and repeated examples, and drives an elastic factor.

    Two transformations belong together: `echo`, where the echo stands, and `measure`, the last one::

        measured = MeasuredEcho(2, shuffle_buffer_size=10_000)
        dataset = (
            dataset.apply(measured.echo)  # elements become (tags, element)
            .map(lambda tags, element: (tags, augment(element)))
            .batch(256)
            .prefetch(2)
            .apply(measured.measure)  # the element alone again
        )

    Call `on_step` after every training step (`EchoCallback` does it in Keras). A number as the factor is
    fixed; `ElasticOptions` let it follow what the device would otherwise spend on waiting.

    The accounts live in this process: behind the tf.data service, apply `measure` after `distribute`, and use
    a fixed factor. Measuring costs some tens of microseconds a batch.

    Args:
        factor: a number >= 1, or the options of an elastic factor.
        shuffle_buffer_size: elements in the shuffle buffer after the echo; 0 leaves it out.
        seed: seed of the shuffle.
        records: records in the data set, for the effective epochs; None if not known.
        clock: monotonic seconds; for tests.

    Raises:
        OptionError: a value is not allowed.
    """

    def __init__(
        self,
        factor: object,
        *,
        shuffle_buffer_size: int = 0,
        seed: int | None = None,
        records: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.controller = ElasticController(factor) if isinstance(factor, ElasticOptions) else None
        self.variable: tf.Variable | None = None
        if self.controller is not None:
            self.variable = tf.Variable(self.controller.factor, trainable=False, name="echo_factor")
        self._echo = echo(
            factor if self.variable is None else self.variable,
            shuffle_buffer_size=shuffle_buffer_size,
            seed=seed,
            with_repeat_index=True,
        )
        # 15 buffers back almost no use is still to come; see FreshnessTracker.
        self._tracker = FreshnessTracker(max(100_000, 15 * shuffle_buffer_size), records)
        self._meter = WaitMeter()
        self._pending = tf.queue.FIFOQueue(MAX_PENDING_BATCHES, [tf.int64, tf.int64])
        self._dropped = tf.Variable(0, dtype=tf.int64, trainable=False)
        self._clock = clock
        self._last_seconds: float | None = None

    def echo(self, dataset: tf.data.Dataset) -> tf.data.Dataset:
        """Returns `(tags, element)` pairs; tags are `example_id` and `repeat_index`, scalar int64.

        Length, order and determinism are those of `echoing.echo`.
        """
        return dataset.enumerate().apply(self._echo).map(_tag)

    def measure(self, dataset: tf.data.Dataset) -> tf.data.Dataset:
        """Returns the elements of `(tags, element)` pairs and keeps accounts of the tags and of the wait."""
        return dataset.apply(self._meter).map(self._count).with_options(as_the_consumer_asks())

    def on_step(self) -> float | None:
        """Takes in the training steps since the last call; returns the factor for what comes next.

        Returns:
            The elastic factor, or None where the factor is a fixed number.
        """
        now = self._clock()
        reading = self._meter.read()
        fresh = trained = 0
        for _ in range(int(self._pending.size())):
            ids, repeats = (tensor.numpy() for tensor in self._pending.dequeue())
            self._tracker.update(ids, repeats)
            fresh += int(np.count_nonzero(repeats == 0))
            trained += int(repeats.size)
        elapsed = None if self._last_seconds is None else now - self._last_seconds
        self._last_seconds = now
        if self.controller is None or self.variable is None:
            return None
        # The first step holds compilation and empty buffers: it is counted but says nothing of the wait.
        if elapsed is not None and reading.elements:
            busy_seconds = max(0.0, elapsed - reading.wait_seconds)
            for _ in range(reading.elements):
                self.controller.observe(
                    reading.wait_seconds / reading.elements,
                    busy_seconds / reading.elements,
                    fresh // reading.elements,
                    trained // reading.elements,
                )
            self.variable.assign(self.controller.factor)
        return self.controller.factor

    def pause(self) -> None:
        """Says that what comes next is no training, such as an evaluation: its time is not a step's."""
        self._last_seconds = None

    def report(self) -> FreshnessReport:
        """Returns the accounts of the batches taken in by `on_step`."""
        return self._tracker.report()

    @property
    def uncounted_batches(self) -> int:
        """Batches that are missing from the report because `on_step` was not called for too long."""
        return int(self._dropped.numpy())

    def _count(self, tags: dict[str, Any], element: Any) -> Any:
        ids = tf.reshape(tags["example_id"], [-1])
        repeats = tf.reshape(tags["repeat_index"], [-1])
        counted = tf.cond(
            self._pending.size() < MAX_PENDING_BATCHES,
            lambda: _done(self._pending.enqueue([ids, repeats])),
            lambda: _done(self._dropped.assign_add(1)),
        )
        with tf.control_dependencies([counted]):
            return tf.nest.map_structure(tf.identity, element, expand_composites=True)


def _tag(repeat_index: Any, numbered: Any) -> Any:
    example_id, element = numbered
    return {"example_id": example_id, "repeat_index": repeat_index}, element


def _done(operation: Any) -> Any:
    with tf.control_dependencies([operation]):
        return tf.constant(True)
