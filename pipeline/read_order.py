"""The order of a seeded read, and where in it a number of records leads, without reading them.

An epoch's order of shards is a permutation keyed by seed and epoch. `tf.data.Dataset.interleave` then takes
one record of each of `cycle_length` shards in turn: with known record counts the shards that are open after m
records, and how far each has come, follow by arithmetic.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from echoing.block_shuffle import block_size_for, shuffle_seed

_SHARD_ORDER, _RECORD_ORDER, _BLOCK_SIZE = 1, 2, 3  # so that no two draws of an epoch share a key


class ShardRest(NamedTuple):
    """A shard that is still to be read, from a record on.

    Attributes:
        shard: its place in the epoch's order of shards.
        records_before: its records that come before.
    """

    shard: int
    records_before: int


def interleave_from(records: Sequence[int], cycle_length: int, position: int) -> list[ShardRest]:
    """Returns what is left of an interleave of shards after `position` records, in the order to open it.

    Interleaving the rests with the same cycle length gives the records from `position` on: the shards that
    are open come first, from the one whose turn it is; an open one with nothing left keeps its turn, in which
    the next shard takes its place, as in tf.data. (The tests compare with tf.data itself.)

    Args:
        records: number of records of each shard, in the order in which they are opened.
        cycle_length: shards read at the same time.
        position: records before; from the total on, nothing is left.
    """
    waiting = deque(range(len(records)))
    turns: deque[ShardRest] = deque()
    while waiting and len(turns) < cycle_length:
        turns.append(ShardRest(waiting.popleft(), 0))
    while position and turns:
        # Whole rounds at once, up to the end of the first shard that ends: sets may hold billions of records.
        rounds = min(position // len(turns), min(records[rest.shard] - rest.records_before for rest in turns))
        turns = deque(ShardRest(rest.shard, rest.records_before + rounds) for rest in turns)
        position -= rounds * len(turns)
        if position == 0:
            break
        shard, before = turns.popleft()
        if before < records[shard]:
            turns.append(ShardRest(shard, before + 1))
            position -= 1
        elif waiting:
            turns.append(ShardRest(waiting.popleft(), 0))
    return [*turns, *(ShardRest(shard, 0) for shard in waiting)]


def shard_order(count: Any, seed: int, epoch: Any) -> Any:
    """Returns the epoch's order of `count` shards, int64 [count]."""
    numbers = tf.range(tf.cast(count, tf.int64))
    return tf.random.experimental.stateless_shuffle(numbers, _key(seed, _SHARD_ORDER, epoch))


def record_order_key(seed: int, epoch: Any) -> Any:
    """Returns the key of the epoch's shuffle of records, int64 [2]."""
    return _key(seed, _RECORD_ORDER, epoch)


def epoch_block_size(buffer_size: int, seed: int, epoch: Any) -> Any:
    """Returns the records of a block of the epoch's block shuffle, int64 [].

    Between three quarters of what the buffer allows and the whole: with few shards the same records come near
    each other in every epoch, and blocks of one size would never mix what lies on two sides of a border.
    """
    largest = block_size_for(buffer_size)
    bits = shuffle_seed(_key(seed, _BLOCK_SIZE, epoch))
    return tf.constant(largest, tf.int64) - tf.math.floormod(bits, tf.constant(largest // 4 + 1, tf.int64))


def _key(seed: int, draw: int, epoch: Any) -> Any:
    return tf.random.fold_in(tf.constant([seed, draw], tf.int64), tf.cast(epoch, tf.int64))
