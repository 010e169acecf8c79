"""The images of the shards for libraries that do not read TFRecords, without TensorFlow in their process."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice

from bench.pipelines.variants import Task
from echoing.errors import DataError, RecordError
from pipeline import filesystem, tfrecord
from pipeline.data_source import Shard, open_data_source

ASPECT_RATIO_RANGE = (3.0 / 4.0, 4.0 / 3.0)
AREA_RANGE = (0.05, 1.0)
"""Of the random crop: the reference's, as in `pipeline.preprocessing.crop`, which imports TensorFlow."""

ENCODED = "image/encoded"
LABEL = "image/class/label"
"""Keys of the records, as in `pipeline.schema`, which imports TensorFlow."""

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
        DataError: a shard is compressed, remote or damaged, or a record has no image.
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
        # Opened each time, some microseconds: there may be more shards than files may be open.
        shard = os.open(record.shard, os.O_RDONLY)
        try:
            return os.pread(shard, record.length_bytes, record.offset_bytes), record.label
        finally:
            os.close(shard)


def plain_shards(data_dir: str, split: str) -> tuple[Shard, ...]:
    """Returns the shards of a split, for readers that need plain local files.

    Raises:
        DataError: a shard is compressed, or the folder is remote.
    """
    if filesystem.is_remote(data_dir):
        raise DataError(f"{data_dir} is no local folder. Copy it to one for the libraries beside TensorFlow.")
    shards = open_data_source(data_dir, split, count_records=False).shards
    if any(shard.compression for shard in shards):
        raise DataError(
            f"{data_dir} has compressed shards, which cannot be read in any order. Write them again without "
            "compression for the libraries beside TensorFlow."
        )
    return shards


def find_images(data_dir: str, split: str, most: int) -> list[JpegRecord]:
    """Returns where the first `most` images of a split lie.

    Raises:
        DataError: a shard is compressed, remote or damaged, or a record has no image.
    """
    found = (
        _find_image(shard, index, record)
        for shard in plain_shards(data_dir, split)
        for index, record in enumerate(tfrecord.read_records(shard.path))
    )
    try:
        return list(islice(found, most))
    except RecordError as error:
        # A `RecordError` does not survive the way from one process to another.
        raise DataError(str(error)) from error


def _find_image(shard: Shard, index: int, record: tfrecord.RawRecord) -> JpegRecord:
    import tensorflow as tf

    if not record.is_intact:
        raise RecordError(shard.name, index, "its content does not agree with its checksum")
    feature = tf.train.Example.FromString(record.payload).features.feature
    images, labels = feature[ENCODED].bytes_list.value, feature[LABEL].int64_list.value
    if len(images) != 1 or len(labels) != 1:
        counts = f"{len(images)} values of {ENCODED} and {len(labels)} of {LABEL}"
        raise RecordError(shard.name, index, f"it has {counts}, but must have one of each")
    offset_bytes = record.span.offset_bytes + _FRAME_BYTES + record.payload.index(images[0])
    return JpegRecord(shard.path, offset_bytes, len(images[0]), int(labels[0]))
