"""How large an example is at an insertion point, for buffers that are sized in bytes."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterable

from echoing.errors import DataError
from echoing.insertion_point import InsertionPoint
from pipeline import tfrecord
from pipeline.data_source import DataSource

SAMPLED_RECORDS = 32
"""Records whose image headers are read to learn the mean size of a decoded image."""

_FLOAT_BYTES = 4


def example_bytes(point: InsertionPoint, source: DataSource, image_size: int) -> float:
    """Returns the mean size of an example that passes a point, in bytes.

    Args:
        point: an insertion point where single examples pass.
        source: the data; decoded images are estimated from the headers of the first records.
        image_size: height and width of the augmented images, pixels.

    Raises:
        DataError: no record could be looked at.
    """
    if point is InsertionPoint.AFTER_READ:
        if source.mean_record_bytes is None:
            return _mean(len(record) for record in _first_records(source))
        return source.mean_record_bytes
    if point is InsertionPoint.AFTER_DECODE:
        return _mean(_decoded_bytes(record) for record in _first_records(source))
    return float(image_size**2 * 3 * _FLOAT_BYTES)


def _first_records(source: DataSource) -> list[bytes]:
    shard = source.shards[0]
    records = itertools.islice(tfrecord.read_records(shard.path, shard.compression), SAMPLED_RECORDS)
    return [record.payload for record in records if record.is_intact]


def _decoded_bytes(payload: bytes) -> int | None:
    import tensorflow as tf
    from google.protobuf.message import DecodeError
    from PIL import Image

    from pipeline.schema import ENCODED

    try:
        example = tf.train.Example.FromString(payload)
        encoded = example.features.feature[ENCODED].bytes_list.value[0]
        with Image.open(io.BytesIO(encoded)) as image:
            return image.width * image.height * 3
    except (DecodeError, OSError, IndexError):
        return None  # not this function's to report: it is a bad record wherever it is read


def _mean(sizes: Iterable[int | None]) -> float:
    known = [size for size in sizes if size is not None]
    if not known:
        raise DataError("No readable record was found to learn the size of an example from.")
    return sum(known) / len(known)
