"""The first frame of GIFs that Pillow wrote, read back by Pillow."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from pipeline.gif_frame import first_frame


def gif(frames: int, **options) -> bytes:
    generator = np.random.default_rng(0)
    images = [
        Image.fromarray(generator.integers(0, 256, (40, 60, 3), np.uint8)).quantize(64) for _ in range(frames)
    ]
    buffer = io.BytesIO()
    images[0].save(buffer, "GIF", save_all=True, append_images=images[1:], **options)
    return buffer.getvalue()


def read(encoded: bytes) -> Image.Image:
    return Image.open(io.BytesIO(encoded))


@pytest.mark.parametrize(
    "options", [{}, {"comment": b"c" * 700}, {"interlace": 1}, {"loop": 0, "duration": 5}]
)
@pytest.mark.parametrize("frames", [1, 4])
def test_one_frame_is_left_with_its_pixels(frames, options):
    encoded = gif(frames, **options)
    alone = read(first_frame(encoded).numpy())
    assert (alone.n_frames, alone.size) == (1, (60, 40))
    np.testing.assert_array_equal(alone.convert("RGB"), read(encoded).convert("RGB"))


def test_the_transparent_colour_becomes_white_and_others_stay():
    encoded = gif(1, transparency=9)
    layer = np.asarray(read(encoded).convert("RGBA"))
    assert (layer[..., 3] == 0).any()
    expected = np.where(layer[..., 3:] == 0, 255, layer[..., :3])
    np.testing.assert_array_equal(read(first_frame(encoded).numpy()).convert("RGB"), expected)


@pytest.mark.parametrize("length", [4, 12, 100, 500, 2000])
def test_a_cut_frame_is_none(length):
    assert first_frame(gif(1)[:length]).numpy() == b""


def test_a_frame_beside_the_corner_is_none():
    encoded = gif(1)
    at = encoded.index(b",", 13 + 3 * 64)
    assert encoded[at + 5 : at + 9] == b"\x3c\0\x28\0"
    assert first_frame(encoded[: at + 1] + b"\x01" + encoded[at + 2 :]).numpy() == b""
