"""Batch normalisation that measures its moments in the call and moves its averages when told to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import tensorflow as tf

from echoing.checks import check_number

BATCH_NORM_DECAY = 0.996
"""Decay of the moving averages; the reference trainer's BATCH_NORM_DECAY."""
BATCH_NORM_EPSILON = 1e-3
"""Added to the variance; the reference trainer's BATCH_NORM_EPSILON."""


@dataclass(frozen=True)
class BatchNormOptions:
    """The constants of all batch normalisations of a network.

    Attributes:
        decay: weight of the old value in the moving averages, 0 to 1; at 1 they never move.
        epsilon: added to the variance, > 0.

    Raises:
        OptionError: a value is not allowed; it is named `batch_norm_decay` or `batch_norm_epsilon`.
    """

    decay: float = BATCH_NORM_DECAY
    epsilon: float = BATCH_NORM_EPSILON

    def __post_init__(self) -> None:
        check_number("batch_norm_decay", self.decay, minimum=0, maximum=1)
        check_number("batch_norm_epsilon", self.epsilon, minimum=0, exclusive_minimum=True)


REFERENCE_BATCH_NORM = BatchNormOptions()


class Moments(NamedTuple):
    """What one batch normalisation measured in one training call.

    Attributes:
        batch_norm: whose averages they belong to.
        mean: float32 `[channels]`, over batch, height and width.
        variance: the same, unbiased, as TensorFlow's fused kernel gives it to the averages.
    """

    batch_norm: BatchNorm
    mean: Any
    variance: Any


class BatchNorm(tf.Module):
    """Batch normalisation over batch, height and width, with an offset (beta) and, if asked, a scale (gamma).

    A call assigns nothing. In training it normalises with the batch's own moments and hands them out, so that
    the train step can average them over the replicas first: every replica then moves its averages by the same
    amount, and the one copy that a checkpoint stores is everyone's.

    Args:
        channels: number of channels.
        name: scope of the variables.
        options: decay and epsilon.
        initial_scale: first value of the scale; None for no scale, as in the reference's Inception v3.
    """

    def __init__(
        self,
        channels: int,
        name: str,
        options: BatchNormOptions = REFERENCE_BATCH_NORM,
        initial_scale: float | None = None,
    ) -> None:
        super().__init__(name="BatchNorm")
        self._channels, self._options = channels, options
        scope = f"{name}/BatchNorm"
        self.gamma = None
        if initial_scale is not None:
            self.gamma = tf.Variable(tf.fill([channels], float(initial_scale)), name=f"{scope}/gamma")
        self.beta = tf.Variable(tf.zeros([channels]), name=f"{scope}/beta")
        self.moving_mean = tf.Variable(tf.zeros([channels]), trainable=False, name=f"{scope}/moving_mean")
        self.moving_variance = tf.Variable(
            tf.ones([channels]), trainable=False, name=f"{scope}/moving_variance"
        )

    def __call__(self, inputs: Any, moments: list[Moments] | None) -> Any:
        """Normalises `[batch, height, width, channels]`; the result has the dtype of `inputs`.

        Args:
            inputs: float32 or bfloat16; the moments are computed in float32 in any case.
            moments: where a training call adds what it measures; None in evaluation, which normalises with
                the averages.
        """
        scale = tf.ones([self._channels]) if self.gamma is None else self.gamma
        if moments is None:
            outputs, _, _ = tf.compat.v1.nn.fused_batch_norm(
                inputs,
                scale,
                self.beta,
                mean=self.moving_mean,
                variance=self.moving_variance,
                epsilon=self._options.epsilon,
                is_training=False,
            )
            return outputs
        outputs, mean, variance = tf.compat.v1.nn.fused_batch_norm(
            inputs, scale, self.beta, epsilon=self._options.epsilon, is_training=True
        )
        moments.append(Moments(self, mean, variance))
        return outputs

    def update(self, mean: Any, variance: Any) -> None:
        """Moves the averages towards the moments of a batch: `a = decay a + (1 - decay) value`.

        Args:
            mean: float32 `[channels]`.
            variance: the same.
        """
        for average, value in ((self.moving_mean, mean), (self.moving_variance, variance)):
            average.assign_sub((1 - self._options.decay) * (average - value))
