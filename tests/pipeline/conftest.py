"""Small data sets that the tests of the pipeline write for themselves."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from pipeline import schema


def jpeg_bytes(height: int = 40, width: int = 60, seed: int = 0, quality: int = 90) -> bytes:
    """Returns a JPEG with soft colour blobs, different for every seed."""
    generator = np.random.default_rng(seed)
    small = Image.fromarray(generator.integers(0, 256, (4, 5, 3), np.uint8))
    buffer = io.BytesIO()
    small.resize((width, height), Image.Resampling.BICUBIC).save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()


def record_bytes(index: int, label: int = 1, boxes: Sequence[schema.Box] = (), **jpeg: int) -> bytes:
    """Returns the serialized record of a small image."""
    height, width = jpeg.get("height", 40), jpeg.get("width", 60)
    return schema.serialize(
        schema.ImageRecord(
            encoded=jpeg_bytes(height, width, seed=index),
            label=label,
            text="thing",
            height=height,
            width=width,
            filename=f"{index}.jpg",
            boxes=boxes,
        )
    )


def write_shards(folder: Path, shards: Sequence[Sequence[bytes]], split: str = "train") -> Path:
    """Writes shards of serialized records and returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, records in enumerate(shards):
        name = f"{split}-{number:05d}-of-{len(shards):05d}"
        with tf.io.TFRecordWriter(str(folder / name)) as writer:
            for record in records:
                writer.write(record)
    return folder


@pytest.fixture
def make_data(tmp_path: Path) -> Callable[..., str]:
    """Returns a function that writes so many records over so many shards and returns the folder."""

    def make(records: int, shards: int = 1, split: str = "train") -> str:
        contents: list[list[bytes]] = [[] for _ in range(shards)]
        for index in range(records):
            contents[index % shards].append(record_bytes(index, label=index % 3 + 1))
        return str(write_shards(tmp_path / "data", contents, split))

    return make


@pytest.fixture
def good_record() -> Callable[..., bytes]:
    """Returns a function from a number to a serialized record of its own."""
    return record_bytes


@pytest.fixture
def write_records(tmp_path: Path) -> Callable[[Sequence[bytes]], str]:
    """Returns a function that writes serialized records into one shard and returns the folder."""
    return lambda records: str(write_shards(tmp_path / "records", [records]))
