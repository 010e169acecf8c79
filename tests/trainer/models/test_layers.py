from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from trainer.models.layers import BatchNorm, Classifier, Convolution, he_stddev, truncated_normal


def test_initial_values_depend_on_seed_and_name_only() -> None:
    first = truncated_normal((3, 3), 1.0, seed=7, name="a").numpy()
    assert np.array_equal(first, truncated_normal((3, 3), 1.0, seed=7, name="a").numpy())
    assert not np.array_equal(first, truncated_normal((3, 3), 1.0, seed=8, name="a").numpy())
    assert not np.array_equal(first, truncated_normal((3, 3), 1.0, seed=7, name="b").numpy())


def test_initial_kernel_has_variance_two_over_fan_in_after_the_cut() -> None:
    shape = (3, 3, 64, 128)
    kernel = truncated_normal(shape, he_stddev(shape), seed=0, name="k").numpy()
    # A normal distribution cut at two standard deviations keeps a variance of 0.774; 1.3 makes up for it.
    assert kernel.var() == pytest.approx(1.3 * 0.774 * 2 / (3 * 3 * 64), rel=0.02)
    assert abs(kernel).max() <= 2 * he_stddev(shape)


def test_batch_norm_in_training_normalises_by_the_batch_and_moves_the_averages() -> None:
    inputs = np.random.default_rng(0).normal(3, 2, (4, 5, 5, 2)).astype(np.float32)
    norm = BatchNorm(2, "n")
    norm.beta.assign([1.0, -1.0])
    outputs = norm(tf.constant(inputs), training=True).numpy()
    mean, variance = inputs.mean((0, 1, 2)), inputs.var((0, 1, 2))
    expected = (inputs - mean) / np.sqrt(variance + 1e-3) + [1.0, -1.0]
    np.testing.assert_allclose(outputs, expected, atol=1e-4)
    np.testing.assert_allclose(norm.moving_mean.numpy(), 0.004 * mean, rtol=1e-4)
    unbiased = inputs.var((0, 1, 2), ddof=1)
    np.testing.assert_allclose(norm.moving_variance.numpy(), 0.996 + 0.004 * unbiased, rtol=1e-5)


def test_batch_norm_in_evaluation_uses_the_averages_and_leaves_them() -> None:
    norm = BatchNorm(1, "n")
    norm.moving_mean.assign([2.0])
    norm.moving_variance.assign([4.0])
    outputs = norm(tf.fill([1, 1, 1, 1], 6.0), training=False)
    assert float(tf.reshape(outputs, [])) == pytest.approx(4 / np.sqrt(4.001), rel=1e-5)
    assert norm.moving_mean.numpy().tolist() == [2.0]


def test_convolution_computes_in_the_dtype_of_its_input_with_float32_variables() -> None:
    layer = Convolution(3, 8, (3, 3), "c", seed=0, strides=2, padding="VALID")
    outputs = layer(tf.ones([2, 9, 9, 3], tf.bfloat16), training=True)
    assert (outputs.dtype, outputs.shape) == (tf.bfloat16, [2, 4, 4, 8])
    assert {variable.dtype for variable in layer.variables} == {tf.float32}
    assert float(tf.reduce_min(outputs)) >= 0


def test_classifier_takes_the_mean_over_the_grid() -> None:
    layer = Classifier(2, 3, "l", seed=0)
    layer.bias.assign([1.0, 2.0, 3.0])
    inputs = np.arange(16, dtype=np.float32).reshape(2, 2, 2, 2)
    expected = inputs.mean((1, 2)) @ layer.kernel.numpy() + [1.0, 2.0, 3.0]
    np.testing.assert_allclose(layer(tf.constant(inputs), training=True, step=0), expected, rtol=1e-5)


def dropped(layer: Classifier, step: int, training: bool = True) -> np.ndarray:  # type: ignore[type-arg]
    """Which of the features are dropped: the kernel is the identity."""
    layer.kernel.assign(tf.eye(1000))
    inputs = tf.ones([1, 1, 1, 1000])
    return layer(inputs, training=training, step=tf.constant(step, tf.int64)).numpy()[0]


def test_dropout_keeps_eight_tenths_scaled_and_repeats_with_the_step() -> None:
    layer = Classifier(1000, 1000, "l", seed=3, keep_rate=0.8)
    first = dropped(layer, step=5)
    assert set(np.round(first, 4)) == {np.float32(0.0), np.float32(1.25)}
    assert (first > 0).mean() == pytest.approx(0.8, abs=0.05)
    assert np.array_equal(first, dropped(layer, step=5))
    assert not np.array_equal(first, dropped(layer, step=6))
    other_seed = Classifier(1000, 1000, "l", seed=4, keep_rate=0.8)
    assert not np.array_equal(first, dropped(other_seed, step=5))


def test_dropout_is_off_in_evaluation() -> None:
    layer = Classifier(1000, 1000, "l", seed=3, keep_rate=0.8)
    assert dropped(layer, step=5, training=False).tolist() == [1.0] * 1000
