"""The images of the shards for libraries that do not read TFRecords, without TensorFlow in their process."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from bench.pipelines.variants import Task
from echoing.errors import DataError
from pipeline import schema, tfrecord
from pipeline.data_source import open_data_source

ASPECT_RATIO_RANGE = (3.0 / 4.0, 4.0 / 3.0)
AREA_RANGE = (0.05, 1.0)
"""Of the random crop: the reference's, as in `pipeline.preprocessing.crop`, which imports TensorFlow."""

MAX_IMAGES = 20_000
"""Of a large set so many are read: every record has to be looked at once to find its image."""

_FRAME_BYTES = 12
"""Of a record's frame before its payload."""


@dataclass(frozen=True)
class JpegRecord:
    """Where an image lies, and its label.

    Attributes:
        shard: path of the shard.
        offset_bytes: of the image's first byte in it.
        length_bytes: of the image.
        label: class number.
    """

    shard: str
    offset_bytes: int
    length_bytes: int
    label: int


class JpegRecords:
    """The images of a split, to be read in any order from several threads or processes.

    Args:
        task: what to read; its shards must be plain local files.

    Raises:
        DataError: a shard is compressed.
    """

    def __init__(self, task: Task) -> None:
        # In a process of its own: only TensorFlow knows the records' format, and its memory is not ours.
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            self._records = pool.submit(find_images, task.data_dir, task.split, MAX_IMAGES).result()

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, index: int) -> tuple[bytes, int]:
        """Returns the bytes of the image and its label."""
        record = self._records[index]
        return os.pread(self._files[record.shard], record.length_bytes, record.offset_bytes), record.label

    @cached_property
    def _files(self) -> dict[str, int]:
        return {shard: os.open(shard, os.O_RDONLY) for shard in {record.shard for record in self._records}}

    def __getstate__(self) -> dict[str, object]:
        return {"_records": self._records}


def find_images(data_dir: str, split: str, most: int) -> list[JpegRecord]:
    """Returns where the first `most` images of a split lie.

    Raises:
        DataError: a shard is compressed.
    """
    source = open_data_source(data_dir, split)
    if any(shard.compression for shard in source.shards):
        raise DataError(f"{data_dir} has compressed shards, which cannot be read in any order.")
    found = (
        _find_image(shard.path, record)
        for shard in source.shards
        for record in tfrecord.read_records(shard.path)
    )
    return list(islice(found, most))


def _find_image(shard: str, record: tfrecord.RawRecord) -> JpegRecord:
    import tensorflow as tf

    feature = tf.train.Example.FromString(record.payload).features.feature
    encoded = feature[schema.ENCODED].bytes_list.value[0]
    offset_bytes = record.span.offset_bytes + _FRAME_BYTES + record.payload.index(encoded)
    return JpegRecord(shard, offset_bytes, len(encoded), int(feature[schema.LABEL].int64_list.value[0]))
