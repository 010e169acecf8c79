"""The command line run inside the test's own process, and small shards for it to read."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


@dataclass(frozen=True)
class Invocation:
    """What one call of `pipebench` gave back."""

    exit_code: int
    stdout: str
    stderr: str


def invoke(*arguments: object) -> Invocation:
    """Runs `pipebench` with arguments; an exception that a user would see as a traceback fails the test."""
    from bench.cli import main

    stdout, stderr = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as exit_:
            code = exit_.code
    assert isinstance(code, int)
    return Invocation(code, stdout.getvalue(), stderr.getvalue())


@pytest.fixture(scope="session")
def cli_invoke() -> Callable[..., Invocation]:
    """Returns a function that runs `pipebench` in this process: exit code, stdout, stderr."""
    return invoke


def image_record(index: int, label: int = 1, height: int = 40, width: int = 60, **changes: Any) -> bytes:
    """Returns a serialized record with a JPEG of soft colour blobs, different for every index."""
    import numpy as np
    from PIL import Image

    from pipeline import schema

    small = Image.fromarray(np.random.default_rng(index).integers(0, 256, (4, 5, 3), np.uint8))
    buffer = io.BytesIO()
    small.resize((width, height), Image.Resampling.BICUBIC).save(buffer, "JPEG")
    values: dict[str, Any] = {
        "encoded": buffer.getvalue(),
        "label": label,
        "text": "thing",
        "height": height,
        "width": width,
        "filename": f"{index}.jpg",
    }
    return schema.serialize(schema.ImageRecord(**(values | changes)))


@pytest.fixture(scope="session")
def make_record() -> Callable[..., bytes]:
    """Returns a function from a number, and what is to be special, to a serialized record."""
    return image_record


def write_shards(folder: Path | str, shards: Sequence[Sequence[bytes]], split: str = "train") -> str:
    """Writes shards of serialized records into a local or remote folder and returns the folder."""
    import tensorflow as tf

    tf.io.gfile.makedirs(str(folder))
    for number, records in enumerate(shards):
        name = f"{split}-{number:05d}-of-{len(shards):05d}"
        with tf.io.TFRecordWriter(f"{folder}/{name}") as writer:
            for record in records:
                writer.write(record)
    return str(folder)


@pytest.fixture(scope="session")
def make_shards() -> Callable[..., str]:
    """Returns a function that writes so many good records of three classes over so many shards."""

    def make(folder: Path | str, records: int, shards: int = 1, **changes: Any) -> str:
        contents: list[list[bytes]] = [[] for _ in range(shards)]
        for index in range(records):
            contents[index % shards].append(image_record(index, label=index % 3 + 1, **changes))
        return write_shards(folder, contents)

    return make


@pytest.fixture(scope="session")
def put_shards() -> Callable[..., str]:
    """Returns a function that writes the given serialized records, shard by shard."""
    return write_shards


@pytest.fixture(scope="session")
def small_data(tmp_path_factory: pytest.TempPathFactory, make_shards: Callable[..., str]) -> str:
    """Eight good records in two shards; tests must not change the folder."""
    return make_shards(tmp_path_factory.mktemp("small") / "data", records=8, shards=2)


@pytest.fixture
def without_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves the charts out of reports: they take a second each and are tested on their own."""
    monkeypatch.setattr("bench.reporters.folder.draw_charts", lambda result: [])
