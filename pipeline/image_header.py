"""The size of an image from its first bytes, in graph operations: what TensorFlow reads of JPEG alone.

Layouts: PNG (ISO/IEC 15948, 11.2.2), GIF 89a (section 18), BMP with a BITMAPINFOHEADER.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

JPEG_MAGIC = b"\xff\xd8\xff"
PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
GIF_MAGIC = b"GIF8"
BMP_MAGIC = b"BM"
"""First bytes of the formats, as TensorFlow's decoders tell them apart."""

_HEADER_BYTES = 26


def is_jpeg(encoded: Any) -> Any:
    """Returns whether the bytes, string [], start like a JPEG, bool []."""
    return starts_with(encoded, JPEG_MAGIC)


def starts_with(encoded: Any, magic: bytes) -> Any:
    """Returns whether the bytes, string [], start with `magic`, bool []."""
    return tf.strings.substr(encoded, 0, len(magic)) == magic


def first_bytes(encoded: Any, count: int) -> Any:
    """Returns the first bytes as int64 [count], with zeros behind the end of shorter ones."""
    padded = tf.strings.substr(encoded, 0, count) + b"\0" * count
    values = tf.io.decode_raw(tf.strings.substr(padded, 0, count), tf.uint8)
    return tf.cast(tf.ensure_shape(values, [count]), tf.int64)


def little_endian(values: Any) -> Any:
    """Returns the number, int64 [], that bytes, int64 [count], stand for, the lowest first."""
    return tf.reduce_sum(values * [256**place for place in range(values.shape[0])])


def stated_size(encoded: Any) -> Any:
    """Returns height and width as the header of a PNG, GIF or BMP states them, int32 [2].

    Zeros stand for bytes of another format and for a header that is cut.

    Args:
        encoded: string [].
    """
    header = first_bytes(encoded, _HEADER_BYTES)
    png = [_big_endian(header[20:24]), _big_endian(header[16:20])]
    gif = [little_endian(header[8:10]), little_endian(header[6:8])]
    # A negative height says that the rows of a BMP go from top to bottom.
    bmp = [tf.abs(_signed(little_endian(header[22:26]))), _signed(little_endian(header[18:22]))]
    is_png, is_gif, is_bmp = (starts_with(encoded, magic) for magic in (PNG_MAGIC, GIF_MAGIC, BMP_MAGIC))
    size = tf.where(
        is_png, tf.stack(png), tf.where(is_gif, tf.stack(gif), tf.where(is_bmp, tf.stack(bmp), 0))
    )
    return tf.cast(tf.clip_by_value(size, 0, tf.int32.max), tf.int32)


def _big_endian(values: Any) -> Any:
    return little_endian(values[::-1])


def _signed(number: Any) -> Any:
    return tf.where(number >= 2**31, number - 2**32, number)
