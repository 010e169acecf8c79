"""Inception's preprocessing against NumPy on fixed crops, and on pictures of odd sizes."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from pipeline.preprocessing.draws import example_bits
from pipeline.preprocessing.image_draws import WORDS
from pipeline.preprocessing.inception import Inception


@pytest.mark.parametrize("half_pixel_centers", [False, True])
def test_evaluation_resizes_the_middle_seven_eighths(
    half_pixel_centers, picture, bilinear_by_hand, both_ways
):
    image = picture(80, 50)
    middle = bilinear_by_hand(image[5:75, 3:47], 29, 29, half_pixel_centers)
    inception = Inception(29, half_pixel_centers=half_pixel_centers)
    result = both_ways(inception.for_evaluation, image)
    assert result.shape == (29, 29, 3)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, middle / 127.5 - 1, atol=1e-5)


@pytest.mark.parametrize("mirrored", [True, False])
@pytest.mark.parametrize("half_pixel_centers", [False, True])
def test_a_crop_is_resized_mirrored_and_recoloured(
    mirrored, half_pixel_centers, picture, bilinear_by_hand, both_ways, words_of
):
    crop = picture(40, 33)
    resized = bilinear_by_hand(crop, 29, 29, half_pixel_centers) / 255
    flipped = resized[:, ::-1] if mirrored else resized
    # A quarter, three quarters and seven eighths of the way from one end of each range to the other.
    brightness, cb, cr = -0.5 * 32 / 255, 0.5 * 0.1, 0.75 * 0.2
    shift = [brightness + 1.402 * cr, brightness - 0.344136 * cb - 0.714136 * cr, brightness + 1.772 * cb]
    expected = np.clip(flipped + shift, 0, 1) * 2 - 1

    inception = Inception(29, cr_distortion_range=0.2, half_pixel_centers=half_pixel_centers)
    words = words_of(flip=0.49 if mirrored else 0.5, brightness=0.25, cb=0.75, cr=0.875)
    np.testing.assert_allclose(both_ways(inception.distort, crop, words), expected, atol=1e-5)


def test_fast_mode_with_full_colours_changes_brightness_then_saturation(picture, both_ways, words_of):
    crop = picture(29, 29)
    # No saturation is left, so that every pixel is its largest channel, brightened before.
    words = words_of(flip=0.9, brightness=0.75, saturation=0.0)
    grey_ish = both_ways(Inception(29, use_fast_color_distort=False).distort, crop, words)
    bright = crop / 255 + 0.5 * 32 / 255
    value = bright.max(axis=2, keepdims=True)
    np.testing.assert_allclose(grey_ish, np.clip(value - 0.5 * (value - bright), 0, 1) * 2 - 1, atol=1e-5)


@pytest.mark.parametrize(
    ("draw", "pixels"),
    [(0.1, [100, 150, 200, 200]), (0.3, [100, 100, 200, 200]), (0.8, [100, 100, 200, 200])],
)
def test_without_fast_mode_the_resize_method_is_drawn(draw, pixels, both_ways, words_of):
    crop = np.full((2, 2, 3), 100, np.uint8)
    crop[:, 1] = 200
    inception = Inception(4, cb_distortion_range=0, cr_distortion_range=0, fast_mode=False)
    # Bilinear; nearest; the area of half a pixel lies in one. No shift of brightness in the middle.
    result = both_ways(inception.distort, crop, words_of(flip=0.9, resize_method=draw))
    np.testing.assert_allclose((result[0, :, 0] + 1) * 127.5, pixels, atol=1e-3)


def test_without_fast_mode_the_full_distortion_changes_hue_and_contrast(both_ways, words_of):
    crop = np.full((2, 2, 3), (120, 100, 100), np.uint8)
    inception = Inception(2, use_fast_color_distort=False, fast_mode=False)
    # Hue up by a tenth of a turn (a third of that is from red to green); the other changes are neutral.
    words = words_of(flip=0.9, resize_method=0.3, brightness=0.5, saturation=0.5, hue=0.75, contrast=0.5)
    result = both_ways(inception.distort, crop, words)
    np.testing.assert_allclose((result[0, 0] + 1) * 127.5, [120, 112, 100], atol=1e-3)


def test_results_of_the_full_distortion_fill_the_models_range_and_stay_in_it(picture, words_of):
    inception = Inception(29, use_fast_color_distort=False, fast_mode=False)
    for ordering in (0.1, 0.3, 0.6, 0.8):
        words = words_of(
            contrast=0.99, saturation=0.99, brightness=0.99, ordering=ordering, resize_method=0.6
        )
        result = inception.distort(picture(40, 40), words).numpy()
        assert result.min() == -1.0
        assert result.max() == 1.0


def test_training_cuts_distorts_and_depends_on_the_words_alone(picture, both_ways):
    image = picture(50, 70)

    def train(number):
        words = example_bits(9, number, tf.zeros([], tf.int64), WORDS)
        return Inception(32).for_training(image, None, words)

    first = both_ways(train, np.int64(0))
    np.testing.assert_array_equal(first, both_ways(train, np.int64(0)))
    assert -1.0 <= first.min() < first.max() <= 1.0
    assert not np.array_equal(first, both_ways(train, np.int64(1)))


def test_training_takes_the_crop_that_covers_the_box():
    # A bright box on black: a crop that missed it would be black all over.
    image = np.zeros((200, 200, 3), np.uint8)
    image[20:60, 120:180] = 255
    plain = Inception(29, cb_distortion_range=0, cr_distortion_range=0)
    boxes = tf.constant([[0.1, 0.6, 0.3, 0.9]])

    def train(number):
        return plain.for_training(image, boxes, example_bits(1, number, tf.zeros([], tf.int64), WORDS))

    for result in tf.data.Dataset.range(40).map(train).as_numpy_iterator():
        assert result.max() > 0.7


@pytest.mark.parametrize("shape", [(1, 1), (1, 2000), (2000, 1), (2, 2)])
@pytest.mark.parametrize("options", [{}, {"use_fast_color_distort": False, "fast_mode": False}])
def test_tiny_and_narrow_images_give_finite_results(shape, options):  # IM-10
    image = tf.fill([*shape, 3], tf.constant(200, tf.uint8))
    inception = Inception(299, **options)

    def train(number):
        return inception.for_training(image, None, example_bits(0, number, tf.zeros([], tf.int64), WORDS))

    for result in tf.data.Dataset.range(20).map(train).as_numpy_iterator():
        assert result.shape == (299, 299, 3)
        assert np.isfinite(result).all()
        assert -1 <= result.min() <= result.max() <= 1
    np.testing.assert_allclose(inception.for_evaluation(image), 200 / 127.5 - 1, atol=1e-5)
