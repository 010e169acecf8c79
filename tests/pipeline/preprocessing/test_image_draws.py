"""The decisions that random words make, and how they are distributed."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from pipeline.preprocessing import color, image_draws, resize
from pipeline.preprocessing.draws import example_bits

DRAWS = 20_000


@pytest.fixture(scope="module")
def words():
    return example_bits(7, tf.range(DRAWS, dtype=tf.int64), tf.zeros(DRAWS, tf.int64), image_draws.WORDS)


def test_every_decision_has_a_position_that_never_moves(words):
    by_position = words.numpy()
    uniform = (by_position >> np.uint64(40)).astype(float) / 2**24
    np.testing.assert_array_equal(image_draws.crop_seed(words), by_position[:, :2].astype(np.int64))
    np.testing.assert_array_equal(image_draws.is_flipped(words), uniform[:, 2] < 0.5)
    near = {"atol": 1e-6}
    np.testing.assert_allclose(image_draws.brightness(words), (2 * uniform[:, 3] - 1) * 32 / 255, **near)
    cb, cr = image_draws.chroma(words, 0.1, 0.3)
    np.testing.assert_allclose(cb, (2 * uniform[:, 4] - 1) * 0.1, **near)
    np.testing.assert_allclose(cr, (2 * uniform[:, 5] - 1) * 0.3, **near)
    changes, ordering = image_draws.color_changes(words, fast_mode=False)
    np.testing.assert_allclose(changes["brightness"], (2 * uniform[:, 3] - 1) * 32 / 255, **near)
    np.testing.assert_allclose(changes["saturation"], 0.5 + uniform[:, 4], **near)
    np.testing.assert_allclose(changes["hue"], (2 * uniform[:, 5] - 1) * 0.2, **near)
    np.testing.assert_allclose(changes["contrast"], 0.5 + uniform[:, 6], **near)
    np.testing.assert_array_equal(ordering, np.floor(uniform[:, 7] * 4))
    np.testing.assert_array_equal(image_draws.resize_method(words), np.floor(uniform[:, 8] * 4))
    assert (image_draws.SIDE_WORD, image_draws.TOP_WORD, image_draws.LEFT_WORD) == (9, 10, 11)


def test_half_of_the_images_are_mirrored(words, is_uniform):
    assert is_uniform(image_draws.is_flipped(words), 2, -0.5, 1.5)


def test_brightness_and_chroma_are_uniform_over_their_ranges(words, is_uniform):
    cb, cr = image_draws.chroma(words, 0.1, 0.3)
    assert is_uniform(image_draws.brightness(words), 10, -32 / 255, 32 / 255)
    assert is_uniform(cb, 10, -0.1, 0.1)
    assert is_uniform(cr, 10, -0.3, 0.3)


def test_changes_of_the_full_distortion_are_uniform_over_their_ranges(words, is_uniform):
    changes, ordering = image_draws.color_changes(words, fast_mode=False)
    assert is_uniform(changes["saturation"], 10, 0.5, 1.5)
    assert is_uniform(changes["hue"], 10, -0.2, 0.2)
    assert is_uniform(changes["contrast"], 10, 0.5, 1.5)
    assert is_uniform(ordering, 4, -0.5, 3.5)


def test_fast_mode_has_no_hue_no_contrast_and_no_ordering(words):
    changes, ordering = image_draws.color_changes(words, fast_mode=True)
    assert sorted(changes) == ["brightness", "saturation"]
    assert ordering is None


def test_resize_methods_are_drawn_alike(words, is_uniform):
    assert is_uniform(image_draws.resize_method(words), 4, -0.5, 3.5)


def test_there_are_as_many_choices_as_there_is_to_choose_from():
    assert image_draws.ORDERINGS == len(color.ORDERINGS) == 4
    assert image_draws.RESIZE_METHODS == len(resize.METHODS) == 4


def test_decisions_of_one_example_do_not_hang_together(words):
    uniform = (words.numpy() >> np.uint64(40)).astype(float)
    correlation = np.corrcoef(uniform.T) - np.eye(image_draws.WORDS)
    # 66 pairs; the standard deviation of each is 1 / sqrt(DRAWS).
    assert np.abs(correlation).max() < 4 / np.sqrt(DRAWS)


@pytest.mark.parametrize("count", [1, 3, 301, 2**24])
def test_a_choice_reaches_both_ends_and_never_more(count, words_of):
    lowest, highest = words_of(side=0.0), words_of(side=1 - 2.0**-24)
    assert image_draws.choice(lowest, image_draws.SIDE_WORD, count) == 0
    assert image_draws.choice(highest, image_draws.SIDE_WORD, count) == count - 1


def test_the_number_of_choices_may_differ_by_example():
    words = np.full((3, image_draws.WORDS), 2**63, np.uint64)
    chosen = image_draws.choice(tf.constant(words), image_draws.TOP_WORD, tf.constant([1, 10, 101]))
    assert chosen.numpy().tolist() == [0, 5, 50]
