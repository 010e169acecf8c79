"""Pictures made on the spot, and a reader of shards that shares no code with the writer."""

from __future__ import annotations

import glob
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

Record = dict[str, Any]


@pytest.fixture
def picture_bytes() -> Callable[..., bytes]:
    """Returns a function that encodes a picture: of one colour, or of random pixels of a seed."""

    def encode(
        fmt: str = "JPEG", colour: Any = None, size: tuple[int, int] = (12, 8), seed: int = 0
    ) -> bytes:
        if colour is None:
            pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
            image = Image.fromarray(pixels)
        else:
            image = Image.new("RGB", size, colour)
        buffer = io.BytesIO()
        image.save(buffer, fmt)
        return buffer.getvalue()

    return encode


@pytest.fixture
def read_records() -> Callable[..., list[Record]]:
    """Returns a function that reads all records of a split, in order, as dictionaries of lists."""

    def read(data_dir: str | Path, split: str = "train") -> list[Record]:
        folder = str(data_dir)
        if "://" in folder:
            paths = tf.io.gfile.glob(f"{folder}/{split}-*-of-*")
        else:
            paths = glob.glob(f"{glob.escape(folder)}/{split}-*-of-*")  # noqa: PTH207
        records = []
        for payload in tf.data.TFRecordDataset(sorted(paths)).as_numpy_iterator():
            features = tf.train.Example.FromString(payload).features.feature
            records.append(
                {key: list(getattr(value, value.WhichOneof("kind")).value) for key, value in features.items()}
            )
        return records

    return read


@pytest.fixture
def write_folder(tmp_path: Path) -> Callable[[dict[str, bytes]], Path]:
    """Returns a function that writes files (path: content) under a new folder `src`; None makes a folder."""

    def write(files: dict[str, bytes | None], name: str = "src") -> Path:
        root = tmp_path / name
        root.mkdir(exist_ok=True)
        for path, content in files.items():
            target = root / path
            if content is None:
                target.mkdir(parents=True)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
        return root

    return write
