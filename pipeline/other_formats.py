"""Decodes what is no JPEG, whatever its name says, by the rules of the converter: PNG, GIF and BMP.

- Transparent pixels are laid over white.
- Of 16-bit values the high byte is taken.
- Only the first frame of a GIF is decoded (see `pipeline.gif_frame`).
- A BMP has 24 or 32 bits a pixel, is not compressed, and its fourth byte means nothing; TensorFlow would
  misread other ones. The converter takes them.

These are rare among records: correctness first, speed second. Truncated ones are bad, and stay so where
truncated JPEGs are recovered.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from pipeline.gif_frame import first_frame
from pipeline.image_header import GIF_MAGIC, PNG_MAGIC, first_bytes, little_endian, starts_with

_OPAQUE = 255
_NOTHING = b""
"""What no decoder takes: the way to an error without `tf.debugging.Assert`, see `image_decoding._either`."""
_BMP_HEADER_BYTES = 34
_PNG_HEADER_BYTES = 25


def decode_other(encoded: Any) -> Any:
    """Returns the image, uint8 [height, width, 3].

    Damaged bytes, and those of another format, raise `tf.errors.InvalidArgumentError`.

    Args:
        encoded: string [], the bytes of a PNG, GIF or BMP whose size was checked by `image_size`.
    """
    image = tf.cond(
        starts_with(encoded, PNG_MAGIC),
        lambda: _decode_png(encoded),
        lambda: tf.cond(
            starts_with(encoded, GIF_MAGIC), lambda: _decode_gif(encoded), lambda: _decode_bmp(encoded)
        ),
    )
    image.set_shape([None, None, 3])
    return image


def _decode_png(encoded: Any) -> Any:
    rgba = tf.io.decode_png(encoded, channels=4)
    # Where a PNG of fewer than 8 bits has no alpha, TensorFlow makes up the largest value of so many bits.
    bits = first_bytes(encoded, _PNG_HEADER_BYTES)[24]
    made_up = tf.cast(tf.bitwise.left_shift(tf.constant(1, tf.int64), tf.minimum(bits, 8)) - 1, tf.uint8)
    is_opaque = tf.reduce_all(rgba[..., 3] == _OPAQUE) | tf.reduce_all(rgba[..., 3] == made_up)
    return tf.cond(is_opaque, lambda: rgba[..., :3], lambda: _over_white(rgba))


def _over_white(rgba: Any) -> Any:
    # 255 x 255 + 127 fits 16 bits.
    color, alpha = tf.cast(rgba[..., :3], tf.uint16), tf.cast(rgba[..., 3:], tf.uint16)
    return tf.cast((color * alpha + _OPAQUE * (_OPAQUE - alpha) + _OPAQUE // 2) // _OPAQUE, tf.uint8)


def _decode_gif(encoded: Any) -> Any:
    return tf.io.decode_gif(first_frame(encoded))[0]


def _decode_bmp(encoded: Any) -> Any:
    header = first_bytes(encoded, _BMP_HEADER_BYTES)
    bits, compression = little_endian(header[28:30]), little_endian(header[30:34])
    is_plain = ((bits == 24) | (bits == 32)) & (compression == 0)
    return tf.io.decode_bmp(tf.where(is_plain, encoded, _NOTHING), channels=0)[..., :3]
