"""The storage stage: from a dataset of shards to a dataset of records."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from echoing.block_shuffle import shuffle_by_key, shuffle_in_blocks
from echoing.cardinality import declare_length
from pipeline import read_order
from pipeline.data_source import Shard
from pipeline.element import EXAMPLE_ID, RECORD_ID, RECORD_ID_SHIFT, REPEAT_INDEX, SERIALIZED
from pipeline.skipping import SkipCounter
from pipeline.stage import Stage

SHARD_PATH = "path"
SHARD_COMPRESSION = "compression"
SHARD_NUMBER = "number"
SHARD_RECORDS = "records"
SHARD_START = "start"
"""int64 []: records of the shard that are passed over, which were read before the start; -1 for all."""

_COUNTING_BUFFER_BYTES = 1 << 20
_ALL_SHARDS = 2**31


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

    Order: with `deterministic` and a `seed` the same in every run; each epoch is ordered differently. Shards
    are permuted by seed and epoch. `deterministic` shuffles the records in blocks, `echoing.block_shuffle`;
    otherwise they go through tf.data's buffer.

    Start: with `deterministic` and a `seed`, `start` gives exactly the records from there on of the run from
    the beginning. What is read and not delivered: the records of the open shards that came before (without
    decoding, `cycle_length` half shards on average), and at most one block. Otherwise only the place to read
    from is the same. Shards whose records were not counted are counted first, which reads them once. Where
    unreadable records were skipped, the start lies as many records earlier as were lost up to there.

    Attributes:
        shard_count: number of shards in the input dataset, for the shuffle of shards.
        is_training: shuffle shards and records; False reads in order.
        epochs: passes; None repeats for ever.
        cycle_length: shards read at the same time.
        read_buffer_bytes: read buffer of each shard; 0 uses TensorFlow's default.
        shuffle_buffer_size: records in the shuffle buffer; 0 leaves it out.
        seed: seed of both shuffles; None draws one.
        deterministic: False lets the interleave skip a shard that is not ready.
        cache: keep the records in memory after the first whole pass, before the shuffle. The order of shards
            is then that of the first epoch in all of them. After a start within an epoch the rest of it is
            read as it is, and the next pass fills the cache.
        cache_path: file of that cache, local or `scheme://`; empty for memory. What it holds is ordered by
            the seed and `cycle_length` of the run that filled it.
        before_cache: applied to the records before they are cached and shuffled: decodes them, so that the
            cache, and the shuffle behind it, hold images.
        host_count: number of hosts that share the data.
        host_index: which of them this is, from 0.
        skip_counter: counts unreadable records that are skipped; None fails on them.
        start: records of this host that come before the first one.
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
    cache_path: str = ""
    before_cache: Stage | None = None
    host_count: int = 1
    host_index: int = 0
    skip_counter: SkipCounter | None = None
    start: int = 0
    name: str = "storage"

    def __call__(self, shards: tf.data.Dataset) -> tf.data.Dataset:
        """Returns the records: `serialized`, `record_id`, `example_id` and `repeat_index` (0)."""
        seed = random.randrange(2**31) if self.seed is None else self.seed
        if self.host_count > 1 and not self._shares_records:
            shards = shards.shard(self.host_count, self.host_index)
        # One element that holds all shards, so that every epoch can have them in its own order.
        all_shards = shards.batch(self.shard_count)
        if self.start == 0:
            passes = self._whole_epochs(all_shards, seed, 0)
        else:
            counted = _counted(shards)
            epoch, position = self._find_epoch(counted)
            passes = self._whole_epochs(all_shards, seed, epoch + 1)
            if self.epochs is None or epoch < self.epochs:
                passes = self._rest_of_epoch(counted, seed, epoch, position).concatenate(passes)
        if self.epochs is None:
            passes = declare_length(passes, tf.data.INFINITE_CARDINALITY)
        # Numbered after the repeat: a record that is read again is a fresh example again.
        fresh = tf.data.Dataset.from_tensors(np.int64(0)).repeat()
        numbers = tf.data.Dataset.range(self.start, np.iinfo(np.int64).max)
        numbered = tf.data.Dataset.zip((numbers, fresh, passes)).map(_number_example)
        options = tf.data.Options()
        # For checkpoints of the iterator: tf.data takes a shuffle with a given seed for stateful here.
        options.experimental_external_state_policy = tf.data.experimental.ExternalStatePolicy.WARN
        return numbered.with_options(options)

    @property
    def _shares_records(self) -> bool:
        return self.host_count > self.shard_count

    def _whole_epochs(self, all_shards: tf.data.Dataset, seed: int, first: int) -> tf.data.Dataset:
        epochs = all_shards.repeat(None if self.epochs is None else max(0, self.epochs - first))
        epochs = epochs.enumerate(first)
        if self.cache:
            # Before the shuffle and the repeat: every epoch is still shuffled and augmented afresh.
            kept = all_shards.flat_map(lambda shards: self._read(self._ordered(shards, seed, 0)))
            kept = kept.cache(self.cache_path)
            return epochs.flat_map(lambda epoch, shards: self._shuffle(kept, seed, epoch))
        return epochs.flat_map(
            lambda epoch, shards: self._shuffle(self._read(self._ordered(shards, seed, epoch)), seed, epoch)
        )

    def _rest_of_epoch(self, shards: dict[str, Any], seed: int, epoch: int, position: int) -> tf.data.Dataset:
        block_size = 1
        if self._shuffles_in_blocks:
            block_size = int(read_order.epoch_block_size(self.shuffle_buffer_size, seed, epoch))
        first_block, served = divmod(position, block_size)
        ordered = self._ordered(shards, seed, 0 if self.cache else epoch)
        records = ordered[SHARD_RECORDS].numpy().tolist()
        hosts = self.host_count if self._shares_records else 1
        rests = read_order.interleave_from(records, self.cycle_length, first_block * block_size * hosts)
        rest = {key: tf.gather(values, [each.shard for each in rests]) for key, values in ordered.items()}
        starts = [-1 if each.records_before == records[each.shard] else each.records_before for each in rests]
        rest[SHARD_START] = tf.constant(starts, tf.int64)
        return self._shuffle(self._read(rest), seed, epoch, first_block).skip(served)

    def _find_epoch(self, shards: dict[str, Any]) -> tuple[int, int]:
        """Returns the epoch in which the start lies, and how many of its records come before."""
        records = int(tf.reduce_sum(shards[SHARD_RECORDS]))
        if self._shares_records:
            records = len(range(self.host_index, records, self.host_count))
        return divmod(self.start, records) if records else (0, 0)

    def _ordered(self, shards: dict[str, Any], seed: int, epoch: Any) -> dict[str, Any]:
        """Returns the shards, a dictionary of vectors, in the order of an epoch, none of them begun."""
        shards = {**shards, SHARD_START: tf.zeros_like(shards[SHARD_NUMBER])}
        if not self.is_training:
            return shards
        order = read_order.shard_order(tf.size(shards[SHARD_NUMBER]), seed, epoch)
        return {key: tf.gather(values, order) for key, values in shards.items()}

    def _read(self, shards: dict[str, Any]) -> tf.data.Dataset:
        records = tf.data.Dataset.from_tensor_slices(shards).interleave(
            self._read_shard,
            cycle_length=self.cycle_length,
            num_parallel_calls=min(self.cycle_length, self.shard_count),
            deterministic=self.deterministic or not self.is_training,
        )
        if self._shares_records:
            records = records.shard(self.host_count, self.host_index)
        if self.before_cache is not None:
            records = records.map(_unrepeated).apply(self.before_cache)
        return records

    @property
    def _shuffles_in_blocks(self) -> bool:
        return self.is_training and self.deterministic and self.shuffle_buffer_size > 1

    def _shuffle(
        self, records: tf.data.Dataset, seed: int, epoch: Any, first_block: int = 0
    ) -> tf.data.Dataset:
        if not self.is_training or self.shuffle_buffer_size <= 1:
            return records
        key = read_order.record_order_key(seed, epoch)
        if self._shuffles_in_blocks:
            block_size = read_order.epoch_block_size(self.shuffle_buffer_size, seed, epoch)
            return records.apply(shuffle_in_blocks(block_size, key, first_block))
        return shuffle_by_key(records, self.shuffle_buffer_size, key)

    def _read_shard(self, shard: dict[str, Any]) -> tf.data.Dataset:
        start = shard[SHARD_START]
        first_id = tf.bitwise.left_shift(shard[SHARD_NUMBER], tf.constant(RECORD_ID_SHIFT, tf.int64))
        records = _open_shard(shard, self.read_buffer_bytes).skip(start).enumerate(first_id + start)
        if self.skip_counter is not None:
            # TensorFlow gives a shard up at the first record that it cannot read: the rest of it is lost.
            expected = tf.where(start < 0, tf.zeros_like(start), shard[SHARD_RECORDS] - start)
            expected = tf.where(shard[SHARD_RECORDS] < 0, shard[SHARD_RECORDS], expected)
            records = self.skip_counter.count_missing(records.ignore_errors(), expected)
        return records.map(_name_record)


def _open_shard(shard: dict[str, Any], read_buffer_bytes: int) -> tf.data.Dataset:
    return tf.data.TFRecordDataset(
        shard[SHARD_PATH],
        compression_type=shard[SHARD_COMPRESSION],
        buffer_size=read_buffer_bytes or None,
    )


def _counted(shards: tf.data.Dataset) -> dict[str, Any]:
    """Returns the shards as vectors; records that are not known are counted by reading them."""

    def count(shard: dict[str, Any]) -> dict[str, Any]:
        records = tf.cond(
            shard[SHARD_RECORDS] < 0,
            lambda: _open_shard(shard, _COUNTING_BUFFER_BYTES).reduce(np.int64(0), lambda n, _: n + 1),
            lambda: shard[SHARD_RECORDS],
        )
        return {**shard, SHARD_RECORDS: records}

    counted = shards.map(count, num_parallel_calls=tf.data.AUTOTUNE)
    return dict(counted.batch(_ALL_SHARDS).get_single_element())


def _unrepeated(record: dict[str, Any]) -> dict[str, Any]:
    return {**record, REPEAT_INDEX: tf.zeros([], tf.int64)}


# Functions that only pass on what they are given cost tf.data no call, and these are for every record.
def _name_record(record_id: Any, serialized: Any) -> dict[str, Any]:
    return {SERIALIZED: serialized, RECORD_ID: record_id}


def _number_example(example_id: Any, repeat_index: Any, record: dict[str, Any]) -> dict[str, Any]:
    return {**record, EXAMPLE_ID: example_id, REPEAT_INDEX: repeat_index}
