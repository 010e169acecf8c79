from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from echoing.errors import DataError
from trainer.evaluation import Evaluation, evaluate


def pictures(examples: int, batch_size: int) -> Any:
    """Pictures whose only pixel is their number; all labels are 1."""
    images = np.arange(examples, dtype=np.float32).reshape(-1, 1, 1, 1)
    labels = np.ones(examples, np.int32)
    return tf.data.Dataset.from_tensor_slices({"image": images, "label": labels}).batch(batch_size)


def right_below(limit: int) -> Any:
    """A model that says class 1 for pictures below a number, else class 0."""

    def predict(images: Any) -> Any:
        number = images.reshape(-1)
        return np.stack([number >= limit, number < limit], axis=1).astype(np.float32)

    return predict


@pytest.mark.parametrize("batch_size", [1, 3, 4, 10, 16])
def test_right_on_8_of_10_is_0_8_for_any_batch_size(batch_size: int) -> None:
    result = evaluate(right_below(8), pictures(10, batch_size))
    assert result == Evaluation(examples=10, correct=8)
    assert result.accuracy == 0.8


def test_tensor_logits_are_taken() -> None:
    assert evaluate(lambda images: tf.one_hot([1] * len(images), 3), pictures(5, 2)).accuracy == 1.0


def test_no_examples_is_an_error_and_not_a_division_by_zero() -> None:
    with pytest.raises(DataError, match="no examples"):
        evaluate(right_below(8), pictures(10, 4).take(0))


def test_logits_of_another_batch_size_are_refused() -> None:
    with pytest.raises(DataError, match=r"\(1,\) for labels of shape \(4,\)"):
        evaluate(lambda images: np.zeros((1, 2)), pictures(4, 4))
