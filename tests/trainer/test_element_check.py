from __future__ import annotations

from typing import Any

import pytest
import tensorflow as tf

from echoing.errors import DataError, OptionError
from trainer.element_check import check_element_spec


def spec(**changes: Any) -> dict[str, Any]:
    features = {
        "image": tf.TensorSpec([None, 8, 8, 3], tf.uint8),
        "label": tf.TensorSpec([None], tf.int64),
        "name": tf.TensorSpec([None], tf.string),
        "device_uses": tf.TensorSpec([], tf.int64),
        "color_shift": tf.TensorSpec([None, 3], tf.float32),
    }
    return features | changes


def test_batches_with_everything_pass_in_both_layouts() -> None:
    check_element_spec(spec(), 8)
    check_element_spec(spec(image=tf.TensorSpec([8, 8, 3, 4], tf.bfloat16)), 8, "hwcn")


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (None, "NoneType"),
        ({"image": tf.TensorSpec([1, 8, 8, 3])}, "lack label"),
        (spec(label=tf.TensorSpec([None], tf.float32)), "float32, but must be an integer"),
        (spec(name=tf.RaggedTensorSpec([None, None], tf.int64)), "dense tensors only"),
        (spec(device_uses=tf.TensorSpec([2], tf.int64)), r"the shape \[2\]"),
        (spec(device_uses=tf.TensorSpec([], tf.float32)), "the dtype float32"),
        (spec(color_shift=tf.TensorSpec([None, 4])), r"color_shift` has the shape \(None, 4\)"),
    ],
)
def test_elements_that_are_no_batches_are_refused(found: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        check_element_spec(found, 8)


@pytest.mark.parametrize(("shape", "layout"), [([2, 9, 8, 3], "nhwc"), ([2, 8, 8, 3], "hwcn")])
def test_images_of_another_size_or_layout_are_refused(shape: list[int], layout: str) -> None:
    with pytest.raises(OptionError, match="image_size is 8"):
        check_element_spec(spec(image=tf.TensorSpec(shape)), 8, layout)
