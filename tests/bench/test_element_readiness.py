"""TP-03: what may go to which device."""

from __future__ import annotations

import pytest
import tensorflow as tf

from bench.element_readiness import element_problems, image_bytes


def spec(image=tf.float32, label=tf.int32, batch=8, **others):
    return {
        "image": tf.TensorSpec([batch, 4, 4, 3], image),
        "label": tf.TensorSpec([batch], label),
        "example_id": tf.TensorSpec([batch], tf.int64),
        **others,
    }


@pytest.mark.parametrize("image", [tf.float32, tf.bfloat16])
def test_floats_int32_labels_and_static_shapes_go_to_a_tpu(image):
    assert element_problems(spec(image), "tpu") == []


@pytest.mark.parametrize(
    "elements, words",
    [
        (spec(tf.uint8), "images are uint8"),
        (spec(label=tf.int64), "labels are int64, and a TPU takes int32"),
        (spec(batch=None), "a TPU needs static shapes"),
        (spec(name=tf.TensorSpec([8], tf.string)), "'name' is a string, which a TPU cannot take"),
    ],
)
def test_what_a_tpu_cannot_take_is_a_problem_there_only(elements, words):
    problems = element_problems(elements, "tpu")
    assert any(words in problem for problem in problems), problems
    assert element_problems(elements, "cpu") == element_problems(elements, "gpu") == []


def test_missing_and_ragged_features_are_problems_everywhere():
    problems = element_problems({"image": tf.RaggedTensorSpec([None, None])}, "cpu")
    assert len(problems) == 2
    assert "no feature 'label'" in problems[1]


def test_bytes_of_an_image_count_what_is_sent():
    # 48 numbers of four bytes, a label of four; the id stays on the host.
    assert image_bytes(spec()) == 196
    # 48 bytes, a label, three shifts of four bytes.
    assert image_bytes(spec(tf.uint8, color_shift=tf.TensorSpec([8, 3], tf.float32))) == 64
