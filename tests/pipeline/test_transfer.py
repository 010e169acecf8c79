"""The transfer stage: types, layout, what is delivered."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from echoing.errors import OptionError
from pipeline.transfer import HWCN_TO_NHWC, Transfer

PICTURES = np.random.default_rng(0).uniform(-1, 1, (5, 4, 3, 3)).astype(np.float32)


def batches(pictures=PICTURES, **features):
    rows = {"image": pictures, "label": np.arange(len(pictures), dtype=np.int32), **features}
    return tf.data.Dataset.from_tensor_slices(rows).batch(2)


def test_batches_are_pairs_of_images_and_labels():
    delivered = list(batches().apply(Transfer()).as_numpy_iterator())
    assert [len(label) for _, label in delivered] == [2, 2, 1]
    np.testing.assert_array_equal(np.concatenate([image for image, _ in delivered]), PICTURES)


def test_tags_are_kept_where_asked_for():
    (first, *_) = batches(example_id=np.arange(5)).apply(Transfer(keep_tags=True)).as_numpy_iterator()
    assert sorted(first) == ["example_id", "image", "label"]
    assert first["example_id"].tolist() == [0, 1]


@pytest.mark.parametrize("keep_tags", [True, False])
def test_float_images_become_grey_levels_and_the_reverse(keep_tags):
    def deliver(pictures, dtype):
        first = next(iter(batches(pictures).apply(Transfer(dtype, keep_tags=keep_tags))))
        return (first["image"] if keep_tags else first[0]).numpy()

    levels = deliver(PICTURES, "uint8")
    assert levels.dtype == np.uint8
    np.testing.assert_array_equal(levels, np.rint((PICTURES[:2] + 1) * np.float32(127.5)))
    np.testing.assert_allclose(deliver(np.uint8(PICTURES * 0 + 51), "float32"), -0.6, atol=1e-6)
    assert deliver(PICTURES, "bfloat16").dtype == tf.bfloat16.as_numpy_dtype


@pytest.mark.parametrize("keep_tags", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8"])
def test_hwcn_has_the_batch_last_and_the_model_side_undoes_it(keep_tags, dtype):
    plain, turned = (
        list(batches().apply(Transfer(dtype, keep_tags=keep_tags, layout=layout)))
        for layout in ("nhwc", "hwcn")
    )
    assert len(turned) == 3
    for one, other in zip(plain, turned, strict=True):
        image, moved = (one["image"], other["image"]) if keep_tags else (one[0], other[0])
        assert moved.shape == (4, 3, 3, image.shape[0])
        np.testing.assert_array_equal(tf.transpose(moved, HWCN_TO_NHWC), image)
    assert HWCN_TO_NHWC == (3, 0, 1, 2)


@pytest.mark.parametrize("layout", ["nhwc", "hwcn"])
def test_batches_are_transposed_before_the_last_prefetch(layout):
    # So that the device does not wait for the transposition, as it does in the reference.
    dataset = batches().apply(Transfer("bfloat16", 2, layout=layout))
    assert "Prefetch" in type(dataset).__name__
    assert "Prefetch" not in type(batches().apply(Transfer("bfloat16", 0, layout=layout))).__name__


def test_colours_that_are_left_to_the_device_travel_with_the_image():
    shift = np.random.default_rng(1).uniform(-0.1, 0.1, (5, 3)).astype(np.float32)
    inputs, label = next(iter(batches(np.uint8(PICTURES * 0), color_shift=shift).apply(Transfer("uint8"))))
    assert sorted(inputs) == ["color_shift", "image"]
    np.testing.assert_array_equal(inputs["color_shift"], shift[:2])
    assert label.numpy().tolist() == [0, 1]


@pytest.mark.parametrize("options", [{"dtype": "int8"}, {"layout": "nchw"}, {"prefetch_batches": -1}])
def test_what_is_not_allowed_is_refused(options):
    with pytest.raises(OptionError, match=next(iter(options))):
        Transfer(**options)
