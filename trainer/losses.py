"""The loss of image classifiers: smoothed cross-entropies of one or two heads and weight decay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from echoing.checks import check_number

LABEL_SMOOTHING = 0.1
"""Probability mass spread evenly over all classes; the reference trainer's value, for both heads."""
AUXILIARY_WEIGHT = 0.4
"""Weight of the auxiliary head's cross-entropy; the reference trainer's value."""
WEIGHT_DECAY = 4e-5
"""Factor on the sum of `tf.nn.l2_loss`, half the sum of squares; the reference trainer's WEIGHT_DECAY."""


def example_losses(
    labels: Any, logits: Any, label_smoothing: float = LABEL_SMOOTHING, mask: Any = None
) -> Any:
    """Returns the cross-entropy of each example against its smoothed label, float32 `[batch]`.

    Args:
        labels: integers `[batch]`, 0 to classes - 1.
        logits: float32 `[batch, classes]`.
        label_smoothing: probability mass spread evenly over all classes, 0 to 1.
        mask: bool `[batch]`, False for the examples that only fill a batch up: their loss is zero, whatever
            their labels and logits are. None if all count.
    """
    classes = logits.shape[-1]
    targets = tf.one_hot(labels, classes) * (1 - label_smoothing) + label_smoothing / classes
    losses = tf.nn.softmax_cross_entropy_with_logits(labels=targets, logits=logits)
    return losses if mask is None else tf.where(mask, losses, tf.zeros_like(losses))


def smoothed_cross_entropy(labels: Any, logits: Any, label_smoothing: float = LABEL_SMOOTHING) -> Any:
    """Returns the mean cross-entropy of a batch against smoothed labels, a float32 scalar.

    Args:
        labels: integers `[batch]`, 0 to classes - 1.
        logits: float32 `[batch, classes]`.
        label_smoothing: probability mass spread evenly over all classes, 0 to 1.
    """
    return tf.reduce_mean(example_losses(labels, logits, label_smoothing))


def weight_penalty(kernels: Sequence[Any], weight_decay: float = WEIGHT_DECAY) -> Any:
    """Returns the penalty on the kernels of convolutions and classifiers, a float32 scalar.

    Args:
        kernels: float32, of any shapes; at least one.
        weight_decay: factor on the sum of `tf.nn.l2_loss`.
    """
    return weight_decay * tf.add_n([tf.nn.l2_loss(kernel) for kernel in kernels])


def training_loss(
    labels: Any,
    logits: Any,
    auxiliary_logits: Any,
    kernels: Sequence[Any],
    label_smoothing: float = LABEL_SMOOTHING,
    auxiliary_weight: float = AUXILIARY_WEIGHT,
    weight_decay: float = WEIGHT_DECAY,
) -> Any:
    """Returns the loss that training minimises, a float32 scalar.

    The mean of it over replicas with equal parts of a batch is the loss of the whole batch, weight decay
    included once; so are the gradients' means.

    Args:
        labels: integers `[batch]`.
        logits: float32 `[batch, classes]`.
        auxiliary_logits: the same from the auxiliary head; None for a network without one.
        kernels: the variables under weight decay.
        label_smoothing: probability mass spread evenly over all classes, for both heads, 0 to 1.
        auxiliary_weight: weight of the auxiliary head's cross-entropy, >= 0.
        weight_decay: factor on the sum of `tf.nn.l2_loss` of the kernels, >= 0.

    Raises:
        OptionError: a value is not allowed.
    """
    check_number("label_smoothing", label_smoothing, minimum=0, maximum=1)
    check_number("auxiliary_weight", auxiliary_weight, minimum=0)
    check_number("weight_decay", weight_decay, minimum=0)
    loss = smoothed_cross_entropy(labels, logits, label_smoothing)
    if auxiliary_logits is not None:
        loss += auxiliary_weight * smoothed_cross_entropy(labels, auxiliary_logits, label_smoothing)
    return loss + weight_penalty(kernels, weight_decay) if weight_decay and kernels else loss
