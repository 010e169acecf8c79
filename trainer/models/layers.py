"""The layers of the networks as plain `tf.Module`s: float32 variables, computed in the dtype of their input.

Plain modules and not Keras layers: the state of Keras 3 layers (moving averages, seeds) is not known to work
under TPUStrategy, and one naming scheme serves checkpoints and averages.
"""

from __future__ import annotations

import math
import zlib
from typing import Any

import tensorflow as tf

from trainer.models.batch_norm import REFERENCE_BATCH_NORM, BatchNorm, BatchNormOptions, Moments


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


class Convolution(tf.Module):
    """A convolution with batch normalisation and, unless told otherwise, ReLU; without a bias.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        kernel_size: height and width of the kernel, pixels.
        name: scope of the variables.
        seed: the run's seed.
        strides: step of the kernel in both directions, pixels.
        padding: `SAME` or `VALID`, or the zeros to add on each of the four sides, pixels.
        stddev: standard deviation of the initial kernel; None for `he_stddev`.
        batch_norm: decay and epsilon of the batch normalisation.
        initial_scale: first value of its scale; None for none.
        relu: whether a ReLU follows.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, int],
        name: str,
        seed: int,
        strides: int = 1,
        padding: str | int = "SAME",
        stddev: float | None = None,
        batch_norm: BatchNormOptions = REFERENCE_BATCH_NORM,
        initial_scale: float | None = None,
        relu: bool = True,
    ) -> None:
        super().__init__(name="Convolution")
        shape = (*kernel_size, in_channels, out_channels)
        kernel_name = f"{name}/weights"
        self._strides, self._padding, self._relu = strides, padding, relu
        self.kernel = tf.Variable(
            truncated_normal(shape, he_stddev(shape) if stddev is None else stddev, seed, kernel_name),
            name=kernel_name,
        )
        self.batch_norm = BatchNorm(out_channels, name, batch_norm, initial_scale)

    def __call__(self, inputs: Any, moments: list[Moments] | None) -> Any:
        """Maps `[batch, height, width, in]` to `[batch, height', width', out]` of the same dtype.

        Args:
            inputs: the feature map.
            moments: see `BatchNorm`.
        """
        padding: Any = self._padding
        if isinstance(padding, int):
            padding = [[0, 0], [padding, padding], [padding, padding], [0, 0]]
        outputs = tf.nn.conv2d(inputs, tf.cast(self.kernel, inputs.dtype), self._strides, padding)
        outputs = self.batch_norm(outputs, moments)
        return tf.nn.relu(outputs) if self._relu else outputs


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
        # Two hashes of 31 bits, because XLA takes int32 seeds only and the run's seed may be larger.
        self._dropout_seed = [
            zlib.crc32(text.encode()) & 0x7FFFFFFF for text in (str(seed), f"{name}/dropout")
        ]
        self.kernel = tf.Variable(
            truncated_normal(shape, he_stddev(shape) if stddev is None else stddev, seed, kernel_name),
            name=kernel_name,
        )
        self.bias = tf.Variable(tf.zeros([num_classes]), name=f"{name}/biases")

    def __call__(self, inputs: Any, training: bool, step: Any = 0, replica: Any = 0) -> Any:
        """Maps `[batch, height, width, in]` to float32 logits `[batch, num_classes]`.

        Args:
            inputs: the feature map.
            training: whether dropout is on.
            step: number of the step, 0 to 2^31 - 1: the same step drops the same features, also after a
                resume; compiled with XLA it drops others than without.
            replica: number of the replica; each drops features of its own.
        """
        features = tf.reduce_mean(inputs, axis=[1, 2])
        if training and self._drop_rate:
            seed = tf.constant(self._dropout_seed, tf.int32)
            for number in (step, replica):
                seed = tf.random.fold_in(seed, tf.cast(number, tf.int32), alg="philox")
            features = tf.nn.experimental.stateless_dropout(
                features, rate=self._drop_rate, seed=seed, rng_alg="philox"
            )
        # In float32 also under bfloat16: the softmax of the loss needs the digits, and the layer is small.
        return tf.linalg.matmul(tf.cast(features, tf.float32), self.kernel) + self.bias
