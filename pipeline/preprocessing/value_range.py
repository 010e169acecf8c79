"""Pixels as numbers from -1 to 1, in float types, and as grey levels from 0 to 255, in uint8."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def to_dtype(image: Any, dtype: str) -> Any:
    """Returns the same picture in another type.

    Args:
        image: float32 or bfloat16, -1 to 1, or uint8, 0 to 255; any shape.
        dtype: one of `config.DTYPES`. Grey levels are rounded to the nearest; what lies outside -1 to 1
            becomes 0 or 255.

    Returns:
        The picture, shape as given.
    """
    wanted = tf.dtypes.as_dtype(dtype)
    if image.dtype == wanted:
        return image
    if image.dtype == tf.uint8:
        return tf.cast(tf.cast(image, tf.float32) * (2.0 / 255.0) - 1.0, wanted)
    if wanted == tf.uint8:
        return tf.saturate_cast(tf.round((tf.cast(image, tf.float32) + 1.0) * 127.5), tf.uint8)
    return tf.cast(image, wanted)
