from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.evaluation_step import EvaluationStep, label_ranks
from trainer.feed import DeviceFeed
from trainer.models.model import Outputs
from trainer.train_options import TrainOptions
from trainer.transfer import HOST

CLASSES = 7


class Reader(tf.Module):
    """Its logits are the first pixels of the first channel."""

    def __init__(self) -> None:
        super().__init__()
        self.traced: list[Any] = []

    def __call__(self, images: Any, training: bool, step: Any = 0, replica: Any = 0) -> Outputs:
        assert not training
        self.traced.append(images.shape)
        return Outputs(images[:, 0, :CLASSES, 0])


def images_of(logits: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    images = np.zeros((len(logits), 32, 32, 3), np.float32)
    images[:, 0, :CLASSES, 0] = logits
    return images


def step_for(model: Any, layout: str = "nhwc") -> EvaluationStep:
    options = TrainOptions(8, 10, model="resnet18", image_size=32, num_classes=CLASSES, layout=layout,
                           examples_per_epoch=80)  # fmt: skip
    return EvaluationStep(options, tf.distribute.OneDeviceStrategy(HOST), DeviceFeed(HOST), model)


def batch_of(count: int, seed: int = 0) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    generator = np.random.default_rng(seed)
    return generator.normal(size=(count, CLASSES)).astype(np.float32), generator.integers(0, CLASSES, count)


def expected_sums(logits: np.ndarray[Any, Any], labels: np.ndarray[Any, Any]) -> list[float]:
    best = np.argsort(-logits, axis=1, kind="stable")
    shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
    losses = np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(len(labels)), labels]
    right = [int((best[:, :top] == labels[:, None]).any(axis=1).sum()) for top in (1, 5)]
    return [len(labels), *right, losses.sum()]


@pytest.mark.parametrize("layout", ["nhwc", "hwcn"])
def test_sums_are_those_of_the_examples_that_are_there(layout: str) -> None:
    model = Reader()
    step = step_for(model, layout)
    for count in (6, 4, 1, 6):
        logits, labels = batch_of(count, seed=count)
        images = images_of(logits)
        images = images.transpose(1, 2, 3, 0) if layout == "hwcn" else images
        assert list(step({"image": images, "label": labels})) == pytest.approx(expected_sums(logits, labels))
    assert len(model.traced) == 1  # the smaller batches were filled up


def test_larger_batch_is_taken_too() -> None:
    step = step_for(Reader())
    for count in (3, 5):
        logits, labels = batch_of(count)
        batch = {"image": images_of(logits), "label": labels}
        assert list(step(batch)) == pytest.approx(expected_sums(logits, labels))


def test_colours_are_shifted_before_the_network_sees_them() -> None:
    images = np.full((2, 32, 32, 3), 51, np.uint8)
    shift = np.array([[0.1, 0, 0], [0.3, 0, 0]], np.float32)
    values: list[Any] = []

    class Seeing(Reader):
        def __call__(self, images: Any, training: bool, step: Any = 0, replica: Any = 0) -> Outputs:
            def see(array: Any) -> Any:
                values.append(array[:, 0, 0, 0].copy())
                return array

            seen = tf.ensure_shape(tf.numpy_function(see, [images], tf.float32), images.shape)
            return super().__call__(seen, training, step, replica)

    step_for(Seeing())({"image": images, "label": np.zeros(2, np.int64), "color_shift": shift})
    np.testing.assert_allclose(values[0], [-0.4, 0.0], atol=1e-6)  # 2 (0.2 + shift) - 1


def test_of_equal_logits_the_first_counts_as_larger() -> None:
    logits = tf.constant([[1.0, 2.0, 2.0, 0.0]] * 4)
    assert label_ranks(logits, tf.range(4)).numpy().tolist() == [2, 0, 1, 3]


def test_logit_that_is_no_number_makes_no_answer_right() -> None:
    logits = tf.constant([[np.nan, 1.0, 0.0], [0.0, np.nan, 1.0], [0.0, 2.0, np.inf]])
    assert label_ranks(logits, tf.constant([0, 2, 2])).numpy().tolist() == [3, 3, 0]


@settings(deadline=None, max_examples=30)
@given(st.lists(st.lists(st.integers(-3, 3), min_size=4, max_size=4), min_size=1, max_size=6))
def test_rank_is_the_place_in_a_stable_sort(rows: list[list[int]]) -> None:
    logits = np.array(rows, np.float32)
    for label in range(4):
        ranks = label_ranks(tf.constant(logits), tf.fill([len(rows)], label)).numpy()
        order = np.argsort(-logits, axis=1, kind="stable")
        assert ranks.tolist() == [row.tolist().index(label) for row in order]
