"""Reasons in words, and damage that the pipeline's decoder passes over."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
from PIL import Image

from pipeline.datasets.image_check import find_damage, try_image
from pipeline.image_decoding import DecodeOptions


def save(image: Image.Image, image_format: str = "JPEG", **options) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, image_format, **options)
    return buffer.getvalue()


def picture(height: int = 64, width: int = 80) -> Image.Image:
    small = Image.fromarray(np.random.default_rng(1).integers(0, 256, (9, 11, 3), np.uint8))
    return small.resize((width, height), Image.Resampling.BICUBIC)


JPEG = save(picture(), quality=92)
FRAME = JPEG.index(b"\xff\xc0")
DATA = JPEG.rindex(b"\xff\xda") + 14


def patched(offset: int, new: bytes) -> bytes:
    at = FRAME + offset
    return JPEG[:at] + new + JPEG[at + len(new) :]


@pytest.mark.parametrize(
    ("encoded", "reason"),
    [
        (b"", "it has no bytes"),
        (b"hello", "it is no JPEG, PNG, GIF or BMP"),
        (save(picture(), "WEBP"), "it is no JPEG, PNG, GIF or BMP"),
        (JPEG[:-200], "it is truncated: it has no end-of-image marker"),
        (save(picture(), progressive=True)[:-200], "it is truncated: it has no end-of-image marker"),
        (patched(4, b"\x0c"), "it has 12 bits a sample; 8 are read"),
        (
            patched(5, struct.pack(">HH", 64250, 64250)),
            "the image claims 64250 x 64250 pixels; at most 178,956,970 are decoded",
        ),
    ],
)
def test_the_reason_is_in_words(encoded, reason):
    assert try_image(encoded, DecodeOptions()) == (None, reason)


def test_a_reason_of_tensorflow_comes_without_its_decoration():
    size, reason = try_image(save(picture(), "PNG")[:-300], DecodeOptions())
    assert size is None
    assert "{{" not in reason and "[Op:" not in reason and "\n" not in reason


def test_a_good_image_has_a_size_and_no_reason():
    assert try_image(JPEG, DecodeOptions()) == ((64, 80), "")


@pytest.mark.parametrize("quality", [40, 92, 100])
@pytest.mark.parametrize(
    "options",
    [{}, {"subsampling": 0}, {"optimize": True}, {"restart_marker_blocks": 3}, {"progressive": True}],
)
@pytest.mark.parametrize(
    "image",
    [
        picture(),
        picture(65, 30),
        picture(1, 1),
        picture(9, 200).convert("L"),
        Image.new("RGB", (99, 99), "navy"),
    ],
)
def test_nothing_is_seen_in_whole_images(image, options, quality):
    assert find_damage(save(image, quality=quality, **options)) == ""


def test_a_png_is_not_looked_at():
    assert find_damage(save(picture(), "PNG")) == ""


def test_a_picture_that_was_cut_and_closed_is_seen():
    assert find_damage(JPEG[: DATA + 900] + b"\xff\xd9").startswith("its data ends before the picture does")


def test_data_that_is_left_over_is_seen():
    # Bytes put in where the data is not aligned to codes, as a fault in the middle leaves them.
    assert b"\xff" not in JPEG[-150:-2]
    extra = JPEG[:-2] + JPEG[-60:-2] + b"\xff\xd9"
    assert find_damage(extra).startswith("its picture ends before the data does")


def test_a_stray_marker_is_named():
    assert "FFE4 stands in the middle" in find_damage(
        JPEG[:DATA] + JPEG[DATA : DATA + 300] + b"\xff\xe4" + JPEG[DATA + 300 :]
    )
