"""Reading shards: epochs, order, sharding across hosts, caching."""

from __future__ import annotations

from pathlib import Path

import pytest
import tensorflow as tf

from pipeline.data_source import open_data_source
from pipeline.element import split_record_id
from pipeline.skipping import SkipCounter
from pipeline.storage import Storage, shards_dataset


@pytest.fixture
def shards(tmp_path: Path):
    """20 records, each its own number, over 4 shards of 5."""
    for shard in range(4):
        path = str(tmp_path / f"train-{shard:05d}-of-00004")
        with tf.io.TFRecordWriter(path) as writer:
            for position in range(5):
                writer.write(str(shard * 5 + position).encode())
    return open_data_source(str(tmp_path)).shards


def read(shards, **options) -> list[int]:
    options = {"shard_count": len(shards), "epochs": 1, **options}
    dataset = shards_dataset(shards).apply(Storage(**options))
    return [int(record["serialized"]) for record in dataset.as_numpy_iterator()]


def test_every_epoch_holds_each_record_once_in_another_order(shards):  # DP-01
    numbers = read(shards, epochs=3, shuffle_buffer_size=10, seed=1)
    epochs = [numbers[i : i + 20] for i in (0, 20, 40)]
    assert all(sorted(epoch) == list(range(20)) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2]


def test_repeats_for_ever_without_an_epoch_count(shards):
    dataset = shards_dataset(shards).apply(Storage(shard_count=4))
    assert len(list(dataset.take(101))) == 101


def test_evaluation_reads_in_order_of_shards_and_records(shards):
    assert read(shards, is_training=False, cycle_length=1) == list(range(20))


@pytest.mark.parametrize("options", [{"deterministic": True, "seed": 3}, {"is_training": False}])
def test_same_seed_gives_the_same_order(shards, options):
    assert read(shards, **options) == read(shards, **options)


def test_other_seed_gives_another_order(shards):
    assert read(shards, deterministic=True, seed=3) != read(shards, deterministic=True, seed=4)


@pytest.mark.parametrize("hosts", [2, 3, 4])
def test_hosts_share_the_shards_without_loss_or_overlap(shards, hosts):
    shares = [read(shards, host_count=hosts, host_index=index) for index in range(hosts)]
    assert all(shares)
    assert sorted(number for share in shares for number in share) == list(range(20))


def test_more_hosts_than_shards_share_the_records(shards):
    shares = [read(shards, host_count=6, host_index=index, deterministic=True, seed=1) for index in range(6)]
    assert all(shares)
    assert sorted(number for share in shares for number in share) == list(range(20))


def test_record_id_names_shard_and_position_and_example_id_numbers_the_reads(shards):
    dataset = shards_dataset(shards).apply(Storage(shard_count=4, epochs=2, seed=1))
    records = list(dataset.as_numpy_iterator())
    for record in records:
        shard, position = split_record_id(int(record["record_id"]))
        assert shard * 5 + position == int(record["serialized"])
    assert [int(record["example_id"]) for record in records] == list(range(40))
    assert {int(record["repeat_index"]) for record in records} == {0}


def test_cached_records_are_still_shuffled_anew_each_epoch(shards):
    numbers = read(shards, epochs=2, cache=True, shuffle_buffer_size=20, seed=1)
    assert sorted(numbers[:20]) == sorted(numbers[20:]) == list(range(20))
    assert numbers[:20] != numbers[20:]


def corrupt_payload(path: str, record: int) -> None:
    """Flips a byte in the payload of a record: the framing stays, its checksum does not fit any more."""
    content = bytearray(Path(path).read_bytes())
    offset = 0
    for _ in range(record):
        offset += 12 + int.from_bytes(content[offset : offset + 8], "little") + 4
    content[offset + 12] ^= 0xFF
    Path(path).write_bytes(bytes(content))


@pytest.mark.parametrize(("shard", "record", "lost"), [(0, 0, 5), (2, 2, 3), (3, 4, 1)])
def test_unreadable_rest_of_a_shard_is_skipped_and_counted(shards, shard, record, lost):
    corrupt_payload(shards[shard].path, record)
    counter = SkipCounter()
    numbers = read(shards, skip_counter=counter)
    missing = set(range(shard * 5 + record, shard * 5 + 5))
    assert sorted(numbers) == sorted(set(range(20)) - missing)
    assert counter.count == lost


def test_unreadable_record_fails_without_a_skip_counter(shards):
    corrupt_payload(shards[1].path, 2)
    with pytest.raises(tf.errors.DataLossError):
        read(shards)
