"""The loss of Inception v3: two smoothed cross-entropies and weight decay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

LABEL_SMOOTHING = 0.1
"""Probability mass spread evenly over all classes; the reference trainer's value, for both heads."""
AUXILIARY_WEIGHT = 0.4
"""Weight of the auxiliary head's cross-entropy; the reference trainer's value."""
WEIGHT_DECAY = 4e-5
"""Factor on the sum of `tf.nn.l2_loss`, half the sum of squares; the reference trainer's WEIGHT_DECAY."""


def smoothed_cross_entropy(labels: Any, logits: Any) -> Any:
    """Returns the mean cross-entropy of a batch against smoothed labels, a float32 scalar.

    Args:
        labels: integers `[batch]`, 0 to classes - 1.
        logits: float32 `[batch, classes]`.
    """
    classes = logits.shape[-1]
    targets = tf.one_hot(labels, classes) * (1 - LABEL_SMOOTHING) + LABEL_SMOOTHING / classes
    return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=targets, logits=logits))


def weight_decay(kernels: Sequence[Any]) -> Any:
    """Returns the penalty on the kernels of convolutions and classifiers, a float32 scalar."""
    return WEIGHT_DECAY * tf.add_n([tf.nn.l2_loss(kernel) for kernel in kernels])


def training_loss(labels: Any, logits: Any, auxiliary_logits: Any, kernels: Sequence[Any]) -> Any:
    """Returns the loss that training minimises, a float32 scalar.

    Args:
        labels: integers `[batch]`.
        logits: float32 `[batch, classes]`.
        auxiliary_logits: the same from the auxiliary head.
        kernels: the variables under weight decay.
    """
    return (
        smoothed_cross_entropy(labels, logits)
        + AUXILIARY_WEIGHT * smoothed_cross_entropy(labels, auxiliary_logits)
        + weight_decay(kernels)
    )
