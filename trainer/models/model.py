"""What the trainer asks of a network: logits, the moments it measured, and its variables by their role."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import tensorflow as tf

from trainer.models.batch_norm import Moments


class Outputs(NamedTuple):
    """What a network says of a batch.

    Attributes:
        main: float32 logits `[batch, num_classes]`.
        auxiliary: the same from the auxiliary head; None in evaluation, where it has no use, and of networks
            without one.
        moments: what each batch normalisation measured in this call, in a fixed order; empty in evaluation.
    """

    main: Any
    auxiliary: Any = None
    moments: tuple[Moments, ...] = ()


class Model(Protocol):
    """A network for images.

    Its variables are float32 and are made in the constructor, in whatever `strategy.scope()` is active; their
    names and their order are the same in every run.
    """

    @property
    def trainable_variables(self) -> Sequence[Any]:
        """What the optimizer moves."""

    @property
    def regularized_variables(self) -> Sequence[Any]:
        """Those of them that weight decay applies to: the kernels of convolutions and classifiers."""

    @property
    def moving_variables(self) -> Sequence[Any]:
        """The moving averages of all batch normalisations."""

    def __call__(self, images: Any, training: bool, step: Any = 0, replica: Any = 0) -> Outputs:
        """Runs the network; assigns nothing.

        Args:
            images: `[batch, height, width, 3]`, float32 or bfloat16 in [-1, 1], or uint8, scaled here.
            training: whether to normalise by the batch, drop features and use the auxiliary head.
            step: number of the step, int64, for dropout: the same step drops the same features, also after a
                resume.
            replica: number of the replica among all, so that replicas drop different features.
        """


def update_moments(moments: Sequence[Moments]) -> None:
    """Moves the moving averages of a network towards the moments of a training call.

    Several replicas average them first, with `average_moments`.

    Args:
        moments: of `Outputs`.
    """
    for batch_norm, mean, variance in moments:
        batch_norm.update(mean, variance)


def average_moments(moments: Sequence[Moments]) -> tuple[Moments, ...]:
    """Returns the means of moments over all replicas; call it in replica context, inside `strategy.run`.

    Each replica still normalises by its own part of the batch: statistics are not synchronised. The mean of
    the variances therefore leaves out how the replicas' means differ, as it should: it is the variance that
    a replica normalised by, on average.

    Args:
        moments: of `Outputs`, on every replica.
    """
    context = tf.distribute.get_replica_context()
    if context is None:
        raise RuntimeError("Moments are averaged inside strategy.run, where every replica has its own.")
    if context.num_replicas_in_sync == 1 or not moments:
        return tuple(moments)
    values = [value for _, mean, variance in moments for value in (mean, variance)]
    # One vector of some 35,000 numbers (Inception v3), because each all-reduce costs its own latency.
    reduced = context.all_reduce(tf.distribute.ReduceOp.MEAN, tf.concat(values, axis=0))
    parts = tf.split(reduced, [value.shape[0] for value in values])
    return tuple(
        Moments(measured.batch_norm, mean, variance)
        for measured, mean, variance in zip(moments, parts[::2], parts[1::2], strict=True)
    )
