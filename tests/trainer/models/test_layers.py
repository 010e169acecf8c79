from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from trainer.models.layers import Classifier, Convolution, he_stddev, truncated_normal


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


def test_convolution_computes_in_the_dtype_of_its_input_with_float32_variables() -> None:
    layer = Convolution(3, 8, (3, 3), "c", seed=0, strides=2, padding="VALID")
    outputs = layer(tf.ones([2, 9, 9, 3], tf.bfloat16), moments=[])
    assert (outputs.dtype, outputs.shape) == (tf.bfloat16, [2, 4, 4, 8])
    assert {variable.dtype for variable in layer.variables} == {tf.float32}
    assert float(tf.reduce_min(outputs)) >= 0


def test_padding_in_pixels_is_the_same_on_all_sides_and_relu_can_be_left_out() -> None:
    layer = Convolution(1, 1, (3, 3), "c", seed=0, strides=2, padding=1, relu=False)
    layer.kernel.assign(tf.reshape(tf.range(9.0), [3, 3, 1, 1]))
    layer.batch_norm.beta.assign([-100.0])
    inputs = np.arange(16, dtype=np.float32).reshape(4, 4)
    padded, kernel = np.pad(inputs, 1), np.arange(9).reshape(3, 3)
    expected = [[(padded[r : r + 3, c : c + 3] * kernel).sum() for c in (0, 2)] for r in (0, 2)]
    outputs = layer(tf.constant(inputs[None, :, :, None]), moments=None).numpy()[0, :, :, 0]
    # Averages of 0 and 1: only the root of 1 + epsilon and the offset are left of the normalisation.
    np.testing.assert_allclose(outputs, np.array(expected) / np.sqrt(1.001) - 100, rtol=1e-5)
    assert outputs.min() < 0


def test_classifier_takes_the_mean_over_the_grid() -> None:
    layer = Classifier(2, 3, "l", seed=0)
    layer.bias.assign([1.0, 2.0, 3.0])
    inputs = np.arange(16, dtype=np.float32).reshape(2, 2, 2, 2)
    expected = inputs.mean((1, 2)) @ layer.kernel.numpy() + [1.0, 2.0, 3.0]
    np.testing.assert_allclose(layer(tf.constant(inputs), training=True, step=0), expected, rtol=1e-5)


def dropped(layer: Classifier, step: int, training: bool = True, replica: int = 0) -> Any:
    """Which of the features are dropped: the kernel is the identity."""
    layer.kernel.assign(tf.eye(1000))
    inputs = tf.ones([1, 1, 1, 1000])
    return layer(inputs, training, tf.constant(step, tf.int64), tf.constant(replica)).numpy()[0]


def test_dropout_keeps_eight_tenths_scaled_and_repeats_with_the_step() -> None:
    layer = Classifier(1000, 1000, "l", seed=3, keep_rate=0.8)
    first = dropped(layer, step=5)
    assert set(np.round(first, 4)) == {np.float32(0.0), np.float32(1.25)}
    assert (first > 0).mean() == pytest.approx(0.8, abs=0.05)
    assert np.array_equal(first, dropped(layer, step=5))
    assert not np.array_equal(first, dropped(layer, step=6))
    other_seed = Classifier(1000, 1000, "l", seed=4, keep_rate=0.8)
    assert not np.array_equal(first, dropped(other_seed, step=5))


def test_dropout_differs_between_replicas_layers_and_swapped_numbers() -> None:
    layer = Classifier(1000, 1000, "l", seed=3, keep_rate=0.8)
    masks = [dropped(layer, step, replica=replica) for step, replica in ((5, 0), (5, 1), (1, 5), (5, 2))]
    masks.append(dropped(Classifier(1000, 1000, "other", seed=3, keep_rate=0.8), step=5))
    kept = np.array(masks) > 0
    for first, second in itertools.combinations(kept, 2):
        # Independent masks agree on 0.8^2 + 0.2^2 of the features.
        assert (first == second).mean() == pytest.approx(0.68, abs=0.06)


def test_dropout_under_xla_repeats_with_step_and_replica_for_a_seed_beyond_32_bits() -> None:
    layer = Classifier(1000, 1000, "l", seed=2**40, keep_rate=0.8)
    layer.kernel.assign(tf.eye(1000))
    inputs = tf.ones([1, 1, 1, 1000])
    call = tf.function(lambda step, replica: layer(inputs, True, step, replica), jit_compile=True)
    first, again, step, replica = (
        call(tf.constant(step, tf.int64), tf.constant(replica)).numpy()[0] > 0
        for step, replica in ((5, 1), (5, 1), (6, 1), (5, 0))
    )
    assert np.array_equal(first, again)
    assert first.mean() == pytest.approx(0.8, abs=0.05)
    assert not np.array_equal(first, step) and not np.array_equal(first, replica)


def test_dropout_is_off_in_evaluation() -> None:
    layer = Classifier(1000, 1000, "l", seed=3, keep_rate=0.8)
    assert dropped(layer, step=5, training=False).tolist() == [1.0] * 1000
