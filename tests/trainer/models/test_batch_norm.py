from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from echoing.errors import OptionError
from trainer.models.batch_norm import BatchNorm, BatchNormOptions, Moments


@pytest.fixture
def inputs() -> Any:
    return np.random.default_rng(0).normal(3, 2, (4, 5, 5, 2)).astype(np.float32)


def test_training_normalises_by_the_batch_and_measures_its_moments(inputs: Any) -> None:
    norm = BatchNorm(2, "n")
    norm.beta.assign([1.0, -1.0])
    moments: list[Moments] = []
    outputs = norm(tf.constant(inputs), moments).numpy()
    mean, variance = inputs.mean((0, 1, 2)), inputs.var((0, 1, 2))
    expected = (inputs - mean) / np.sqrt(variance + 1e-3) + [1.0, -1.0]
    np.testing.assert_allclose(outputs, expected, atol=1e-4)
    (measured,) = moments
    assert measured.batch_norm is norm
    np.testing.assert_allclose(measured.mean, mean, rtol=1e-5)
    np.testing.assert_allclose(measured.variance, inputs.var((0, 1, 2), ddof=1), rtol=1e-5)


def test_call_assigns_nothing(inputs: Any) -> None:
    norm = BatchNorm(2, "n")
    norm(tf.constant(inputs), [])
    assert norm.moving_mean.numpy().tolist() == [0, 0]
    assert norm.moving_variance.numpy().tolist() == [1, 1]


def test_updates_move_the_averages_by_what_the_decay_leaves() -> None:
    norm = BatchNorm(2, "n")
    mean, variance = np.zeros(2), np.ones(2)
    for step in range(3):
        new_mean, new_variance = np.array([step + 1.0, -2.0]), np.array([0.5, 4.0 * step])
        norm.update(tf.constant(new_mean, tf.float32), tf.constant(new_variance, tf.float32))
        mean = 0.996 * mean + 0.004 * new_mean
        variance = 0.996 * variance + 0.004 * new_variance
    np.testing.assert_allclose(norm.moving_mean.numpy(), mean, rtol=1e-5)
    np.testing.assert_allclose(norm.moving_variance.numpy(), variance, rtol=1e-5)


def test_evaluation_uses_the_averages_and_leaves_them() -> None:
    norm = BatchNorm(1, "n")
    norm.moving_mean.assign([2.0])
    norm.moving_variance.assign([4.0])
    outputs = norm(tf.fill([1, 1, 1, 1], 6.0), None)
    assert float(tf.reshape(outputs, [])) == pytest.approx(4 / np.sqrt(4.001), rel=1e-5)
    assert norm.moving_mean.numpy().tolist() == [2.0]


def test_decay_epsilon_and_scale_are_options(inputs: Any) -> None:
    norm = BatchNorm(2, "n", BatchNormOptions(decay=0.5, epsilon=1.0), initial_scale=3.0)
    outputs = norm(tf.constant(inputs), []).numpy()
    expected = 3 * (inputs - inputs.mean((0, 1, 2))) / np.sqrt(inputs.var((0, 1, 2)) + 1)
    np.testing.assert_allclose(outputs, expected, atol=1e-4)
    norm.update(tf.constant([4.0, 8.0]), tf.constant([3.0, 1.0]))
    assert norm.moving_mean.numpy().tolist() == [2, 4]
    assert norm.moving_variance.numpy().tolist() == [2, 1]


def test_scale_is_trained_if_there_is_one_and_averages_never_are() -> None:
    def names(norm: BatchNorm) -> set[str]:
        return {variable.name for variable in norm.trainable_variables}

    assert names(BatchNorm(2, "n")) == {"n/BatchNorm/beta:0"}
    assert names(BatchNorm(2, "n", initial_scale=0.0)) == {"n/BatchNorm/beta:0", "n/BatchNorm/gamma:0"}


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("batch_norm_decay", {"decay": 1.1}),
        ("batch_norm_decay", {"decay": -0.1}),
        ("batch_norm_epsilon", {"epsilon": 0.0}),
        ("batch_norm_epsilon", {"epsilon": float("nan")}),
    ],
)
def test_option_out_of_range_is_refused_by_the_name_that_the_user_knows(option: str, values: Any) -> None:
    with pytest.raises(OptionError, match=option):
        BatchNormOptions(**values)
