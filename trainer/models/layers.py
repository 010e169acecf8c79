"""The layers of Inception v3 as plain `tf.Module`s: float32 variables, computed in the dtype of their input.

Plain modules and not Keras layers: the state of Keras 3 layers (moving averages, seeds) is not known to work
under TPUStrategy, and one naming scheme serves checkpoints and averages.
"""

from __future__ import annotations

import math
import zlib
from typing import Any

import tensorflow as tf

BATCH_NORM_DECAY = 0.996
"""Decay of the moving averages; the reference trainer's BATCH_NORM_DECAY."""
BATCH_NORM_EPSILON = 1e-3
"""Added to the variance; the reference trainer's BATCH_NORM_EPSILON."""


def truncated_normal(shape: tuple[int, ...], stddev: float, seed: int, name: str) -> Any:
    """Returns initial values that depend on the seed and the variable's name only, float32.

    Args:
        shape: shape of the variable.
        stddev: standard deviation before the cut at two of them.
        seed: the run's seed.
        name: name of the variable, so that variables of one shape differ.
    """
    stream = zlib.crc32(name.encode())
    return tf.random.stateless_truncated_normal(shape, seed=[seed, stream], stddev=stddev, alg="philox")


def he_stddev(shape: tuple[int, ...]) -> float:
    """Returns the standard deviation of the reference's variance-scaling initializer (tf_slim's default).

    Factor 2 over the fan-in, as of He et al. 2015; 1.3 makes up for the cut of the truncated normal.

    Args:
        shape: kernel shape, `[height, width, in, out]`.
    """
    return math.sqrt(1.3 * 2.0 / math.prod(shape[:-1]))


class BatchNorm(tf.Module):
    """Batch normalisation over batch, height and width, with an offset and without a scale (gamma).

    In training it normalises with the batch's own moments and moves the averages towards them; the variance
    that enters the average is the unbiased one, as in TensorFlow's fused kernel.

    Args:
        channels: number of channels.
        name: scope of the variables.
    """

    def __init__(self, channels: int, name: str) -> None:
        super().__init__(name="BatchNorm")
        self._scale = tf.ones([channels])
        self.beta = tf.Variable(tf.zeros([channels]), name=f"{name}/BatchNorm/beta")
        self.moving_mean = tf.Variable(
            tf.zeros([channels]), trainable=False, name=f"{name}/BatchNorm/moving_mean"
        )
        self.moving_variance = tf.Variable(
            tf.ones([channels]), trainable=False, name=f"{name}/BatchNorm/moving_variance"
        )

    def __call__(self, inputs: Any, training: bool) -> Any:
        """Normalises `[batch, height, width, channels]`; the result has the dtype of `inputs`."""
        if not training:
            outputs, _, _ = tf.compat.v1.nn.fused_batch_norm(
                inputs,
                self._scale,
                self.beta,
                mean=self.moving_mean,
                variance=self.moving_variance,
                epsilon=BATCH_NORM_EPSILON,
                is_training=False,
            )
            return outputs
        outputs, mean, variance = tf.compat.v1.nn.fused_batch_norm(
            inputs, self._scale, self.beta, epsilon=BATCH_NORM_EPSILON, is_training=True
        )
        for average, value in ((self.moving_mean, mean), (self.moving_variance, variance)):
            average.assign_sub((1 - BATCH_NORM_DECAY) * (average - value))
        return outputs


class Convolution(tf.Module):
    """A convolution with batch normalisation and ReLU, and without a bias.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        kernel_size: height and width of the kernel, pixels.
        name: scope of the variables.
        seed: the run's seed.
        strides: step of the kernel in both directions, pixels.
        padding: `SAME` or `VALID`.
        stddev: standard deviation of the initial kernel; None for `he_stddev`.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, int],
        name: str,
        seed: int,
        strides: int = 1,
        padding: str = "SAME",
        stddev: float | None = None,
    ) -> None:
        super().__init__(name="Convolution")
        shape = (*kernel_size, in_channels, out_channels)
        kernel_name = f"{name}/weights"
        self._strides, self._padding = strides, padding
        self.kernel = tf.Variable(
            truncated_normal(shape, he_stddev(shape) if stddev is None else stddev, seed, kernel_name),
            name=kernel_name,
        )
        self.batch_norm = BatchNorm(out_channels, name)

    def __call__(self, inputs: Any, training: bool) -> Any:
        """Maps `[batch, height, width, in]` to `[batch, height', width', out]` of the same dtype."""
        kernel = tf.cast(self.kernel, inputs.dtype)
        outputs = tf.nn.conv2d(inputs, kernel, self._strides, self._padding)
        return tf.nn.relu(self.batch_norm(outputs, training))


class Classifier(tf.Module):
    """Mean over height and width, then a linear layer: the logits.

    Args:
        in_channels: channels of the input.
        num_classes: number of logits.
        name: scope of the variables.
        seed: the run's seed.
        stddev: standard deviation of the initial weights; None for `he_stddev`.
        keep_rate: share of the features that dropout keeps in training, 1 for no dropout.
    """

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        name: str,
        seed: int,
        stddev: float | None = None,
        keep_rate: float = 1.0,
    ) -> None:
        super().__init__(name="Classifier")
        shape = (in_channels, num_classes)
        kernel_name = f"{name}/weights"
        self._drop_rate = 1 - keep_rate
        self._dropout_seed = [seed, zlib.crc32(f"{name}/dropout".encode())]
        self.kernel = tf.Variable(
            truncated_normal(shape, he_stddev(shape) if stddev is None else stddev, seed, kernel_name),
            name=kernel_name,
        )
        self.bias = tf.Variable(tf.zeros([num_classes]), name=f"{name}/biases")

    def __call__(self, inputs: Any, training: bool, step: Any) -> Any:
        """Maps `[batch, height, width, in]` to float32 logits `[batch, num_classes]`.

        Args:
            inputs: the feature map.
            training: whether dropout is on.
            step: number of the step, int64: the same step drops the same features, also after a resume.
        """
        features = tf.reduce_mean(inputs, axis=[1, 2])
        if training and self._drop_rate:
            seed = tf.random.fold_in(tf.constant(self._dropout_seed, tf.int64), step, alg="philox")
            features = tf.nn.experimental.stateless_dropout(
                features, rate=self._drop_rate, seed=seed, rng_alg="philox"
            )
        # In float32 also under bfloat16: the softmax of the loss needs the digits, and the layer is small.
        return tf.linalg.matmul(tf.cast(features, tf.float32), self.kernel) + self.bias
