"""From the bytes of a record to pixels, all of them or a window, under one policy for bad images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from pipeline.config import MAX_IMAGE_PIXELS


@dataclass(frozen=True)
class DecodeOptions:
    """How images are decoded.

    Attributes:
        dct_method: `INTEGER_FAST`, `INTEGER_ACCURATE`, or empty for TensorFlow's default.
        fancy_upscaling: interpolate the chroma planes.
        max_pixels: images that claim more in their header are bad.
        recover_truncated: use what a truncated image still holds.
    """

    dct_method: str = ""
    fancy_upscaling: bool = True
    max_pixels: int = MAX_IMAGE_PIXELS
    recover_truncated: bool = False


def image_size(encoded: Any, options: DecodeOptions) -> Any:
    """Returns height and width as the header states them, int32 [2].

    Args:
        encoded: string [], the bytes of the image.
        options: see `DecodeOptions`.
    """
    size = tf.io.extract_jpeg_shape(encoded)[:2]
    pixels = tf.reduce_prod(tf.cast(size, tf.int64))
    small = tf.debugging.Assert(pixels <= options.max_pixels, ["image of too many pixels", size])
    with tf.control_dependencies([small]):
        return tf.identity(size)


def decode_image(encoded: Any, options: DecodeOptions) -> Any:
    """Returns the whole image, uint8 [height, width, 3]; arguments as for `image_size`."""
    with tf.control_dependencies([image_size(encoded, options)]):
        return tf.io.decode_jpeg(
            encoded,
            channels=3,
            fancy_upscaling=options.fancy_upscaling,
            try_recover_truncated=options.recover_truncated,
            dct_method=options.dct_method,
        )


def decode_window(encoded: Any, window: Any, options: DecodeOptions) -> Any:
    """Returns a window of the image, uint8 [window height, window width, 3].

    Args:
        encoded: string [], the bytes of the image; its size was checked by `image_size`.
        window: int32 [4]: top, left, height, width, pixels.
        options: see `DecodeOptions`.
    """
    return tf.io.decode_and_crop_jpeg(
        encoded,
        window,
        channels=3,
        fancy_upscaling=options.fancy_upscaling,
        try_recover_truncated=options.recover_truncated,
        dct_method=options.dct_method,
    )
