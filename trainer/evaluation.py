"""Accuracy over a whole data set, the smaller last batch included."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from echoing.errors import DataError
from trainer.batch_source import BatchSource

Predict = Callable[[Any], Any]

TOP = 5
"""How many of the most likely classes the wider accuracy allows; the reference trainer's `accuracy@5`."""


@dataclass(frozen=True)
class Evaluation:
    """How often the most likely class was the right one.

    Attributes:
        examples: examples evaluated, each counted once.
        correct: examples whose largest logit stands at their label.
        correct_top_5: examples whose label is among the five largest logits; None if not counted.
        mean_loss: mean cross-entropy against labels that are not smoothed, without auxiliary head and weight
            decay; None if not computed.
        weights: `raw`, or `average` for the moving averages of the weights.
    """

    examples: int
    correct: int
    correct_top_5: int | None = None
    mean_loss: float | None = None
    weights: str = "raw"

    @property
    def accuracy(self) -> float:
        """Share of the examples that were right, 0 to 1: a ratio of sums, not a mean over batches."""
        return self.correct / self.examples

    @property
    def accuracy_top_5(self) -> float | None:
        """Share of the examples whose label is among the five most likely, 0 to 1; None if not counted."""
        return None if self.correct_top_5 is None else self.correct_top_5 / self.examples


def evaluate(predict: Predict, dataset: Any) -> Evaluation:
    """Counts right answers over a dataset that ends.

    The counts are exact for any batch size, because nothing is dropped, filled up or averaged by batch; let
    the pipeline keep its last batch.

    Args:
        predict: maps images `[batch, height, width, 3]` to logits `[batch, classes]`.
        dataset: a `tf.data.Dataset` of batches with `image` and `label`, or an iterable of such dictionaries.

    Raises:
        DataError: the dataset has no examples, or its elements are no batches.
    """
    examples = correct = 0
    batch: Mapping[str, Any]
    for batch in BatchSource(dataset):
        answers = np.argmax(np.asarray(predict(batch["image"])), axis=-1)
        labels = np.asarray(batch["label"])
        if answers.shape != labels.shape:
            raise DataError(
                f"The model gives answers of shape {answers.shape} for labels of shape {labels.shape}; both "
                "must be [batch]."
            )
        examples += len(labels)
        correct += int(np.sum(answers == labels))
    check_examples(examples)
    return Evaluation(examples, correct)


def check_examples(examples: int) -> None:
    """Checks that something was evaluated.

    Raises:
        DataError: nothing was.
    """
    if examples == 0:
        raise DataError(
            "The evaluation data set has no examples. Check its folder, and that batches are not dropped."
        )
