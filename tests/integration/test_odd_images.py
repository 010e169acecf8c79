"""Bad images through the command line: failed or skipped by policy, counted, named with the reason."""

from __future__ import annotations

import io
import json
import struct

import numpy as np
import pytest
from PIL import Image

SHARD = "train-00001-of-00002"
FAST = [
    "--batch-size", "1", "--image-size", "16", "--trainer", "emulated", "--step-time-seconds", "0.001",
    "--epochs", "1", "--no-baseline",
]  # fmt: skip


def save(image: Image.Image, image_format: str = "JPEG", **options) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, image_format, **options)
    return buffer.getvalue()


def picture() -> Image.Image:
    return Image.fromarray(np.random.default_rng(3).integers(0, 256, (48, 64, 3), np.uint8))


def patched(offset: int, new: bytes) -> bytes:
    encoded = save(picture())
    at = encoded.index(b"\xff\xc0") + offset
    return encoded[:at] + new + encoded[at + len(new) :]


GOOD = {
    "grey.jpg": lambda: save(picture().convert("L")),
    "cmyk.jpg": lambda: save(picture().convert("CMYK")),
    "alpha.jpg": lambda: save(picture().convert("RGBA"), "PNG"),
    "animated.jpg": lambda: save(picture(), "GIF", save_all=True, append_images=[Image.new("RGB", (64, 48))]),
    "tiny.jpg": lambda: save(Image.new("RGB", (1, 1))),
    "progressive.jpg": lambda: save(picture(), progressive=True),
}

BAD = {
    "empty.jpg": (lambda: b"", "it has no bytes"),
    "text.jpg": (lambda: b"no picture", "it is no JPEG, PNG, GIF or BMP"),
    "cut.jpg": (lambda: save(picture())[:-400], "it is truncated: it has no end-of-image marker"),
    "12bit.jpg": (lambda: patched(4, b"\x0c"), "it has 12 bits a sample; 8 are read"),
    "bomb.jpg": (
        lambda: patched(5, struct.pack(">HH", 64250, 64250)),
        "the image claims 64250 x 64250 pixels; at most 178,956,970 are decoded",
    ),
}


@pytest.fixture
def run(cli_invoke, tmp_path, without_charts):
    return lambda data, *words: cli_invoke(
        "run", "--data-dir", data, *FAST, "--output", tmp_path / "out", *words
    )


def test_odd_images_are_used_bad_ones_skipped_and_counted(run, make_record, put_shards, tmp_path):
    images = [make() for make in GOOD.values()] + [make() for make, _ in BAD.values()]
    order = np.random.default_rng(0).permutation(len(images))
    records = [make_record(int(number), encoded=images[number]) for number in order]
    data = put_shards(tmp_path / "data", [records[:5], records[5:]])
    result = run(data, "--on-bad-record", "skip")
    assert result.exit_code == 0, result.stderr
    counts = json.loads((tmp_path / "out" / "result.json").read_text())["counts"]
    assert (counts["skipped_records"], counts["trained_examples"]) == (len(BAD), len(GOOD))


@pytest.mark.parametrize("name", BAD)
def test_a_bad_image_ends_the_run_and_the_check_with_shard_record_file_and_reason(
    run, cli_invoke, make_record, put_shards, tmp_path, name
):
    make, reason = BAD[name]
    bad = make_record(9, encoded=make(), filename=name)
    data = put_shards(tmp_path / "data", [[make_record(0)], [make_record(1), make_record(2), bad]])
    for result, code in ((run(data), 2), (cli_invoke("data", "check", data), 1)):
        assert result.exit_code == code, result.stderr
        words = " ".join((result.stdout + result.stderr).split())
        assert f"{SHARD}, record 2" in words
        assert repr(name) in words
        assert reason in words
