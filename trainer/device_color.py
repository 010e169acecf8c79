"""What the input pipeline leaves to the device: uint8 images to [-1, 1], with their colours shifted."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def scale_and_shift(images: Any, color_shift: Any = None) -> Any:
    """Returns the images as the host's preprocessing would have delivered them.

    Elementwise, so that XLA fuses it into whatever reads the images first.

    Args:
        images: uint8 [batch, height, width, 3].
        color_shift: float32 [batch, 3], what is added to red, green and blue on a scale of 0 to 1: the
            reference's fast colour distortion, drawn on the host. None adds nothing.

    Returns:
        float32 [batch, height, width, 3], clipped to [-1, 1].
    """
    scaled = tf.cast(images, tf.float32) * (2.0 / 255.0)
    if color_shift is None:
        return scaled - 1.0
    offsets = 2.0 * tf.cast(color_shift, tf.float32) - 1.0
    return tf.clip_by_value(scaled + offsets[:, tf.newaxis, tf.newaxis, :], -1.0, 1.0)
