"""PNG, GIF and BMP against Pillow."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from pipeline.other_formats import decode_other

PIXELS = np.random.default_rng(0).integers(0, 256, (9, 14, 4), np.uint8)


def encode(image: Image.Image, image_format: str, **options) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, image_format, **options)
    return buffer.getvalue()


def over_white(image: Image.Image) -> np.ndarray:
    layer = image.convert("RGBA")
    return np.asarray(Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer))[..., :3]


@pytest.mark.parametrize("mode", ["RGBA", "LA", "RGB", "L", "1"])
def test_alpha_is_laid_over_white(mode):
    image = Image.fromarray(PIXELS).convert(mode)
    np.testing.assert_allclose(decode_other(encode(image, "PNG")), over_white(image).astype(int), atol=1)


@pytest.mark.parametrize("image_format", ["PNG", "GIF", "BMP"])
def test_opaque_images_are_exact(image_format):
    image = Image.fromarray(PIXELS[..., :3]).quantize(16)
    source = image.convert("RGB") if image_format == "BMP" else image
    np.testing.assert_array_equal(decode_other(encode(source, image_format)), image.convert("RGB"))


@pytest.mark.parametrize(
    "encoded",
    [
        encode(Image.fromarray(PIXELS[..., 0]), "BMP"),
        encode(Image.fromarray(PIXELS), "BMP")[:30] + struct.pack("<I", 1) + b"\0" * 600,
        b"BM",
        b"GIF89a",
        b"\x89PNG\r\n\x1a\n",
        b"text",
    ],
    ids=["grey", "compressed", "no BMP header", "no GIF header", "no PNG header", "text"],
)
def test_what_would_be_misread_is_refused(encoded):
    with pytest.raises(tf.errors.InvalidArgumentError):
        decode_other(encoded)
