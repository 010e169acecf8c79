"""Where in a seeded read a number of records leads, against a model written out and against tf.data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.read_order import (
    ShardRest,
    epoch_block_size,
    interleave_from,
    record_order_key,
    shard_order,
)

shard_sizes = st.lists(st.integers(0, 9), min_size=1, max_size=8)


def written_out(records: Sequence[int], cycle_length: int) -> list[tuple[int, int]]:
    """Interleaves by hand: slots that are visited in turn and refilled when they are found empty."""
    shards = [[(shard, position) for position in range(count)] for shard, count in enumerate(records)]
    slots: list[list[tuple[int, int]] | None] = [None] * cycle_length
    result, turn = [], 0
    while shards or any(slot is not None for slot in slots):
        slot = slots[turn]
        if slot is None and shards:
            slot = slots[turn] = shards.pop(0)
        if slot:
            result.append(slot.pop(0))
        else:
            slots[turn] = None
        turn = (turn + 1) % cycle_length
    return result


def interleaved(
    rests: Sequence[ShardRest], records: Sequence[int], cycle_length: int
) -> list[tuple[int, int]]:
    """Lets tf.data interleave what is left of the shards."""

    def read(shard: tf.Tensor, first: tf.Tensor, end: tf.Tensor) -> tf.data.Dataset:
        return tf.data.Dataset.range(first, end).map(lambda position: (shard, position))

    columns = np.array([(*rest, records[rest.shard]) for rest in rests], np.int64).reshape(-1, 3).T
    dataset = tf.data.Dataset.from_tensor_slices(tuple(columns)).interleave(
        read, cycle_length=cycle_length, num_parallel_calls=cycle_length, deterministic=True
    )
    return [(int(shard), int(position)) for shard, position in dataset.as_numpy_iterator()]


@settings(max_examples=300, deadline=None)
@given(shard_sizes, st.integers(1, 6), st.integers(0, 60))
def test_rests_interleaved_are_what_follows_the_position(records, cycle_length, position):
    whole = written_out(records, cycle_length)
    rests = interleave_from(records, cycle_length, position)
    left = [records[rest.shard] - rest.records_before for rest in rests]
    rest = [
        (rests[index].shard, rests[index].records_before + offset)
        for index, offset in written_out(left, cycle_length)
    ]
    assert rest == whole[position:]


@settings(max_examples=20, deadline=None)
@given(shard_sizes, st.integers(1, 5), st.integers(0, 40))
def test_tf_data_interleaves_the_rests_as_the_whole(records, cycle_length, position):
    rests = interleave_from(records, cycle_length, position)
    assert interleaved(rests, records, cycle_length) == written_out(records, cycle_length)[position:]


def test_position_of_a_set_with_billions_of_records_follows_by_arithmetic():
    records = [10**9, 2 * 10**9, 10**9]
    assert interleave_from(records, 2, 0) == [(0, 0), (1, 0), (2, 0)]
    # One record of each in turn until shard 0 ends; its turn then opens shard 2.
    assert interleave_from(records, 2, 2 * 10**9 + 1) == [(2, 0), (1, 10**9 + 1)]
    assert interleave_from(records, 2, 2 * 10**9 + 4) == [(1, 10**9 + 2), (2, 2)]
    assert interleave_from(records, 2, 4 * 10**9) in ([], [(1, 2 * 10**9), (2, 10**9)])


def test_nothing_is_left_behind_the_last_record():
    rests = interleave_from([2, 3], 2, 99)
    assert all(rest.records_before == [2, 3][rest.shard] for rest in rests)


@pytest.mark.parametrize(("count", "orders"), [(1, 1), (2, 2), (1024, 20)])
def test_shards_are_permuted_anew_each_epoch(count, orders):
    drawn = [shard_order(count, seed=5, epoch=epoch).numpy().tolist() for epoch in range(20)]
    assert all(sorted(order) == list(range(count)) for order in drawn)
    assert len({tuple(order) for order in drawn}) == orders


def test_order_is_the_same_in_a_graph_and_eagerly():
    dataset = tf.data.Dataset.range(3).map(
        lambda epoch: (shard_order(9, 5, epoch), epoch_block_size(99, 5, epoch))
    )
    for epoch, (order, size) in enumerate(dataset.as_numpy_iterator()):
        assert order.tolist() == shard_order(9, 5, epoch).numpy().tolist()
        assert size == int(epoch_block_size(99, 5, epoch))


def test_blocks_of_an_epoch_fill_three_quarters_to_all_of_half_the_buffer():
    sizes = {int(epoch_block_size(80, 1, epoch)) for epoch in range(60)}
    assert min(sizes) >= 30
    assert max(sizes) <= 40
    assert len(sizes) > 6


def test_draws_of_an_epoch_have_keys_of_their_own():
    keys = {tuple(record_order_key(seed, epoch).numpy()) for seed in (1, 2) for epoch in (0, 1)}
    assert len(keys) == 4
