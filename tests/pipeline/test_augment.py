"""The augment stage: keyed draws, types, what passes through."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from echoing.errors import OptionError
from pipeline.augment import Augment
from pipeline.preprocessing.inception import Inception
from pipeline.preprocessing.vgg import Vgg

IMAGE = np.random.default_rng(0).integers(0, 256, (40, 60, 3), np.uint8)


def examples(ids, repeats=None, **features):
    repeats = [0] * len(ids) if repeats is None else repeats
    numbers = tf.data.Dataset.from_tensor_slices((np.int64(ids), np.int64(repeats)))
    return numbers.map(
        lambda example, repeat: {
            "image": IMAGE,
            "label": 7,
            "example_id": example,
            "repeat_index": repeat,
            **features,
        }
    )


def images(dataset, stage) -> list[np.ndarray]:
    return [element["image"] for element in dataset.apply(stage).as_numpy_iterator()]


@pytest.mark.parametrize("preprocessing", [Inception(29), Vgg(29)])
def test_draws_depend_on_seed_example_and_repeat_alone(preprocessing):
    def stage(seed=5, calls=None):
        return Augment(preprocessing, seed=seed, num_parallel_calls=calls)

    first, second, repeat = images(examples([0, 1, 0], [0, 0, 1]), stage())
    assert not np.array_equal(first, second)
    assert not np.array_equal(first, repeat)
    assert not np.array_equal(first, images(examples([0]), stage(seed=6))[0])
    again = images(examples([0, 0, 1], [1, 0, 0]), stage(calls=3))
    np.testing.assert_array_equal(again, [repeat, first, second])


def test_a_cached_record_is_distorted_anew_in_every_epoch():  # DP-03
    cached = tf.data.Dataset.from_tensors(IMAGE).repeat(4).cache().repeat(2).enumerate()
    numbered = cached.map(
        lambda number, image: {"image": image, "example_id": number, "repeat_index": tf.zeros([], tf.int64)}
    )
    drawn = images(numbered, Augment(Inception(29), seed=1))
    assert len({image.tobytes() for image in drawn}) == 8


def test_evaluation_draws_nothing():
    first, second = images(examples([0, 1]), Augment(Inception(29), is_training=False))
    np.testing.assert_array_equal(first, second)


def test_an_element_gives_the_same_eagerly_and_in_a_dataset():
    stage = Augment(Inception(29), seed=2)
    (element,) = examples([3])
    np.testing.assert_allclose(stage.augment(element)["image"], images(examples([3]), stage)[0], atol=1e-6)


def test_boxes_are_used_and_dropped_and_the_rest_passes():
    corner = tf.constant([[0.0, 0.0, 0.2, 0.2]])
    stage = Augment(Inception(29), seed=4)
    boxed = examples(range(5), boxes=corner)
    assert sorted(boxed.apply(stage).element_spec) == ["example_id", "image", "label", "repeat_index"]
    pairs = zip(images(boxed, stage), images(examples(range(5)), stage), strict=True)
    assert any(not np.array_equal(with_box, without) for with_box, without in pairs)


@pytest.mark.parametrize("is_training", [True, False])
def test_grey_levels_are_the_float_image_rounded(is_training):
    (image,) = images(examples([0]), Augment(Inception(29), is_training, dtype="float32"))
    (levels,) = images(examples([0]), Augment(Inception(29), is_training, dtype="uint8"))
    assert levels.dtype == np.uint8
    np.testing.assert_array_equal(levels, np.rint((image + 1) * np.float32(127.5)))


@pytest.mark.parametrize("preprocessing", [Inception(29), Vgg(29)])
def test_bfloat16_comes_with_a_static_shape(preprocessing):
    spec = examples([0]).apply(Augment(preprocessing, dtype="bfloat16")).element_spec["image"]
    assert (spec.shape, spec.dtype) == ((29, 29, 3), tf.bfloat16)


def test_the_default_is_the_references_inception():
    assert Augment().preprocessing == Inception(299, 0.1, 0.1, True, True, False)


def test_grey_levels_of_vgg_are_refused():
    with pytest.raises(OptionError, match=r"dtype is 'uint8', but must be float32 or bfloat16 .*vgg"):
        Augment(Vgg(), dtype="uint8")


def test_an_unknown_type_is_refused():
    with pytest.raises(OptionError, match="dtype is 'float64'"):
        Augment(dtype="float64")
