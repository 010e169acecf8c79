"""Averages of gradients, and what happens to stale ones."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from echoing.errors import OptionError
from trainer.sync_replicas.gradient_accumulators import Accumulated, GradientAccumulators


@pytest.fixture
def accumulators():
    variables = [tf.Variable([0.0, 0.0], name="weights"), tf.Variable(0.0, name="bias")]
    made = GradientAccumulators(variables, step=7)
    yield made
    made.release()


def test_gradients_of_one_step_are_averaged_for_every_variable(accumulators):
    assert accumulators.push([np.float32([1, 2]), np.float32(3)], 7) == Accumulated(True, 1)
    assert accumulators.push([np.float32([3, 6]), np.float32(5)], 7) == Accumulated(True, 2)
    weights, bias = accumulators.take(2)
    np.testing.assert_array_equal(weights, [2, 4])
    assert float(bias) == 4


def test_gradients_of_an_earlier_step_are_dropped(accumulators):
    assert accumulators.push([np.float32([1, 2]), np.float32(3)], 6) == Accumulated(False, 0)
    assert accumulators.push([np.float32([1, 2]), np.float32(3)], 7) == Accumulated(True, 1)
    accumulators.take(1)
    assert accumulators.push([np.float32([1, 2]), np.float32(3)], 7) == Accumulated(False, 0)
    assert accumulators.push([np.float32([1, 2]), np.float32(3)], 8) == Accumulated(True, 1)


def test_sparse_gradients_are_made_dense(accumulators):
    sparse = tf.IndexedSlices(tf.constant([5.0]), tf.constant([1]), tf.constant([2]))
    accumulators.push([sparse, tf.constant(0.0)], 7)
    np.testing.assert_array_equal(accumulators.take(1)[0], [0, 5])


def test_accumulators_of_equal_shape_are_not_the_same_one():
    variables = [tf.Variable(0.0), tf.Variable(0.0)]
    first, second = (GradientAccumulators(variables, step=0) for _ in range(2))
    first.push([np.float32(1), np.float32(2)], 0)
    second.push([np.float32(3), np.float32(4)], 0)
    assert [float(one) for one in first.take(1)] == [1, 2]
    assert [float(one) for one in second.take(1)] == [3, 4]


@pytest.mark.parametrize(
    "gradients, message",
    [
        ([np.float32([1, 2])], "number of gradients is 1, but must be 2: one for each variable"),
        ([np.float32([1, 2]), None], "gradient of bias.* is None.*unconnected_gradients"),
        ([np.float32([1, 2, 3]), np.float32(0)], r"gradient of weights.*float32 \(3,\).*float32 \(2,\)"),
        ([np.float64([1, 2]), np.float32(0)], "gradient of weights.*float64"),
    ],
)
def test_gradients_that_do_not_fit_are_refused_and_leave_nothing(accumulators, gradients, message):
    with pytest.raises(OptionError, match=message):
        accumulators.push(gradients, 7)
    assert accumulators.push([np.float32([1, 2]), np.float32(3)], 7).waiting == 1


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-1000, 1000)), max_size=20))
def test_what_is_taken_is_the_mean_of_what_was_not_stale(pushes):
    accumulators = GradientAccumulators([tf.Variable(0.0)], step=2)
    for step, value in pushes:
        accumulators.push([np.float32(value)], step)
    fresh = [value for step, value in pushes if step >= 2]
    if fresh:
        assert float(accumulators.take(len(fresh))[0]) == pytest.approx(sum(fresh) / len(fresh), rel=1e-5)
    accumulators.release()
