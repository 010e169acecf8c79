"""What the networks share: options that are checked, images as they come, variables by their role."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from echoing.checks import check_choice, check_integer, check_number
from trainer.models.batch_norm import BatchNormOptions

COMPUTE_DTYPES = ("float32", "bfloat16")
MINIMUM_DEPTH = 16
"""The width multiplier makes no layer narrower than this, channels; tf_slim's min_depth."""


class Network(tf.Module):
    """Base of the networks.

    Args:
        name: of the module.
        image_size: height and width of the images, pixels.
        minimum_image_size: the least that the network can work on, pixels.
        width_multiplier: factor on the channels of each layer, > 0; none gets fewer than 16 channels.
        num_classes: number of logits, the background included; labels are 0 to `num_classes - 1`.
        compute_dtype: `float32` or `bfloat16`; variables and logits are float32 in any case.
        seed: seed of the initial weights and of dropout, >= 0.
        batch_norm: decay and epsilon of the batch normalisations.

    Raises:
        OptionError: a value is not allowed.
    """

    def __init__(
        self,
        name: str,
        image_size: int,
        minimum_image_size: int,
        width_multiplier: float,
        num_classes: int,
        compute_dtype: str,
        seed: int,
        batch_norm: BatchNormOptions,
    ) -> None:
        super().__init__(name=name)
        self._image_size = check_integer(
            "image_size",
            image_size,
            minimum=minimum_image_size,
            advice="Smaller images leave nothing of the feature map; let the pipeline resize to more.",
        )
        self._width = check_number("width_multiplier", width_multiplier, minimum=0, exclusive_minimum=True)
        self._num_classes = check_integer("num_classes", num_classes, minimum=2)
        self._dtype = tf.as_dtype(check_choice("compute_dtype", compute_dtype, COMPUTE_DTYPES))
        self._seed = check_integer("seed", seed, minimum=0)
        self._batch_norm = batch_norm

    @property
    def regularized_variables(self) -> list[Any]:
        """The kernels of convolutions and classifiers: what weight decay applies to."""
        return [variable for variable in self.trainable_variables if "/weights" in variable.name]

    @property
    def moving_variables(self) -> list[Any]:
        """The moving averages of the batch normalisations."""
        return [variable for variable in self.variables if not variable.trainable]

    def _depth(self, depth: int) -> int:
        """Returns the channels of a layer that has `depth` at width multiplier 1."""
        return max(int(depth * self._width), MINIMUM_DEPTH)

    def _features(self, images: Any) -> Any:
        """Returns images in the dtype of the computation, in [-1, 1], with their height and width static."""
        if images.dtype == tf.uint8:
            images = tf.cast(images, tf.float32) / 127.5 - 1.0
        images = tf.ensure_shape(images, [None, self._image_size, self._image_size, 3])
        return tf.cast(images, self._dtype)
