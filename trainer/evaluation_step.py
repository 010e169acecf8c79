"""One evaluation step under any distribution strategy: right answers and losses of a batch, as sums."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from trainer.evaluation import TOP
from trainer.feed import COLOR_SHIFT, Feed, batch_axis
from trainer.incoming_images import prepare
from trainer.models.model import Model
from trainer.replica_feed import ReplicaFeed
from trainer.train_options import TrainOptions


class BatchSums(NamedTuple):
    """Sums over the examples of a batch.

    Attributes:
        examples: their number.
        correct: those whose largest logit stands at their label, of equal ones the first.
        correct_top: those whose label is among the `TOP` largest, likewise.
        loss: of their cross-entropies, without smoothing, auxiliary head and weight decay, so that it is
            comparable between options.
    """

    examples: int
    correct: int
    correct_top: int
    loss: float


class EvaluationStep:
    """Maps a batch of any size to sums over its examples, each counted once.

    A batch is filled up with zeros to a size that the replicas can share equally, and at least that of the
    largest batch before, so that a smaller last batch compiles nothing anew; what was filled in is not
    counted. Replicas do not talk to each other, so that workers may have different numbers of batches.

    Args:
        options: of the training.
        strategy: a `tf.distribute.Strategy`.
        feed: brings batches to the replicas of this host.
        model: the network.
    """

    def __init__(self, options: TrainOptions, strategy: Any, feed: Feed, model: Model) -> None:
        self._options = options
        self._strategy = strategy
        self._feed = feed
        self._model = model
        self._size = 0
        self._compiled = tf.function(
            self._on_host, jit_compile=(options.jit_compile and feed.parts == 1) or None, autograph=False
        )

    def __call__(self, batch: Mapping[str, np.ndarray[Any, Any]]) -> BatchSums:
        """Evaluates a batch.

        Args:
            batch: `image`, `label` and, if there, `color_shift`, as in training.
        """
        examples, parts = len(batch["label"]), self._feed.parts
        self._size = max(self._size, -(-examples // parts) * parts)
        images = self._fill(batch["image"], batch_axis(self._options.layout))
        shift = self._fill(batch[COLOR_SHIFT]) if COLOR_SHIFT in batch else None
        labels = self._fill(batch["label"].astype(np.int32))
        sums = self._compiled(images, labels, np.arange(self._size) < examples, shift)
        counts, losses = (tensor.numpy() for tensor in sums)
        counted, correct, correct_top = counts.sum(axis=0).tolist()
        return BatchSums(counted, correct, correct_top, float(losses.sum(dtype=np.float64)))

    def _fill(self, values: np.ndarray[Any, Any], axis: int = 0) -> np.ndarray[Any, Any]:
        missing = self._size - values.shape[axis]
        if not missing:
            return values
        return np.pad(values, [(0, missing if place == axis else 0) for place in range(values.ndim)])

    def _on_host(self, images: Any, labels: Any, counted: Any, color_shift: Any) -> tuple[Any, Any]:
        """Returns int32 [replicas, 3] and float32 [replicas, examples], of this host's replicas."""
        inputs = [images, labels, counted, color_shift]
        if isinstance(self._feed, ReplicaFeed):
            axes = [batch_axis(self._options.layout), 0, 0, 0]
            inputs = [
                value if value is None else self._feed.split(value, axis)
                for value, axis in zip(inputs, axes, strict=True)
            ]
        results = self._strategy.run(self._on_replica, args=tuple(inputs))
        counts, losses = (self._strategy.experimental_local_results(result) for result in results)
        return tf.stack(counts), tf.stack(losses)

    def _on_replica(self, images: Any, labels: Any, counted: Any, color_shift: Any) -> tuple[Any, Any]:
        images = prepare(images, color_shift, self._options.layout)
        logits = self._model(images, training=False).main
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        ranks = label_ranks(logits, labels)
        right = [counted, counted & (ranks < 1), counted & (ranks < TOP)]
        return (
            tf.stack([tf.reduce_sum(tf.cast(kind, tf.int32)) for kind in right]),
            tf.where(counted, losses, tf.zeros_like(losses)),
        )


def label_ranks(logits: Any, labels: Any) -> Any:
    """Returns before how many classes each label's does not come, int32 `[batch]`: 0 for a right answer.

    Of equal logits the first counts as larger, as in `argmax`. An example with a logit that is no number is
    never right: its rank is the number of classes.

    Args:
        logits: float32 `[batch, classes]`.
        labels: int32 `[batch]`, 0 to classes - 1.
    """
    classes = logits.shape[-1]
    own = tf.gather(logits, labels, axis=1, batch_dims=1)[:, tf.newaxis]
    earlier = tf.range(classes) < labels[:, tf.newaxis]
    before = (logits > own) | ((logits == own) & earlier)
    ranks = tf.reduce_sum(tf.cast(before, tf.int32), axis=1)
    return tf.where(tf.reduce_any(tf.math.is_nan(logits), axis=1), classes, ranks)
