"""Resizing against NumPy on both grids, and against Pillow where the two mean the same."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from pipeline.preprocessing.resize import METHODS, resize, resize_bilinear, resize_bilinear_part

SIZES = [(13, 7), (5, 5), (1, 9), (40, 60)]


@pytest.mark.parametrize("half_pixel_centers", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_bilinear_samples_on_the_grid_asked_for(
    size, half_pixel_centers, picture, bilinear_by_hand, both_ways
):
    image = picture(20, 30)
    result = both_ways(lambda pixels: resize_bilinear(pixels, *size, half_pixel_centers), image)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, bilinear_by_hand(image, *size, half_pixel_centers), atol=1e-3)


def test_the_default_grid_is_the_references(picture):
    image = picture(23, 31)
    scaled = tf.image.convert_image_dtype(image, tf.float32)
    reference = tf.compat.v1.image.resize_images(scaled, [17, 19], method=0)
    np.testing.assert_allclose(resize_bilinear(image, 17, 19) / 255.0, reference, atol=1e-6)
    assert np.abs(tf.image.resize(scaled, [17, 19]) - reference).max() > 0.1


@pytest.mark.parametrize("size", SIZES)
def test_nearest_takes_the_pixel_before(size, picture, both_ways):
    image = picture(20, 30)
    rows = np.arange(size[0]) * 20 // size[0]
    columns = np.arange(size[1]) * 30 // size[1]
    result = both_ways(lambda pixels, method: resize(pixels, *size, method), image, 1)
    np.testing.assert_array_equal(result, image[rows][:, columns])


def area_weights(source: int, target: int) -> np.ndarray:
    """The matrix [target, source] of shares that source pixels have in the area of each target pixel."""
    scale = source / target
    begin = np.arange(target)[:, None] * scale
    pixel = np.arange(source)[None, :]
    overlap = np.minimum(begin + scale, pixel + 1) - np.maximum(begin, pixel)
    return np.maximum(overlap, 0) / scale


@pytest.mark.parametrize("size", SIZES)
def test_area_is_the_mean_over_the_target_pixels_area(size, picture, both_ways):
    image = picture(20, 30)
    expected = np.einsum("ij,jkc,lk->ilc", area_weights(20, size[0]), image, area_weights(30, size[1]))
    result = both_ways(lambda pixels, method: resize(pixels, *size, method), image, 3)
    np.testing.assert_allclose(result, expected, atol=0.01)


def keys_weights(source: int, target: int, a: float = -0.75) -> np.ndarray:
    """Keys' cubic convolution on the reference's grid, the border pixels repeated."""
    weights = np.zeros((target, source))
    for index in range(target):
        position = index * source / target
        for tap in range(int(position) - 1, int(position) + 3):
            x = abs(position - tap)
            near = (a + 2) * x**3 - (a + 3) * x**2 + 1
            far = a * (x**3 - 5 * x**2 + 8 * x - 4)
            weights[index, min(max(tap, 0), source - 1)] += near if x <= 1 else far
    return weights


@pytest.mark.parametrize("size", SIZES)
def test_bicubic_is_keys_convolution(size, picture, both_ways):
    image = picture(20, 30)
    expected = np.einsum("ij,jkc,lk->ilc", keys_weights(20, size[0]), image, keys_weights(30, size[1]))
    result = both_ways(lambda pixels, method: resize(pixels, *size, method), image, 2)
    # TensorFlow looks weights up in a table of 1,024 places a pixel: half a grey level on noise.
    np.testing.assert_allclose(result, expected, atol=0.5)


@pytest.mark.parametrize(
    ("method", "pillow", "tolerance"),
    [
        ("bilinear", Image.Resampling.BILINEAR, 0.01),
        ("nearest", Image.Resampling.NEAREST, 0),
        ("bicubic", Image.Resampling.BICUBIC, 0.5),
    ],
)
def test_enlarging_with_half_pixel_centres_equals_pillow(method, pillow, tolerance, picture):
    # Pillow smooths when it shrinks, TensorFlow does not: only enlarging can be compared. Here no pixel
    # is as near to one source pixel as to the next.
    image = picture(20, 30)
    planes = [Image.fromarray(image[..., channel].astype(np.float32)) for channel in range(3)]
    expected = np.stack([np.asarray(plane.resize((48, 32), pillow)) for plane in planes], axis=-1)
    result = resize(image, 32, 48, METHODS.index(method), half_pixel_centers=True)
    np.testing.assert_allclose(result, expected, atol=tolerance)


@pytest.mark.parametrize("half_pixel_centers", [False, True])
@pytest.mark.parametrize(
    ("size", "begin"), [((60, 90), (0, 0)), ((60, 90), (49, 76)), ((12, 18), (1, 3)), ((11, 15), (0, 1))]
)
def test_a_part_equals_the_same_part_of_the_whole(
    size, begin, half_pixel_centers, picture, bilinear_by_hand, both_ways
):
    image = picture(20, 30)

    def part(pixels, whole, corner):
        return resize_bilinear_part(pixels, whole, corner, 11, 14, half_pixel_centers)

    result = both_ways(part, image, size, begin)
    whole = bilinear_by_hand(image, *size, half_pixel_centers)
    expected = whole[begin[0] : begin[0] + 11, begin[1] : begin[1] + 14]
    np.testing.assert_allclose(result, expected, atol=2e-3)


def test_a_part_of_a_picture_that_would_be_huge_is_computed_alone():  # IM-10
    # Whole it would have 600 x 1,200,000 pixels, 8.6 GB.
    image = np.repeat(np.arange(2000)[None, :, None] % 256, 3, axis=2).astype(np.uint8)
    part = resize_bilinear_part(image, [600, 1_200_000], [150, 60_300], 29, 29).numpy()
    np.testing.assert_allclose(part[0, :, 0], 100.5 + np.arange(29) / 600, atol=0.01)
