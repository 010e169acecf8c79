"""Fake data: one image and one label for ever, through the real batch and transfer stages."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from echoing.errors import OptionError
from pipeline.batch import Batch
from pipeline.fake_data import FAKE_DATA_NOTE, FakeData, fake_numbers
from pipeline.stage import Pipeline
from pipeline.transfer import Transfer


def elements(count: int = 3, **options) -> list[dict]:
    return list(fake_numbers(count).apply(FakeData(29, **options)).as_numpy_iterator())


def test_every_example_is_the_same_but_for_its_number():
    first, second, third = elements()
    np.testing.assert_array_equal(first["image"], second["image"])
    assert first["label"] == second["label"] == third["label"]
    assert [element["example_id"] for element in (first, second, third)] == [0, 1, 2]
    assert {(element["record_id"], element["repeat_index"]) for element in (first, second, third)} == {(0, 0)}


def test_the_image_is_uniform_from_minus_one_to_one_as_in_the_reference():
    (element, *_) = elements()
    assert element["image"].shape == (29, 29, 3)
    assert element["image"].dtype == np.float32
    counts, _ = np.histogram(element["image"], 10, (-1, 1))
    assert counts.sum() == 29 * 29 * 3
    # Upper 0.1 % point of the chi-square distribution of 9 degrees of freedom.
    assert ((counts - 252.3) ** 2 / 252.3).sum() < 27.88


def test_grey_levels_reach_both_ends():
    (element, *_) = elements(dtype="uint8")
    assert element["image"].dtype == np.uint8
    assert element["image"].min() < 3
    assert element["image"].max() > 252


def test_labels_are_class_numbers_of_the_model():
    labels = [elements(1, num_classes=3, seed=seed)[0]["label"] for seed in range(30)]
    assert set(labels) == {0, 1, 2}
    assert labels[0].dtype == np.int32
    assert elements(1, num_classes=1)[0]["label"] == 0


def test_a_seed_gives_the_same_image_again():
    np.testing.assert_array_equal(elements(1, seed=5)[0]["image"], elements(1, seed=5)[0]["image"])
    assert not np.array_equal(elements(1, seed=5)[0]["image"], elements(1, seed=6)[0]["image"])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8"])
def test_it_feeds_the_same_batch_and_transfer_stages(dtype):
    stages = Pipeline((FakeData(29, dtype=dtype), Batch(4), Transfer(dtype, layout="hwcn")))
    dataset = stages(fake_numbers())
    assert dataset.element_spec[0] == tf.TensorSpec([29, 29, 3, 4], tf.dtypes.as_dtype(dtype))
    batches = list(dataset.take(5))
    assert len(batches) == 5
    image, label = batches[-1]
    np.testing.assert_array_equal(image[..., 0], image[..., 3])
    assert len(set(label.numpy().tolist())) == 1


def test_it_says_what_it_is():
    assert FAKE_DATA_NOTE.startswith("Fake data")


@pytest.mark.parametrize("options", [{"num_classes": 0}, {"dtype": "int8"}, {"image_size": 0}, {"seed": -1}])
def test_what_is_not_allowed_is_refused(options):
    with pytest.raises(OptionError, match=next(iter(options))):
        FakeData(**options)


def test_no_examples_are_refused():
    with pytest.raises(OptionError, match="examples is 0"):
        fake_numbers(0)
