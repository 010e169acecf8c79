"""From the bytes of a record to pixels: the whole image, or a window of it, under one policy for bad images.

TensorFlow's two decoders do not reject the same JPEGs: the one of a window never looks at what lies below it.
Here both judge alike:

- The size is read from the header first, and an image that claims too many pixels is never decoded.
- A JPEG that ends with its end-of-image marker goes to the decoder of windows. Any other one, cut or with
  bytes behind its end, is decoded whole and judged by that, and the window is cut out of it. Where truncated
  images are recovered, all JPEGs go to the decoder of windows.
- PNG, GIF and BMP under any name are decoded whole, see `pipeline.other_formats`.

One difference stays. Where a stray marker stands inside the compressed data of a JPEG with one scan, the rest
of the image is grey to both decoders; if no marker segment follows the stray marker, the whole image and
windows that reach the last row are rejected, other windows are not. Finding such markers means reading all
of the bytes, a tenth of the time of decoding a window: `pipebench data check` and the converter do it.

Changed bytes that are still valid Huffman codes look like a picture to every decoder; JPEG has no checksum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from echoing.checks import check_choice, check_integer
from pipeline.branching import either, rare_operation
from pipeline.config import DCT_METHODS, MAX_IMAGE_PIXELS
from pipeline.image_header import is_jpeg, stated_size
from pipeline.other_formats import decode_other

_END_OF_IMAGE = b"\xff\xd9"
_stated_size = rare_operation(stated_size)
_decode_other = rare_operation(decode_other)
_CONTEXT_PIXELS = 8
"""Pixels decoded beside a window for interpolated chroma. One column would do for the values; libjpeg-turbo
interpolates only where more than two columns of chroma are decoded."""


@dataclass(frozen=True)
class DecodeOptions:
    """How images are decoded.

    Attributes:
        dct_method: `INTEGER_FAST`, `INTEGER_ACCURATE`, or empty for TensorFlow's default.
        fancy_upscaling: interpolate the chroma planes.
        max_pixels: images that claim more in their header are bad.
        recover_truncated: use what a truncated JPEG still holds, the rest grey.
    """

    dct_method: str = ""
    fancy_upscaling: bool = True
    max_pixels: int = MAX_IMAGE_PIXELS
    recover_truncated: bool = False

    def __post_init__(self) -> None:
        """Checks every option.

        Raises:
            OptionError: an option has a value that is not allowed.
        """
        check_choice("dct_method", self.dct_method, DCT_METHODS)
        check_integer("max_pixels", self.max_pixels, minimum=1)


def claimed_size(encoded: Any) -> Any:
    """Returns height and width as the header states them, int32 [2], however large.

    A JPEG header that cannot be read raises `tf.errors.InvalidArgumentError`; zeros stand for a PNG, GIF or
    BMP header that is cut and for other formats.

    Args:
        encoded: string [], the bytes of the image.
    """
    size = either(is_jpeg(encoded), encoded, lambda jpeg: tf.io.extract_jpeg_shape(jpeg)[:2], _stated_size)
    size.set_shape([2])
    return size


def image_size(encoded: Any, options: DecodeOptions) -> Any:
    """Returns height and width as the header states them, int32 [2].

    A header that cannot be read, or that claims more than `options.max_pixels`, raises
    `tf.errors.InvalidArgumentError`.

    Args:
        encoded: string [], the bytes of the image.
        options: see `DecodeOptions`.
    """
    return _checked(claimed_size(encoded), options)


def _checked(size: Any, options: DecodeOptions) -> Any:
    """Returns the sizes, int32 [..., 2], if all have pixels and none too many."""
    pixels = tf.reduce_prod(tf.cast(size, tf.int64), axis=-1)
    words = f"the image has no size, or more than {options.max_pixels:,} pixels; height and width:"
    is_good = tf.reduce_all((pixels > 0) & (pixels <= options.max_pixels))
    with tf.control_dependencies([tf.debugging.Assert(is_good, [words, size])]):
        return tf.identity(size)


def decode_image(encoded: Any, options: DecodeOptions) -> Any:
    """Returns the whole image, uint8 [height, width, 3]; arguments and errors as for `image_size`.

    A grey image has three equal channels; CMYK becomes RGB by the plain formula; alpha is laid over white;
    an orientation in EXIF is not looked at.
    """
    with tf.control_dependencies([image_size(encoded, options)]):
        encoded = tf.identity(encoded)
    return _decode_whole(encoded, options)


def decode_window(encoded: Any, window: Any, options: DecodeOptions) -> Any:
    """Returns a window of the image, uint8 [window height, window width, 3].

    The pixels are those of `decode_image`, to the last bit, whatever the options. With `fancy_upscaling` that
    takes a few columns beside the window, which are decoded and cut off again.

    Args:
        encoded: string [], the bytes of the image; its size was checked by `image_size`.
        window: int32 [4]: top, left, height, width, pixels; inside the image.
        options: see `DecodeOptions`.
    """
    is_whole_jpeg = is_jpeg(encoded)
    if not options.recover_truncated:
        # Of an image of one byte or none, whose header cannot be read either, this is an error.
        is_whole_jpeg &= tf.strings.substr(encoded, -2, 2) == _END_OF_IMAGE
    image = either(
        is_whole_jpeg,
        encoded,
        lambda jpeg: _decode_jpeg_window(jpeg, window, options),
        lambda rest: _cut(_decode_whole(rest, options), window),
    )
    image.set_shape([None, None, 3])
    return image


def are_plain_jpegs(encoded: Any) -> Any:
    """Returns whether all of a block are JPEGs that end with an end-of-image marker, bool [].

    That is what nearly all images are, and what `plain_sizes` and `decode_plain_window` take.

    Args:
        encoded: string [images].
    """
    return tf.reduce_all(is_jpeg(encoded) & (tf.strings.substr(encoded, -2, 2) == _END_OF_IMAGE))


def plain_sizes(encoded: list[Any], options: DecodeOptions) -> Any:
    """Returns heights and widths, int32 [images, 2]; errors and results are those of `image_size`.

    Args:
        encoded: string [] each, of which `are_plain_jpegs` is true.
        options: see `DecodeOptions`.
    """
    return _checked(tf.stack([tf.io.extract_jpeg_shape(one)[:2] for one in encoded]), options)


def decode_plain_window(encoded: Any, window: Any, options: DecodeOptions) -> Any:
    """Returns what `decode_window` does, for an image of a block of which `are_plain_jpegs` is true."""
    image = _decode_jpeg_window(encoded, window, options)
    image.set_shape([None, None, 3])
    return image


def _decode_whole(encoded: Any, options: DecodeOptions) -> Any:
    image = either(is_jpeg(encoded), encoded, lambda jpeg: _decode_jpeg(jpeg, options), _decode_other)
    image.set_shape([None, None, 3])
    return image


def _decode_jpeg(jpeg: Any, options: DecodeOptions) -> Any:
    return tf.io.decode_jpeg(
        jpeg,
        channels=3,
        fancy_upscaling=options.fancy_upscaling,
        try_recover_truncated=options.recover_truncated,
        dct_method=options.dct_method,
    )


def _decode_jpeg_window(jpeg: Any, window: Any, options: DecodeOptions) -> Any:
    def decode(part: Any) -> Any:
        return tf.io.decode_and_crop_jpeg(
            jpeg,
            part,
            channels=3,
            fancy_upscaling=options.fancy_upscaling,
            try_recover_truncated=options.recover_truncated,
            dct_method=options.dct_method,
        )

    if not options.fancy_upscaling:
        return decode(window)
    image_width = tf.io.extract_jpeg_shape(jpeg)[1]
    top, left, height, width = tf.unstack(window)
    begin = tf.maximum(left - _CONTEXT_PIXELS, 0)
    end = tf.minimum(left + width + _CONTEXT_PIXELS, image_width)
    # A window that reaches out of the image must fail, not be mended.
    end = tf.maximum(end, left + width)
    return _cut(
        decode(tf.stack([top, begin, height, end - begin])), tf.stack([0, left - begin, height, width])
    )


def _cut(image: Any, window: Any) -> Any:
    top, left, height, width = tf.unstack(window)
    return tf.slice(image, tf.stack([top, left, 0]), tf.stack([height, width, 3]))
