"""Saying how long a dataset is, where tf.data cannot know it."""

from __future__ import annotations

import tensorflow as tf


def declare_length(dataset: tf.data.Dataset, length: int) -> tf.data.Dataset:
    """Returns the same elements under a known cardinality, which `flat_map` leaves unknown.

    `assert_cardinality` is not used: it fails where the input is split behind our back, as the tf.data
    service does with dynamic sharding. This informs tf.data and asserts nothing.

    Args:
        dataset: the elements, at least `length` of them if it is a number of elements.
        length: number of elements, or `tf.data.INFINITE_CARDINALITY` or `tf.data.UNKNOWN_CARDINALITY`.
    """
    if length == tf.data.UNKNOWN_CARDINALITY:
        return dataset
    # A dataset that says it is infinite but holds nothing: an infinite one after `skip(-1)`, which skips all.
    endless = dataset.concatenate(dataset.repeat().skip(-1))
    return endless if length == tf.data.INFINITE_CARDINALITY else endless.take(length)
