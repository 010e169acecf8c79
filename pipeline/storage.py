"""The storage stage: from a dataset of shards to a dataset of records."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from pipeline.data_source import Shard
from pipeline.element import EXAMPLE_ID, RECORD_ID, RECORD_ID_SHIFT, REPEAT_INDEX, SERIALIZED
from pipeline.skipping import SkipCounter

SHARD_PATH = "path"
SHARD_COMPRESSION = "compression"
SHARD_NUMBER = "number"
SHARD_RECORDS = "records"


def shards_dataset(shards: Sequence[Shard]) -> tf.data.Dataset:
    """Returns the dataset of shards that `Storage` reads: one dictionary a shard, in the order given."""
    return tf.data.Dataset.from_tensor_slices(
        {
            # As bytes: a local name need not be UTF-8.
            SHARD_PATH: [os.fsencode(shard.path) for shard in shards],
            SHARD_COMPRESSION: [shard.compression for shard in shards],
            SHARD_NUMBER: tf.range(len(shards), dtype=tf.int64),
            SHARD_RECORDS: tf.constant(
                [-1 if shard.records is None else shard.records for shard in shards], tf.int64
            ),
        }
    )


@dataclass(frozen=True)
class Storage:
    """Shuffles the shards, reads several at a time, shuffles the records, repeats.

    Length: the records of the host's shards times `epochs`; unknown to tf.data. Every epoch is a whole one:
    the repeat comes after the shuffle, so no record comes twice before all came once (the reference repeats
    before it shuffles and mixes epochs).

    Order: with `deterministic` and a `seed` the same in every run; each epoch is ordered differently.

    Attributes:
        shard_count: number of shards in the input dataset, for the shuffle of shards.
        is_training: shuffle shards and records; False reads in order.
        epochs: passes; None repeats for ever.
        cycle_length: shards read at the same time.
        read_buffer_bytes: read buffer of each shard; 0 uses TensorFlow's default.
        shuffle_buffer_size: records in the shuffle buffer; 0 leaves it out.
        seed: seed of both shuffles; None draws one.
        deterministic: False lets the interleave skip a shard that is not ready.
        cache: keep the records in memory after the first pass, before the shuffle.
        host_count: number of hosts that share the data.
        host_index: which of them this is, from 0.
        skip_counter: counts unreadable records that are skipped; None fails on them.
    """

    shard_count: int
    is_training: bool = True
    epochs: int | None = None
    cycle_length: int = 8
    read_buffer_bytes: int = 8 * 1024 * 1024
    shuffle_buffer_size: int = 1000
    seed: int | None = None
    deterministic: bool = False
    cache: bool = False
    host_count: int = 1
    host_index: int = 0
    skip_counter: SkipCounter | None = None
    name: str = "storage"

    def __call__(self, shards: tf.data.Dataset) -> tf.data.Dataset:
        """Returns the records: `serialized`, `record_id`, `example_id` and `repeat_index` (0)."""
        share_records = self.host_count > self.shard_count
        if self.host_count > 1 and not share_records:
            shards = shards.shard(self.host_count, self.host_index)
        if self.is_training and self.shard_count > 1:
            shards = shards.shuffle(self.shard_count, seed=self.seed)
        records = shards.interleave(
            self._read_shard,
            cycle_length=self.cycle_length,
            num_parallel_calls=min(self.cycle_length, self.shard_count),
            deterministic=self.deterministic or not self.is_training,
        )
        if share_records:
            records = records.shard(self.host_count, self.host_index)
        if self.cache:
            # Compressed, and before the shuffle: every epoch is still shuffled and augmented afresh.
            records = records.cache()
        if self.is_training and self.shuffle_buffer_size:
            records = records.shuffle(self.shuffle_buffer_size, seed=self.seed)
        if self.epochs != 1:
            records = records.repeat(self.epochs)
        # Numbered after the repeat: a record that is read again is a fresh example again.
        return records.enumerate().map(_number_example)

    def _read_shard(self, shard: dict[str, Any]) -> tf.data.Dataset:
        records = tf.data.TFRecordDataset(
            shard[SHARD_PATH],
            compression_type=shard[SHARD_COMPRESSION],
            buffer_size=self.read_buffer_bytes or None,
        )
        records = records.enumerate()
        if self.skip_counter is not None:
            # TensorFlow gives a shard up at the first record that it cannot read: the rest of it is lost.
            records = self.skip_counter.count_missing(records.ignore_errors(), shard[SHARD_RECORDS])
        first_id = tf.bitwise.left_shift(shard[SHARD_NUMBER], tf.constant(RECORD_ID_SHIFT, tf.int64))
        return records.map(
            lambda position, serialized: {SERIALIZED: serialized, RECORD_ID: first_id + position}
        )


def _number_example(index: Any, record: dict[str, Any]) -> dict[str, Any]:
    return {**record, EXAMPLE_ID: index, REPEAT_INDEX: tf.zeros([], tf.int64)}
