"""Resizing to the model's size by TensorFlow's kernels, on the reference's grid or on that of TensorFlow 2.

The reference's grid puts target pixel i on source position i x scale (corners not aligned, no half-pixel
centres); TensorFlow 2's puts it on (i + 1/2) x scale - 1/2. `tf.image.resize` knows the second one only.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

METHODS = ("bilinear", "nearest", "bicubic", "area")
"""In the reference's order: the number that is drawn is the place in it."""

WHOLE_UP_TO = 6
"""Up to how many times the pixels of a part the whole image is resized: the kernel takes about a fifth of the
time that gathers take for a pixel (at 299 x 299), but 1 x 2,000 pixels may become 600 x 1,200,000."""


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
        tf.convert_to_tensor(method),
        [
            lambda: tf.raw_ops.ResizeBilinear(**grid, half_pixel_centers=half_pixel_centers),
            lambda: tf.raw_ops.ResizeNearestNeighbor(**grid, half_pixel_centers=half_pixel_centers),
            lambda: tf.raw_ops.ResizeBicubic(**grid, half_pixel_centers=half_pixel_centers),
            lambda: tf.raw_ops.ResizeArea(**grid),
        ],
    )
    return tf.ensure_shape(resized[0], [height, width, 3])


def resize_bilinear_part(
    image: Any, size: Any, begin: Any, height: int, width: int, half_pixel_centers: bool = False
) -> Any:
    """Returns a part of the image as it would be if it were resized whole, without resizing much of the rest.

    Args:
        image: uint8 or float32 [any height, any width, 3].
        size: int32 [2], height and width of the whole resized image, pixels.
        begin: int32 [2], top and left of the part in it, pixels.
        height: of the part, pixels.
        width: of the part, pixels.
        half_pixel_centers: which grid, see above.

    Returns:
        float32 [height, width, 3], values on the scale of the input.
    """
    whole_pixels = tf.reduce_prod(tf.cast(size, tf.int64))

    def cut_from_whole() -> Any:
        resized = tf.raw_ops.ResizeBilinear(
            images=tf.cast(image, tf.float32)[tf.newaxis],
            size=size,
            align_corners=False,
            half_pixel_centers=half_pixel_centers,
        )[0]
        return tf.slice(resized, tf.concat([begin, [0]], axis=0), [height, width, 3])

    part = tf.cond(
        whole_pixels <= WHOLE_UP_TO * height * width,
        cut_from_whole,
        lambda: _part_alone(image, size, begin, height, width, half_pixel_centers),
    )
    return tf.ensure_shape(part, [height, width, 3])


def _part_alone(image: Any, size: Any, begin: Any, height: int, width: int, half_pixel_centers: bool) -> Any:
    source = tf.shape(image)
    top, bottom, down = _neighbours(source[0], size[0], begin[0], height, half_pixel_centers)
    left, right, across = _neighbours(source[1], size[1], begin[1], width, half_pixel_centers)
    # Only the columns needed, then rows: gathered as they come, cast after.
    columns = image[:, left[0] : right[-1] + 1]
    rows = _interpolate(columns, top, bottom, down[:, tf.newaxis, tf.newaxis], axis=0)
    return _interpolate(rows, left - left[0], right - left[0], across[:, tf.newaxis], axis=1)


def _neighbours(source: Any, target: Any, begin: Any, count: int, half_pixel_centers: bool) -> Any:
    """Returns the source pixels before and after each target pixel, int32 [count], and the last's weight."""
    scale = tf.cast(source, tf.float32) / tf.cast(target, tf.float32)
    index = tf.cast(begin + tf.range(count), tf.float32)
    position = (index + 0.5) * scale - 0.5 if half_pixel_centers else index * scale
    before = tf.floor(position)
    first = tf.clip_by_value(tf.cast(before, tf.int32), 0, source - 1)
    second = tf.clip_by_value(tf.cast(tf.math.ceil(position), tf.int32), 0, source - 1)
    return first, second, position - before


def _interpolate(image: Any, first: Any, second: Any, weight: Any, axis: int) -> Any:
    one = tf.cast(tf.gather(image, first, axis=axis), tf.float32)
    other = tf.cast(tf.gather(image, second, axis=axis), tf.float32)
    return one + (other - one) * weight
