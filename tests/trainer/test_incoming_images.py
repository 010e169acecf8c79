from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from trainer.incoming_images import prepare

PICTURES = np.random.default_rng(0).integers(0, 256, (2, 3, 4, 3), np.uint8)
SHIFT = np.array([[0.1, -0.2, 0.0], [-1.0, 1.0, 0.3]], np.float32)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_transposed_images_are_turned_back(dtype: type) -> None:
    images = PICTURES.astype(dtype)
    turned = prepare(tf.constant(images.transpose(1, 2, 3, 0)), layout="hwcn")
    np.testing.assert_array_equal(turned, images)


def test_images_for_the_network_are_left_alone() -> None:
    images = tf.constant(PICTURES)
    assert prepare(images) is images


@pytest.mark.parametrize("layout", ["nhwc", "hwcn"])
def test_colours_are_shifted_after_the_images_are_turned_back(layout: str) -> None:
    images = PICTURES.transpose(1, 2, 3, 0) if layout == "hwcn" else PICTURES
    expected = np.clip(2 * (PICTURES / 255.0 + SHIFT[:, None, None, :]) - 1, -1, 1)
    found = prepare(tf.constant(images), tf.constant(SHIFT), layout)
    np.testing.assert_allclose(found, expected, atol=1e-6)
