"""Turns the bytes of any supported picture into an RGB JPEG that stands upright, or says why it cannot.

The content decides the format, never the suffix. Rules, in this order:

- Every picture is decoded fully; a truncated one is refused, never padded. So is a JPEG whose markers show
  damage that decoders pass over.
- A JPEG that is RGB and upright is kept byte for byte.
- An EXIF orientation other than 1 is applied to the pixels and the tag dropped, for TensorFlow ignores it.
- Only the first frame of an animation is used.
- Transparent pixels are laid over white.
- 16-bit values are scaled to 8 bits, not cut to their low byte.
- CMYK and YCCK JPEGs become RGB by the plain formula, without colour profiles; those with Adobe's marker are
  stored inverted, those without are not (libjpeg's rule, which TensorFlow follows too).
"""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import ExifTags, Image, ImageChops, ImageOps, UnidentifiedImageError

from pipeline.config import MAX_IMAGE_PIXELS
from pipeline.datasets.jpeg_structure import read_structure

FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP")
MAX_JPEG_SIDE = 65_500
"""JPEG_MAX_DIMENSION of libjpeg."""

KEPT = "kept as they are"


class RejectedImage(Exception):  # noqa: N818 - a verdict on the data
    """The picture cannot be used; the message is the reason."""


@dataclass(frozen=True)
class JpegImage:
    """A picture ready for a record.

    Attributes:
        encoded: RGB JPEG bytes without an EXIF orientation other than 1.
        height: height of the decoded pixels.
        width: width of the decoded pixels.
        changes: what was done to it, or `(KEPT,)`.
    """

    encoded: bytes
    height: int
    width: int
    changes: tuple[str, ...]


def to_rgb_jpeg(content: bytes, quality: int) -> JpegImage:
    """Returns the picture as an upright RGB JPEG by the rules of this module.

    Args:
        content: the bytes of a JPEG, PNG, GIF, BMP or WebP file.
        quality: JPEG quality where it has to be encoded again, 1 to 100.

    Raises:
        RejectedImage: empty, of another format, damaged, or too large.
    """
    if not content:
        raise RejectedImage("the file is empty (0 bytes)")
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            _check_size(image.width, image.height)
            image.load()
            return _convert(image, content, quality)
    except (RejectedImage, MemoryError):
        raise
    except UnidentifiedImageError as error:
        raise RejectedImage(f"the content is no {', '.join(FORMATS[:-1])} or {FORMATS[-1]}") from error
    except Image.DecompressionBombError as error:
        raise RejectedImage(f"more than the {MAX_IMAGE_PIXELS:,} pixels that are decoded: {error}") from error
    except Exception as error:  # Pillow's decoders raise many kinds on damaged input, SyntaxError among them
        raise RejectedImage(f"cannot be decoded: {error}" if str(error) else repr(error)) from error


def too_many_pixels(height: int, width: int, max_pixels: int) -> str:
    """Says that an image claims more pixels than are decoded."""
    return f"the image claims {width} x {height} pixels; at most {max_pixels:,} are decoded"


def encode_rgb(image: Image.Image, quality: int) -> bytes:
    """Returns the JPEG bytes of an RGB image."""
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()


def _check_size(width: int, height: int) -> None:
    if width * height > MAX_IMAGE_PIXELS:
        raise RejectedImage(too_many_pixels(height, width, MAX_IMAGE_PIXELS))
    if max(width, height) > MAX_JPEG_SIDE:
        raise RejectedImage(f"{width} x {height} pixels; a JPEG holds at most {MAX_JPEG_SIDE:,} on a side")


def _convert(image: Image.Image, content: bytes, quality: int) -> JpegImage:
    # A photograph with a second picture behind it (MPO) is a JPEG to every decoder.
    is_jpeg = image.format in ("JPEG", "MPO")
    damage = read_structure(content).damage if is_jpeg else ""
    if damage:
        raise RejectedImage(f"cannot be decoded: {damage}")
    turned = 2 <= _orientation(image) <= 8
    if is_jpeg and image.mode == "RGB" and not turned:
        return JpegImage(content, image.height, image.width, (KEPT,))
    changes = [_first_change(image, is_jpeg)]
    if turned:
        changes.append("turned upright (EXIF)")
    upright = ImageOps.exif_transpose(image) if turned else image
    rgb = _to_rgb(upright, content, changes)
    if not is_jpeg and getattr(image, "is_animated", False):
        changes.append("first frame of an animation")
    changes = [change for change in changes if change]
    return JpegImage(encode_rgb(rgb, quality), rgb.height, rgb.width, tuple(changes))


def _first_change(image: Image.Image, is_jpeg: bool) -> str:
    if not is_jpeg:
        return f"{image.format} to JPEG"
    if image.mode == "RGB":
        return ""
    return f"{ {'L': 'grey', 'CMYK': 'CMYK'}.get(image.mode, image.mode) } JPEG to RGB"


def _to_rgb(image: Image.Image, content: bytes, changes: list[str]) -> Image.Image:
    if image.mode.startswith("I"):  # "I;16" or, before Pillow 11, "I" with values to 65,535
        changes.append("16-bit scaled to 8 bits")
        values = np.asarray(image).astype(np.uint32)
        grey = Image.fromarray(((np.minimum(values, 65_535) * 255 + 32_767) // 65_535).astype(np.uint8))
        return grey.convert("RGB")
    if content.startswith(b"\x89PNG") and content[24:25] == b"\x10":  # bit depth in the header
        changes.append("16-bit scaled to 8 bits")  # by Pillow, which takes the high byte
    if image.mode == "CMYK" and "adobe" not in image.info:
        image = ImageChops.invert(image)  # Pillow takes every CMYK JPEG to be inverted
    if image.has_transparency_data:
        rgba = image.convert("RGBA")
        if rgba.getchannel("A").getextrema() != (255, 255):
            changes.append("transparency laid over white")
            white = Image.new("RGBA", rgba.size, "white")
            rgba = Image.alpha_composite(white, rgba)
        return rgba.convert("RGB")
    return image.convert("RGB")


def _orientation(image: Image.Image) -> int:
    try:
        value: Any = image.getexif().get(ExifTags.Base.Orientation, 1)
    except (SyntaxError, ValueError, KeyError, TypeError, OSError, struct.error):
        return 1  # a damaged EXIF block; the pixels were decoded
    return value if isinstance(value, int) else 1
