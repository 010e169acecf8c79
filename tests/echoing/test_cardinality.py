"""Declared lengths: what tf.data says of them, and that the elements stay."""

from __future__ import annotations

import pytest
import tensorflow as tf

from echoing.cardinality import declare_length


def with_unknown_length(count: int) -> tf.data.Dataset:
    return tf.data.Dataset.range(count).filter(lambda x: x >= 0)


@pytest.mark.parametrize(
    "length", [5, 0, 3, tf.data.INFINITE_CARDINALITY, tf.data.UNKNOWN_CARDINALITY], ids=str
)
def test_declared_length_is_what_tf_data_says(length):
    assert int(declare_length(with_unknown_length(5), length).cardinality()) == length


@pytest.mark.parametrize("length", [5, tf.data.UNKNOWN_CARDINALITY, tf.data.INFINITE_CARDINALITY], ids=str)
def test_elements_stay_as_they_are(length):
    declared = declare_length(with_unknown_length(5), length)
    assert [int(value) for value in declared] == [0, 1, 2, 3, 4]
