"""Re-augmentation on the device: batches used again are flipped, shifted and recoloured, image by image.

Cheap on purpose, since it takes time of the step: two gathers and one addition, on images that the host's
augmentation has cropped and resized already. Nothing is interpolated.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from echoing.errors import DataError
from trainer.transfer import HOST

MAX_BRIGHTNESS_DELTA = 32.0 / 255.0
"""Largest shift of all channels, on a scale of 0 to 1; the Cloud TPU Inception v3 reference trainer's."""
MAX_CHROMA_DELTA = 0.1
"""Largest shift of blue and of red chroma; the reference trainer's cb and cr distortion range."""
MAX_TRANSLATION = 0.04
"""Largest translation, as a share of the image's height and width: 12 of 299 pixels. Our choice: well below
what the random crop before has varied, so that an object at the border stays in sight."""

CHROMA_TO_RGB = ((0.0, -0.344136, 1.772), (1.402, -0.714136, 0.0))
"""What one unit of blue chroma (cb) and of red chroma (cr) adds to red, green and blue: JPEG's conversion."""


class Distortion(NamedTuple):
    """What happens to each image of a batch; every field has the shape `[batch]`.

    Attributes:
        flip: bool, mirror left to right, before the translation.
        down: int32, pixels by which the image moves down; up if negative. The edge fills the gap.
        right: int32, pixels by which it moves to the right; to the left if negative.
        brightness: float32, added to all channels, on a scale of 0 to 1.
        cb: float32, shift of blue chroma.
        cr: float32, shift of red chroma.
    """

    flip: Any
    down: Any
    right: Any
    brightness: Any
    cb: Any
    cr: Any


def reaugment(images: Any, seed: Any, replica: Any = 0, replicas: int = 1) -> Any:
    """Returns a batch with every image randomly flipped, translated and recoloured, each in its own way.

    Stateless: equal seeds give equal results, on every device and compiled or not up to float rounding.

    Args:
        images: `[batch, height, width, 3]`: a float dtype with values from -1 to 1 (Inception's range; values
            outside are clipped), or uint8.
        seed: int32 or int64 [2], key of all draws.
        replica: which of equal parts of a batch these images are.
        replicas: number of parts.

    Returns:
        Images of the same shape, dtype and range.

    Raises:
        DataError: the images have another dtype.
    """
    shape = tf.shape(images)
    drawn = draw(shape[0] * replicas, shape[1], shape[2], seed)
    if replicas > 1:
        # All draws are made on every replica: they cost less than telling the replicas their own.
        drawn = Distortion(*(values[replica * shape[0] :][: shape[0]] for values in drawn))
    return distort(images, drawn)


def reaugment_repeat(
    images: Any, repeat: Any, seed: int, step: Any, replica: Any = 0, replicas: int = 1
) -> Any:
    """Returns `images` as they are on their first use, and re-augmented on every other.

    Args:
        images: see `reaugment`.
        repeat: int64 [], how often the batch was used before.
        seed: of the run.
        step: int64 [], number of the step; together with `seed` the key of all draws.
        replica: which part of a batch these images are: an image is changed in the same way, however many
            parts the batch is split into.
        replicas: number of parts.
    """
    # On the host, where a branch is chosen and a seed is read: else both would wait for the device.
    with tf.device(HOST):
        is_repeat, key = repeat > 0, tf.stack([tf.constant(seed, tf.int64), step])
    return tf.cond(is_repeat, lambda: reaugment(images, key, replica, replicas), lambda: images)


def draw(batch: Any, height: Any, width: Any, seed: Any) -> Distortion:
    """Returns independent uniform draws for `batch` images of `height` x `width` pixels.

    Args:
        batch: number of images.
        height: pixels.
        width: pixels.
        seed: int32 or int64 [2].
    """
    # One algorithm everywhere: the default differs between devices. Bits and not floats: XLA makes other
    # floats of the same bits than TensorFlow's kernels do. One draw for all values: a random op costs more
    # than the numbers that it gives.
    bits = tf.random.stateless_uniform(
        [batch, 6], seed, minval=None, maxval=None, dtype=tf.uint32, alg="philox"
    )
    values = tf.cast(tf.bitwise.right_shift(bits, tf.constant(8, tf.uint32)), tf.float32) * 2.0**-24
    flip, down, right, brightness, cb, cr = tf.unstack(values, axis=1)

    def translation(uniform: Any, size: Any) -> Any:
        most = tf.floor(MAX_TRANSLATION * tf.cast(size, tf.float32) + 0.5)
        return tf.cast(tf.floor(uniform * (2 * most + 1)) - most, tf.int32)

    return Distortion(
        flip=flip < 0.5,
        down=translation(down, height),
        right=translation(right, width),
        brightness=(2 * brightness - 1) * MAX_BRIGHTNESS_DELTA,
        cb=(2 * cb - 1) * MAX_CHROMA_DELTA,
        cr=(2 * cr - 1) * MAX_CHROMA_DELTA,
    )


def distort(images: Any, distortion: Distortion) -> Any:
    """Applies a distortion; see `reaugment` for the images and the result."""
    dtype = images.dtype
    if dtype != tf.uint8 and not dtype.is_floating:
        raise DataError(
            f"Images of dtype {dtype.name} cannot be re-augmented on the device. Cast them to uint8, "
            "bfloat16 or float32 in the pipeline, or leave the re-augmentation out."
        )
    lowest, highest = (0.0, 255.0) if dtype == tf.uint8 else (-1.0, 1.0)
    # float32 first: it has kernels for everything below on every device.
    result = _move(tf.cast(images, tf.float32), distortion)
    chroma = tf.stack([distortion.cb, distortion.cr], axis=1) @ tf.constant(CHROMA_TO_RGB)
    shift = (distortion.brightness[:, tf.newaxis] + chroma) * (highest - lowest)
    result = tf.clip_by_value(result + shift[:, tf.newaxis, tf.newaxis, :], lowest, highest)
    return tf.cast(tf.round(result) if dtype == tf.uint8 else result, dtype)


def _move(images: Any, distortion: Distortion) -> Any:
    """Flips and translates by picking rows and columns; picks beyond the edge give the edge."""
    shape = tf.shape(images)

    def places(size: Any, translation: Any) -> Any:
        return tf.clip_by_value(tf.range(size) - translation[:, tf.newaxis], 0, size - 1)

    rows = places(shape[1], distortion.down)
    columns = places(shape[2], distortion.right)
    columns = tf.where(distortion.flip[:, tf.newaxis], shape[2] - 1 - columns, columns)
    moved = tf.gather(tf.gather(images, rows, axis=1, batch_dims=1), columns, axis=2, batch_dims=1)
    moved.set_shape(images.shape)
    return moved
