"""Measures, inside tf.data, how long the consumer of a dataset waits for each element."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf


class WaitReading(NamedTuple):
    """What was waited for since the last reading.

    Attributes:
        elements: elements taken.
        wait_seconds: time that the consumer waited for them.
    """

    elements: int
    wait_seconds: float


class WaitMeter:
    """The last transformation of a dataset: `dataset.prefetch(2).apply(meter)`.

    The wait is the time between the consumer's request and the arrival of the element from the transformation
    before. It is measured where `keras.Model.fit` and compiled loops take their batches, out of Python's
    sight. Length, order and structure stay as they are.

    The sums live in variables of this process, so a dataset with a meter cannot be shipped to the tf.data
    service (put the meter behind `distribute`) and asks for an external state policy in checkpoints, which is
    set to WARN. TensorFlow's clock is the wall clock (`tf.timestamp`): a jump of the system's clock shows up
    in one reading.
    """

    def __init__(self) -> None:
        self._elements = tf.Variable(0, dtype=tf.int64, trainable=False)
        self._wait_seconds = tf.Variable(0.0, dtype=tf.float64, trainable=False)
        self._read_elements = 0
        self._read_wait_seconds = 0.0

    def __call__(self, dataset: tf.data.Dataset) -> tf.data.Dataset:
        """Returns the same elements, measured."""
        # `zip` asks its inputs in turn, so this stamp is taken when the consumer asks.
        asked = tf.data.Dataset.range(1).repeat().map(lambda _: tf.timestamp())
        measured = tf.data.Dataset.zip((asked, dataset)).map(self._note)
        return measured.with_options(as_the_consumer_asks())

    def read(self) -> WaitReading:
        """Returns what was added since the last reading."""
        elements, wait_seconds = int(self._elements.numpy()), float(self._wait_seconds.numpy())
        reading = WaitReading(elements - self._read_elements, wait_seconds - self._read_wait_seconds)
        self._read_elements, self._read_wait_seconds = elements, wait_seconds
        return reading

    def _note(self, asked_seconds: Any, element: Any) -> Any:
        waited = tf.maximum(tf.timestamp() - asked_seconds, 0.0)
        added = [self._elements.assign_add(1), self._wait_seconds.assign_add(waited)]
        with tf.control_dependencies(added):
            return tf.nest.map_structure(tf.identity, element, expand_composites=True)


def as_the_consumer_asks() -> tf.data.Options:
    """Returns options for accounts at the end of a dataset: what is counted is what was taken.

    A prefetch or parallel calls of tf.data's own would ask before the consumer does. The accounts are state
    of this process, about which checkpoints have to be told: the policy is WARN.
    """
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    options.experimental_optimization.map_parallelization = False
    options.experimental_external_state_policy = tf.data.experimental.ExternalStatePolicy.WARN
    return options
