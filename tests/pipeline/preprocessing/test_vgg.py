"""The `vgg` preprocessing against NumPy: sides, places, values, and the reference's double scaling."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from pipeline.preprocessing.draws import example_bits
from pipeline.preprocessing.image_draws import WORDS
from pipeline.preprocessing.vgg import Vgg

MEANS = np.array([123.68, 116.78, 103.94])


@pytest.mark.parametrize("half_pixel_centers", [False, True])
@pytest.mark.parametrize(
    ("shape", "whole", "begin"),
    [((400, 500), (300, 375), (0, 38)), ((90, 60), (450, 300), (75, 0)), ((20, 20), (300, 300), (0, 0))],
)
def test_evaluation_cuts_the_middle_of_a_shorter_side_of_300(
    shape, whole, begin, half_pixel_centers, picture, bilinear_by_hand, both_ways
):
    image = picture(*shape)
    resized = bilinear_by_hand(image, *whole, half_pixel_centers)
    square = resized[begin[0] : begin[0] + 299, begin[1] : begin[1] + 299]
    result = both_ways(Vgg(half_pixel_centers=half_pixel_centers).for_evaluation, image)
    np.testing.assert_allclose(result, (square - MEANS) / 128, atol=2e-4)


@pytest.mark.parametrize("mirrored", [True, False])
def test_training_cuts_at_the_place_drawn_after_a_resize_to_the_side_drawn(
    mirrored, picture, bilinear_by_hand, both_ways, words_of
):
    image = picture(60, 100)
    # 300 + floor(301 / 4) = 375, so 375 x 625; 77 x 327 places.
    words = words_of(side=0.25, top=0.5, left=0.125, flip=0.2 if mirrored else 0.7)
    square = bilinear_by_hand(image, 375, 625)[38 : 38 + 299, 40 : 40 + 299]
    result = both_ways(lambda pixels, drawn: Vgg().for_training(pixels, None, drawn), image, words)
    np.testing.assert_allclose(
        result, (square[:, ::-1] if mirrored else square) / 128 - MEANS / 128, atol=2e-4
    )


def ramp(side: int) -> np.ndarray:
    """Red rises by one a column, green by one a row."""
    image = np.zeros((side, side, 3), np.uint8)
    image[..., 0] = np.arange(side)[None, :]
    image[..., 1] = np.arange(side)[:, None]
    return image


def sides_and_places(results: np.ndarray, source: int, flipped: np.ndarray) -> tuple[np.ndarray, ...]:
    """Side, top and left, read off the slope and the corner of resized ramps [n, size, size, 3]."""
    pixels = results * 128 + MEANS
    pixels = np.where(flipped[:, None, None, None], pixels[:, :, ::-1], pixels)
    slope = (pixels[:, 20, 20, 0] - pixels[:, 0, 0, 0]) / 20
    return source / slope, pixels[:, 0, 0, 1] / slope, pixels[:, 0, 0, 0] / slope


def test_sides_and_places_are_drawn_uniformly(is_uniform):
    image = tf.constant(ramp(200))

    def train(number):
        return Vgg(29).for_training(image, None, example_bits(3, number, tf.zeros([], tf.int64), WORDS))

    results = next(iter(tf.data.Dataset.range(3000).map(train).batch(3000))).numpy()
    flipped = results[:, 0, 0, 0] > results[:, 0, -1, 0]
    sides, tops, lefts = (np.rint(values) for values in sides_and_places(results, 200, flipped))
    assert is_uniform(flipped, 2, -0.5, 1.5)
    # 300 and 600 at the reference's size are 29 and 58 here: 30 sides, both ends among them.
    assert is_uniform(sides, 30, 28.5, 58.5)
    places = sides - 29 + 1
    assert ((tops >= 0) & (tops < places) & (lefts >= 0) & (lefts < places)).all()
    for drawn in (tops, lefts):
        # A place among n, spread over its own share of [0, 1).
        share = (drawn + np.random.default_rng(0).uniform(0, 1, 3000)) / places
        assert is_uniform(share, 10, 0, 1)


@pytest.mark.parametrize(("size", "shortest", "longest"), [(299, 300, 600), (75, 75, 151), (600, 602, 1204)])
def test_sides_are_scaled_with_the_image_size(size, shortest, longest, words_of):
    image = ramp(100)
    for draw, side in ((0.0, shortest), (1 - 2.0**-24, longest)):
        result = Vgg(size).for_training(image, None, words_of(side=draw, top=0, left=0, flip=0.9)).numpy()
        measured, _, _ = sides_and_places(result[np.newaxis], 100, np.array([False]))
        np.testing.assert_allclose(measured, side, rtol=1e-3)


@pytest.mark.parametrize("shape", [(1, 1), (1, 2000), (2000, 1), (10, 25)])
def test_images_smaller_than_the_crop_give_full_results(shape):  # IM-10
    image = tf.fill([*shape, 3], tf.constant(200, tf.uint8))

    def train(number):
        return Vgg().for_training(image, None, example_bits(0, number, tf.zeros([], tf.int64), WORDS))

    for result in tf.data.Dataset.range(20).map(train).as_numpy_iterator():
        assert result.shape == (299, 299, 3)
        np.testing.assert_allclose(result, np.broadcast_to((200 - MEANS) / 128, result.shape), atol=1e-4)
    np.testing.assert_allclose(Vgg().for_evaluation(image)[0, 0], (200 - MEANS) / 128, atol=1e-4)


def extremes(vgg: Vgg, words: np.ndarray) -> np.ndarray:
    """Results of black and of white, in training and in evaluation: [2, 2, 3], one pixel each."""
    images = [np.full((30, 30, 3), value, np.uint8) for value in (0, 255)]
    return np.array(
        [[vgg.for_training(image, None, words)[0, 0], vgg.for_evaluation(image)[0, 0]] for image in images]
    )


def test_means_are_taken_from_pixels_of_0_to_255(words_of):
    black, white = extremes(Vgg(), words_of())
    np.testing.assert_allclose(black, [[-0.96625, -0.91234, -0.81203]] * 2, atol=1e-5)
    np.testing.assert_allclose(white, [[1.02594, 1.07984, 1.18016]] * 2, atol=1e-5)


def test_the_references_scaling_gives_nearly_constant_images(words_of):
    black, white = extremes(Vgg(reference_scaling=True), words_of())
    np.testing.assert_allclose(black, [[-0.966, -0.912, -0.812]] * 2, atol=5e-4)
    np.testing.assert_allclose(white, [[-0.958, -0.905, -0.804]] * 2, atol=5e-4)
