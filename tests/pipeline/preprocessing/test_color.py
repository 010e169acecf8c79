"""Colour distortions against the JPEG matrix, colorsys and NumPy."""

from __future__ import annotations

import colorsys
from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf

from pipeline.preprocessing.color import distort_color, distort_color_fast

CHANGES = {"brightness": 0.06, "saturation": 1.3, "hue": -0.15, "contrast": 0.8}


def in_hsv(change: Callable[..., tuple[float, float, float]]) -> Callable[[np.ndarray], np.ndarray]:
    def apply(image: np.ndarray) -> np.ndarray:
        pixels = [colorsys.hsv_to_rgb(*change(*colorsys.rgb_to_hsv(*rgb))) for rgb in image.reshape(-1, 3)]
        return np.array(pixels).reshape(image.shape)

    return apply


BY_HAND = {
    "brightness": lambda image: image + 0.06,
    "saturation": in_hsv(lambda h, s, v: (h, min(s * 1.3, 1.0), v)),
    "hue": in_hsv(lambda h, s, v: ((h - 0.15) % 1.0, s, v)),
    "contrast": lambda image: (image - image.mean(axis=(0, 1))) * 0.8 + image.mean(axis=(0, 1)),
}


@pytest.fixture
def colours() -> np.ndarray:
    """Colours that no change takes out of the range."""
    return np.random.default_rng(0).uniform(0.3, 0.7, (6, 5, 3)).astype(np.float32)


def test_fast_distortion_shifts_each_channel_by_the_jpeg_matrix(both_ways):
    result = both_ways(distort_color_fast, np.full((1, 1, 3), 0.5, np.float32), 0.1, 0.05, -0.02)
    expected = [
        0.5 + 0.1 + 1.402 * -0.02,
        0.5 + 0.1 - 0.344136 * 0.05 - 0.714136 * -0.02,
        0.5 + 0.1 + 1.772 * 0.05,
    ]
    np.testing.assert_allclose(result[0, 0], expected, atol=1e-6)


def test_fast_distortion_equals_a_shift_in_ycbcr(colours):
    to_rgb = np.array([[1, 0, 1.402], [1, -0.344136, -0.714136], [1, 1.772, 0]])
    ycbcr = colours @ np.linalg.inv(to_rgb).T + [0.05, -0.08, 0.04]
    np.testing.assert_allclose(distort_color_fast(colours, 0.05, -0.08, 0.04), ycbcr @ to_rgb.T, atol=1e-5)


def test_fast_distortion_clips_to_the_unit_range():
    assert distort_color_fast(tf.ones([2, 2, 3]), 0.1, 0.0, 0.0).numpy().max() == 1.0
    assert distort_color_fast(tf.zeros([2, 2, 3]), -0.1, 0.0, 0.0).numpy().min() == 0.0


@pytest.mark.parametrize(
    ("ordering", "order"),
    [
        (None, "brightness saturation"),
        (0, "brightness saturation hue contrast"),
        (1, "saturation brightness contrast hue"),
        (2, "contrast hue brightness saturation"),
        (3, "hue saturation contrast brightness"),
    ],
)
def test_full_distortion_makes_its_changes_in_the_order_drawn(ordering, order, colours, both_ways):
    expected = colours.astype(float)
    for name in order.split():
        expected = BY_HAND[name](expected)
    assert 0.0 < expected.min() < expected.max() < 1.0
    if ordering is None:
        result = both_ways(lambda image: distort_color(image, CHANGES), colours)
    else:
        result = both_ways(lambda image, place: distort_color(image, CHANGES, place), colours, ordering)
    np.testing.assert_allclose(result, expected, atol=1e-5)


@pytest.mark.parametrize("ordering", [None, 0, 1, 2, 3])
def test_full_distortion_clips_to_the_unit_range(ordering):
    image = np.random.default_rng(1).uniform(0, 1, (9, 9, 3)).astype(np.float32)
    changes = {"brightness": 32 / 255, "saturation": 1.5, "hue": 0.2, "contrast": 1.5}
    result = distort_color(image, changes, ordering).numpy()
    assert result.min() == 0.0
    assert result.max() == 1.0
