"""Inception's preprocessing against independent computations."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from pipeline import inception_preprocessing as inception


def bilinear_by_hand(image: np.ndarray, height: int, width: int) -> np.ndarray:
    """Bilinear resize without half-pixel centres: source position = target index x scale."""
    rows = np.arange(height) * image.shape[0] / height
    columns = np.arange(width) * image.shape[1] / width
    top, left = np.floor(rows).astype(int), np.floor(columns).astype(int)
    bottom = np.minimum(top + 1, image.shape[0] - 1)
    right = np.minimum(left + 1, image.shape[1] - 1)
    down, across = (rows - top)[:, None, None], (columns - left)[None, :, None]
    upper = image[top][:, left] * (1 - across) + image[top][:, right] * across
    lower = image[bottom][:, left] * (1 - across) + image[bottom][:, right] * across
    return upper * (1 - down) + lower * down


@pytest.mark.parametrize("size", [(13, 7), (5, 5), (1, 9), (40, 60)])
def test_resize_is_bilinear_without_half_pixel_centres(size):
    image = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)
    result = inception.resize(tf.constant(image), *size).numpy()
    assert result.shape == (*size, 3)
    np.testing.assert_allclose(result, bilinear_by_hand(image.astype(float), *size) / 255, atol=1e-5)


def test_resize_equals_the_references_order_of_scaling_first():
    image = np.random.default_rng(1).integers(0, 256, (23, 31, 3), np.uint8)
    scaled = tf.image.convert_image_dtype(image, tf.float32)
    reference = tf.compat.v1.image.resize_bilinear(scaled[tf.newaxis], [17, 19], align_corners=False)[0]
    np.testing.assert_allclose(inception.resize(tf.constant(image), 17, 19), reference, atol=1e-6)


def test_fast_colour_distortion_shifts_each_channel_by_the_jpeg_matrix():
    image = tf.fill([1, 1, 3], 0.5)
    result = inception.distort_color_fast(image, 0.1, 0.05, -0.02).numpy()[0, 0]
    expected = [
        0.5 + 0.1 + 1.402 * -0.02,
        0.5 + 0.1 - 0.344136 * 0.05 - 0.714136 * -0.02,
        0.5 + 0.1 + 1.772 * 0.05,
    ]
    np.testing.assert_allclose(result, expected, atol=1e-6)


def test_fast_colour_distortion_clips_to_the_unit_range():
    assert inception.distort_color_fast(tf.ones([2, 2, 3]), 0.1, 0.0, 0.0).numpy().max() == 1.0
    assert inception.distort_color_fast(tf.zeros([2, 2, 3]), -0.1, 0.0, 0.0).numpy().min() == 0.0


@pytest.mark.parametrize(("uniform", "flipped"), [(0.0, True), (0.49, True), (0.5, False), (0.99, False)])
def test_flip_mirrors_below_one_half(uniform, flipped):
    image = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    result = inception.flip(tf.constant(image), tf.constant(uniform)).numpy()
    np.testing.assert_array_equal(result, image[:, ::-1] if flipped else image)


def test_crops_keep_to_the_areas_and_aspect_ratios_asked_for():
    image = tf.zeros([300, 400, 3], tf.uint8)
    crop = tf.function(lambda seed: tf.shape(inception.random_crop(image, None, seed)))
    sizes = np.array([crop(tf.constant([5, index])).numpy()[:2] for index in range(400)])
    area = sizes.prod(axis=1) / (300 * 400)
    aspect = sizes[:, 1] / sizes[:, 0]
    # One pixel of rounding either way on crops of at least 67 x 67 pixels.
    # Not 5 %: a crop must cover a tenth of the box, and here the box is the whole image.
    assert area.min() >= 0.1 * 0.97
    assert area.min() < 0.13
    assert 0.85 < area.max() <= 1.0
    assert aspect.min() >= 3 / 4 * 0.98
    assert aspect.max() <= 4 / 3 * 1.02


@pytest.mark.parametrize("shape", [(1, 1), (1, 2000), (2000, 1), (2, 2)])
@pytest.mark.parametrize("use_fast", [True, False])
def test_tiny_and_narrow_images_give_finite_results(shape, use_fast):  # IM-10
    image = tf.fill([*shape, 3], tf.constant(200, tf.uint8))
    for draw in range(20):
        train = inception.preprocess_for_train(image, None, 29, tf.constant([0, draw]), 0.1, 0.1, use_fast)
        assert train.shape == (29, 29, 3)
        assert np.isfinite(train.numpy()).all()
    evaluated = inception.preprocess_for_eval(image, 29).numpy()
    np.testing.assert_allclose(evaluated, (200 / 255 - 0.5) * 2, atol=1e-5)


def test_evaluation_takes_the_central_part():
    # 80 x 80 with a border of 5 pixels, which is what 0.875 leaves out.
    image = np.zeros((80, 80, 3), np.uint8)
    image[5:75, 5:75] = 255
    result = inception.preprocess_for_eval(tf.constant(image), 20).numpy()
    np.testing.assert_allclose(result, 1.0, atol=1e-6)


def test_training_image_lies_in_the_models_range_and_depends_on_the_key_alone():
    image = tf.constant(np.random.default_rng(2).integers(0, 256, (50, 70, 3), np.uint8))

    def draw(key: int) -> np.ndarray:
        return inception.preprocess_for_train(image, None, 32, tf.constant([9, key])).numpy()

    assert draw(0).min() >= -1.0
    assert draw(0).max() <= 1.0
    np.testing.assert_array_equal(draw(0), draw(0))
    assert not np.array_equal(draw(0), draw(1))


def test_crop_covers_a_part_of_the_annotated_box():
    # Bright box on black; a crop that misses the box is black all over.
    image = np.zeros((200, 200, 3), np.uint8)
    image[20:60, 120:180] = 255
    box = tf.constant([[0.1, 0.6, 0.3, 0.9]])
    for key in range(40):
        assert inception.random_crop(tf.constant(image), box, tf.constant([1, key])).numpy().max() == 255
