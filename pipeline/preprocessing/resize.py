"""Resizing to the model's size by TensorFlow's kernels, on the reference's grid or on that of TensorFlow 2.

The reference's grid puts target pixel i on source position i x scale (corners not aligned, no half-pixel
centres); TensorFlow 2's puts it on (i + 1/2) x scale - 1/2. `tf.image.resize` knows the second one only.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

METHODS = ("bilinear", "nearest", "bicubic", "area")
"""In the reference's order: the number that is drawn is the place in it."""


def resize_bilinear(image: Any, height: int, width: int, half_pixel_centers: bool = False) -> Any:
    """Returns the image resized bilinearly, float32 [height, width, 3], values on the scale of the input.

    Args:
        image: uint8 or float32 [any height, any width, 3].
        height: of the result, pixels.
        width: of the result, pixels.
        half_pixel_centers: which grid, see above.
    """
    # Cast first: the kernel takes 1.8 times as long on uint8 and gives the same values.
    return tf.raw_ops.ResizeBilinear(
        images=tf.cast(image, tf.float32)[tf.newaxis],
        size=[height, width],
        align_corners=False,
        half_pixel_centers=half_pixel_centers,
    )[0]


def resize(image: Any, height: int, width: int, method: Any, half_pixel_centers: bool = False) -> Any:
    """Returns the image resized by a method that is drawn, float32 [height, width, 3].

    Args:
        image: uint8 or float32 [any height, any width, 3].
        height: of the result, pixels.
        width: of the result, pixels.
        method: int32 [], place in `METHODS`. Bicubic may leave the range of the input.
        half_pixel_centers: which grid, see above; the area method has none.
    """
    images = tf.cast(image, tf.float32)[tf.newaxis]
    size = tf.constant([height, width])
    grid = {"images": images, "size": size, "align_corners": False}
    resized = tf.switch_case(
        method,
        [
            lambda: tf.raw_ops.ResizeBilinear(**grid, half_pixel_centers=half_pixel_centers),
            lambda: tf.raw_ops.ResizeNearestNeighbor(**grid, half_pixel_centers=half_pixel_centers),
            lambda: tf.raw_ops.ResizeBicubic(**grid, half_pixel_centers=half_pixel_centers),
            lambda: tf.raw_ops.ResizeArea(**grid),
        ],
    )
    return tf.ensure_shape(resized[0], [height, width, 3])
