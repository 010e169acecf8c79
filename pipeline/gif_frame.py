"""The first frame of a GIF as a GIF of its own, in graph operations.

TensorFlow's decoder unpacks every frame before it delivers the first, whatever size they claim, and delivers
a truncated frame without a word. With the bytes of the first frame alone, its size is what the header says,
and a cut is seen.

Layout: GIF 89a specification, sections 15 to 27.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

_HEADER_BYTES = 13
_EXTENSION = 0x21
_GRAPHIC_CONTROL = 0xF9
_IMAGE = 0x2C
_TRAILER = b";"
_WHITE = b"\xff\xff\xff"


def first_frame(encoded: Any) -> Any:
    """Returns the GIF without extensions and later frames, string []; its transparent colour is made white.

    For a GIF that is cut before the end of the first frame, and for one whose first frame does not fill it,
    there are no bytes.

    Args:
        encoded: string [], the bytes of a GIF.
    """
    data = _Bytes(encoded)
    colors_end = _HEADER_BYTES + _table_bytes(data.at(10))
    frame, control = _skip_extensions(data, colors_end)
    corner = [data.pair_at(frame + 1), data.pair_at(frame + 3)]
    size = [data.pair_at(frame + 5), data.pair_at(frame + 7)]
    fills = tf.reduce_all(tf.stack(corner) == 0) & tf.reduce_all(
        tf.stack(size) == tf.stack([data.pair_at(6), data.pair_at(8)])
    )
    packed = data.at(frame + 9)
    # One byte between the colours of the frame and its data: the size of the codes.
    end = _after_sub_blocks(data, frame + 10 + _table_bytes(packed) + 1)
    is_good = (data.at(frame) == _IMAGE) & (end <= data.length) & fills
    is_transparent = (control > 0) & (data.at(control + 3) % 2 == 1)
    table = tf.where(_table_bytes(packed) > 0, colors_end + 10, _HEADER_BYTES)
    alone = _slice(encoded, 0, colors_end) + _slice(encoded, frame, end) + _TRAILER
    color = table + 3 * data.at(control + 6)
    whitened = _slice(alone, 0, color) + _WHITE + _slice(alone, color + 3, end)
    return tf.where(is_good, tf.where(is_transparent, whitened, alone), b"")


class _Bytes:
    """The bytes of a string as numbers; zeros behind its end."""

    def __init__(self, encoded: Any) -> None:
        self._values = tf.io.decode_raw(encoded, tf.uint8)
        self.length = tf.size(self._values)

    def at(self, position: Any) -> Any:
        value = tf.gather(self._values, tf.clip_by_value(position, 0, self.length - 1))
        return tf.where(position < self.length, tf.cast(value, tf.int32), 0)

    def pair_at(self, position: Any) -> Any:
        return self.at(position) + 256 * self.at(position + 1)


def _slice(encoded: Any, begin: Any, end: Any) -> Any:
    """Returns the bytes from `begin` to `end`, as many of them as there are."""
    begin = tf.minimum(begin, tf.strings.length(encoded))
    return tf.strings.substr(encoded, begin, tf.maximum(end - begin, 0))


def _table_bytes(packed: Any) -> Any:
    """Length of the table of colours that a packed field announces."""
    return tf.where(packed >= 128, tf.bitwise.left_shift(6, packed % 8), 0)


def _skip_extensions(data: _Bytes, position: Any) -> tuple[Any, Any]:
    """Returns where the first block that is no extension starts, and the last graphic control or 0."""

    def skip(position: Any, control: Any) -> tuple[Any, Any]:
        control = tf.where(data.at(position + 1) == _GRAPHIC_CONTROL, position, control)
        return _after_sub_blocks(data, position + 2), control

    found: tuple[Any, Any] = tf.while_loop(
        lambda position, control: data.at(position) == _EXTENSION, skip, [position, tf.constant(0)]
    )
    return found


def _after_sub_blocks(data: _Bytes, position: Any) -> Any:
    """Returns the position behind a row of blocks, each led by its length, and the zero that ends it."""
    (last,) = tf.while_loop(
        lambda position: data.at(position) > 0,
        lambda position: (position + 1 + data.at(position),),
        [position],
    )
    # Where the zero lies behind the end, so does what is returned.
    return last + 1
