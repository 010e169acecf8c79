"""Evaluates a network over a whole dataset under a distribution strategy."""

from __future__ import annotations

from typing import Any

import numpy as np

from echoing.errors import DataError
from trainer.batch_source import BatchSource
from trainer.element_check import check_element_spec
from trainer.evaluation import Evaluation, check_examples
from trainer.evaluation_step import BatchSums, EvaluationStep
from trainer.feed import Feed
from trainer.models.model import Model
from trainer.placement import Placement
from trainer.train_options import TrainOptions


class Evaluator:
    """Adds up right answers and losses over a dataset; its functions compile once.

    Args:
        options: of the training.
        placement: where the network is.
        feed: brings batches to the replicas of this host.
        model: the network.
    """

    def __init__(self, options: TrainOptions, placement: Placement, feed: Feed, model: Model) -> None:
        self._options = options
        self._placement = placement
        self._step = EvaluationStep(options, placement.strategy, feed, model)

    def evaluate(self, dataset: Any, weights: str) -> Evaluation:
        """Counts right answers with the variables as they are.

        Args:
            dataset: a `tf.data.Dataset` of this host's batches, that ends.
            weights: what the variables hold, for the result.

        Raises:
            DataError: the dataset has no examples, its elements are no batches, or a label is out of range.
            OptionError: the images are not of the network's size.
        """
        check_element_spec(
            getattr(dataset, "element_spec", None), self._options.image_size, self._options.layout
        )
        totals = np.zeros(len(BatchSums._fields))
        for batch in BatchSource(dataset):
            self._check_labels(batch["label"])
            totals += self._step(batch)
        # Ratios of sums over all workers, which may have evaluated different numbers of examples.
        sums = self._placement.gather(totals.tolist()).sum(axis=0)
        examples, correct, correct_top_5, loss = sums.tolist()
        check_examples(int(examples))
        return Evaluation(int(examples), int(correct), int(correct_top_5), loss / examples, weights)

    def _check_labels(self, labels: np.ndarray[Any, Any]) -> None:
        classes = self._options.num_classes
        outside = np.unique(labels[(labels < 0) | (labels >= classes)]).tolist()
        if outside:
            raise DataError(
                f"The evaluation data have labels outside 0 to {classes - 1} (num_classes is {classes}): "
                f"{', '.join(map(str, outside))}. Evaluate with data of the classes that the model was "
                "trained for; `pipebench data check` lists the records."
            )
