"""Putting averaged weights in and back, and several replicas, are tested with the session."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from echoing.errors import DataError, OptionError
from trainer.evaluation import Evaluation
from trainer.evaluator import Evaluator
from trainer.models.model import Outputs
from trainer.placement import Placement
from trainer.strategies import StrategyOptions, make_strategy
from trainer.train_options import TrainOptions

SIZE, CLASSES = 32, 3


class Certain(tf.Module):
    """Is certain of the class that the first pixel names."""

    def __call__(self, images: Any, training: bool, step: Any = 0, replica: Any = 0) -> Outputs:
        return Outputs(20.0 * tf.one_hot(tf.cast(images[:, 0, 0, 0], tf.int32), CLASSES))


@pytest.fixture(scope="module")
def evaluator() -> Evaluator:
    placement: Placement = make_strategy(StrategyOptions("cpu"))
    options = TrainOptions(4, 1, model="resnet18", image_size=SIZE, num_classes=CLASSES, examples_per_epoch=8)
    return Evaluator(options, placement, placement.feed(), Certain())  # type: ignore[arg-type]


def pictures(says: list[int], labels: list[int], batch_size: int, size: int = SIZE) -> Any:
    images = np.broadcast_to(np.array(says, np.float32)[:, None, None, None], (len(says), size, size, 3))
    return tf.data.Dataset.from_tensor_slices({"image": images, "label": np.array(labels)}).batch(batch_size)


@pytest.mark.parametrize("batch_size", [1, 2, 4, 5, 7])
def test_shares_are_of_all_examples_whatever_the_batches(evaluator: Evaluator, batch_size: int) -> None:
    result = evaluator.evaluate(pictures([0, 1, 2, 0, 1], [0, 1, 2, 1, 2], batch_size), "average")
    assert (result.examples, result.correct, result.correct_top_5) == (5, 3, 5)
    assert (result.accuracy, result.accuracy_top_5, result.weights) == (0.6, 1.0, "average")
    # Right answers cost next to nothing, and each of the two wrong ones 20.
    assert result.mean_loss == pytest.approx(2 * 20 / 5, abs=1e-6)


def test_labels_outside_the_range_are_named(evaluator: Evaluator) -> None:
    with pytest.raises(DataError, match=r"labels outside 0 to 2 \(num_classes is 3\): -1, 3, 9\."):
        evaluator.evaluate(pictures([0] * 5, [9, 3, 2, -1, 3], 5), "raw")


def test_images_of_another_size_are_refused(evaluator: Evaluator) -> None:
    with pytest.raises(OptionError, match="image_size is 32"):
        evaluator.evaluate(pictures([0], [0], 1, size=33), "raw")


def test_top_five_that_were_not_counted_have_no_share() -> None:
    assert Evaluation(examples=4, correct=1).accuracy_top_5 is None
    assert Evaluation(examples=4, correct=1, correct_top_5=3).accuracy_top_5 == 0.75
