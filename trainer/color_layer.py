"""The device's half of the preprocessing as a Keras layer, for models that are trained by `model.fit`."""

from __future__ import annotations

from typing import Any

import keras

from trainer.device_color import scale_and_shift


@keras.saving.register_keras_serializable(package="pipebench")
class ScaleAndShift(keras.layers.Layer):
    """Scales uint8 images to [-1, 1] and shifts their colours, as the first layer of a model.

    Takes what the pipeline delivers with `dtype="uint8"`: a dictionary of `image` uint8
    [batch, height, width, 3] and `color_shift` float32 [batch, 3]; or the images alone, as in evaluation,
    which are only scaled. Has no weights and draws nothing.
    """

    def call(self, inputs: Any) -> Any:
        """Returns float32 [batch, height, width, 3]."""
        if isinstance(inputs, dict):
            return scale_and_shift(inputs["image"], inputs.get("color_shift"))
        return scale_and_shift(inputs)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Returns the shape of the images."""
        return input_shape["image"] if isinstance(input_shape, dict) else input_shape
