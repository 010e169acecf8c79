"""The markers of JPEGs that Pillow wrote, whole and with markers added, lost or exchanged."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from pipeline.datasets.jpeg_structure import read_structure

HEIGHT, WIDTH = 50, 70


def jpeg(mode: str = "RGB", **options) -> bytes:
    pixels = np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(buffer, "JPEG", **options)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "encoded",
    [
        jpeg(),
        jpeg("L"),
        jpeg("CMYK"),
        jpeg(subsampling=0),
        jpeg(restart_marker_blocks=1),
        jpeg(restart_marker_blocks=3, subsampling=1),
        jpeg(restart_marker_rows=1),
        jpeg("L", restart_marker_blocks=2),
        jpeg() + b"\0\xff\xd8" * 9,
    ],
)
def test_whole_jpegs_with_one_scan_are_healthy(encoded):
    found = read_structure(encoded)
    assert (found.height, found.width, found.bits) == (HEIGHT, WIDTH, 8)
    assert (found.damage, found.ends, found.has_one_scan) == ("", True, True)
    assert encoded[found.data_end : found.data_end + 2] == b"\xff\xd9"


def test_a_whole_progressive_jpeg_is_healthy():
    found = read_structure(jpeg(progressive=True))
    assert (found.damage, found.ends, found.has_one_scan) == ("", True, False)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.99])
@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"restart_marker_blocks": 2}])
def test_a_cut_jpeg_is_truncated(share, options):
    whole = jpeg(**options)
    assert "truncated" in read_structure(whole[: int(len(whole) * share)]).damage


@pytest.mark.parametrize("marker", [b"\xff\x01", b"\xff\xc4", b"\xff\xda", b"\xff\xe1", b"\xff\xff\xfe"])
def test_a_stray_marker_in_the_data_is_named(marker):
    whole = jpeg()
    at = read_structure(whole).data_start + 200
    damage = read_structure(whole[:at] + marker + whole[at:]).damage
    assert f"FF{marker[-1]:02X} stands in the middle of its data" in damage


def restarts(encoded: bytes) -> list[int]:
    return [at for at in range(len(encoded) - 1) if encoded[at] == 0xFF and 0xD0 <= encoded[at + 1] <= 0xD7]


def test_lost_doubled_and_exchanged_restart_markers_are_damage():
    whole = jpeg(restart_marker_blocks=2)  # 20 units of 16 x 16: 9 markers
    places = restarts(whole)
    assert len(places) == 9
    first, second = places[:2]
    assert read_structure(whole[:first] + whole[first + 2 :]).damage.startswith("it has 8 restart")
    assert read_structure(whole[:first] + b"\xff\xd0" + whole[first:]).damage.startswith("it has 10 restart")
    exchanged = whole[: second + 1] + b"\xd5" + whole[second + 2 :]
    assert read_structure(exchanged).damage == "its restart markers are out of order"


def test_a_restart_marker_where_none_are_announced_is_damage():
    whole = jpeg()
    at = read_structure(whole).data_start + 200
    assert (
        read_structure(whole[:at] + b"\xff\xd3" + whole[at:]).damage
        == "it has 1 restart markers in place of 0"
    )
