"""Sizes from first bytes, against Pillow's writers and bytes made by hand."""

from __future__ import annotations

import io
import struct

import pytest
from PIL import Image

from pipeline.image_header import first_bytes, is_jpeg, little_endian, stated_size


def encode(image_format: str, height: int = 300, width: int = 700) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (width, height)).save(buffer, image_format)
    return buffer.getvalue()


@pytest.mark.parametrize("image_format", ["PNG", "GIF", "BMP"])
def test_the_size_is_that_of_the_header(image_format):
    assert stated_size(encode(image_format)).numpy().tolist() == [300, 700]


def test_a_bmp_from_top_to_bottom_has_a_negative_height():
    encoded = encode("BMP")
    assert stated_size(encoded[:22] + struct.pack("<i", -300) + encoded[26:]).numpy().tolist() == [300, 700]


@pytest.mark.parametrize(
    ("encoded", "size"),
    [
        (b"", [0, 0]),
        (b"text", [0, 0]),
        (encode("PNG")[:18], [0, 0]),
        (encode("GIF")[:7], [0, 188]),  # 700 = 2 x 256 + 188
        (encode("PNG")[:16] + b"\xff" * 8, [2**31 - 1] * 2),
        (encode("BMP")[:18] + struct.pack("<ii", -5, 7), [7, 0]),
    ],
)
def test_what_a_header_lacks_is_zero_and_what_is_too_large_stays_large(encoded, size):
    assert stated_size(encoded).numpy().tolist() == size


@pytest.mark.parametrize(
    ("encoded", "expected"), [(b"", False), (b"\xff\xd8", False), (b"\xff\xd8\xff", True)]
)
def test_a_jpeg_is_known_by_three_bytes(encoded, expected):
    assert bool(is_jpeg(encoded)) == expected


def test_first_bytes_are_filled_with_zeros():
    assert first_bytes(b"\x01\x02", 4).numpy().tolist() == [1, 2, 0, 0]
    assert int(little_endian(first_bytes(b"\x01\x02", 4))) == 513
