"""Scaling and shifting on the device, against NumPy and against the host's own preprocessing."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from trainer.device_color import scale_and_shift

IMAGES = np.arange(2 * 4 * 5 * 3, dtype=np.uint8).reshape(2, 4, 5, 3) * 2
SHIFTS = np.array([[0.1, -0.2, 0.0], [-0.5, 0.5, 0.05]], np.float32)


@pytest.mark.parametrize("compiled", [False, True])
def test_images_are_scaled_shifted_and_clipped(compiled):
    function = tf.function(scale_and_shift, jit_compile=compiled)
    result = function(tf.constant(IMAGES), tf.constant(SHIFTS)).numpy()
    expected = np.clip((IMAGES / 255.0 + SHIFTS[:, None, None, :]).clip(0, 1) * 2 - 1, -1, 1)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, expected, atol=1e-6)


def test_without_a_shift_images_are_only_scaled():
    result = scale_and_shift(tf.constant([[[[0, 51, 255]]]], tf.uint8)).numpy()
    np.testing.assert_allclose(result, [[[[-1.0, -0.6, 1.0]]]], atol=1e-6)


def test_the_layer_takes_what_the_pipeline_delivers_and_is_saved_with_a_model(tmp_path):
    import keras

    from trainer.color_layer import ScaleAndShift

    inputs = {"image": keras.Input((4, 5, 3), dtype="uint8"), "color_shift": keras.Input((3,))}
    model = keras.Model(inputs, ScaleAndShift()(inputs))
    batch = {"image": IMAGES, "color_shift": SHIFTS}
    expected = scale_and_shift(tf.constant(IMAGES), tf.constant(SHIFTS)).numpy()
    np.testing.assert_allclose(model(batch), expected, atol=1e-6)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded(batch), expected, atol=1e-6)
    np.testing.assert_allclose(ScaleAndShift()(IMAGES), scale_and_shift(tf.constant(IMAGES)), atol=1e-6)
