"""Reading shards: epochs, order, sharding across hosts, caching."""

from __future__ import annotations

from dataclasses import dataclass, replace
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


@pytest.fixture
def uneven_shards(tmp_path: Path):
    """24 records, each its own number, over shards of 5, 9, 3 and 7."""
    number = 0
    for shard, count in enumerate((5, 9, 3, 7)):
        with tf.io.TFRecordWriter(str(tmp_path / f"train-{shard:05d}-of-00004")) as writer:
            for _ in range(count):
                writer.write(str(number).encode())
                number += 1
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


def read_ids(shards, **options) -> list[tuple[int, int, int]]:
    dataset = shards_dataset(shards).apply(Storage(**{"shard_count": len(shards), **options}))
    return [
        (int(record["serialized"]), int(record["record_id"]), int(record["example_id"]))
        for record in dataset.as_numpy_iterator()
    ]


STARTS = {
    "shuffled": {"shuffle_buffer_size": 10},
    "not shuffled": {"shuffle_buffer_size": 0},
    "one shard at a time": {"cycle_length": 1, "shuffle_buffer_size": 3},
    "buffer larger than the data": {"shuffle_buffer_size": 1000},
    "cached": {"cache": True, "shuffle_buffer_size": 6},
    "second of three hosts": {"host_count": 3, "host_index": 1, "shuffle_buffer_size": 4},
    "last of more hosts than shards": {"host_count": 6, "host_index": 5, "shuffle_buffer_size": 4},
    "evaluation": {"is_training": False, "epochs": 1},
}


@pytest.mark.parametrize("name", STARTS)
def test_deterministic_read_goes_on_from_any_record(uneven_shards, name):
    options = {"seed": 3, "deterministic": True, "epochs": 3, "cycle_length": 2, **STARTS[name]}
    whole = read_ids(uneven_shards, **options)
    for start in sorted({1, 13, 24, len(whole) // 2, len(whole) - 1, len(whole) + 1}):
        assert read_ids(uneven_shards, **options, start=start) == whole[start:]


def test_endless_read_goes_on_in_a_late_epoch(uneven_shards):
    options = {"shard_count": 4, "seed": 3, "deterministic": True, "shuffle_buffer_size": 10}
    dataset = shards_dataset(uneven_shards)
    whole = [int(r["serialized"]) for r in dataset.apply(Storage(**options)).take(24 * 6)]
    rest = dataset.apply(Storage(**options, start=24 * 4 + 7)).take(41)
    assert [int(r["serialized"]) for r in rest] == whole[24 * 4 + 7 :]
    assert int(rest.cardinality()) == 41


def test_start_in_shards_that_were_not_counted_counts_them(uneven_shards):
    options = {"seed": 3, "deterministic": True, "epochs": 2, "shuffle_buffer_size": 10}
    unknown = [replace(shard, records=None) for shard in uneven_shards]
    assert read_ids(unknown, **options, start=30) == read_ids(uneven_shards, **options)[30:]


def test_start_in_gzip_shards(tmp_path):
    for shard in range(2):
        options = tf.io.TFRecordOptions("GZIP")
        with tf.io.TFRecordWriter(str(tmp_path / f"train-{shard:05d}-of-00002"), options) as writer:
            for position in range(6):
                writer.write(str(shard * 6 + position).encode())
    shards = open_data_source(str(tmp_path)).shards
    options = {"seed": 1, "deterministic": True, "epochs": 2, "shuffle_buffer_size": 4}
    assert read_ids(shards, **options, start=9) == read_ids(shards, **options)[9:]


def test_start_without_determinism_leaves_out_as_many_records_and_keeps_the_numbers(uneven_shards):
    rest = read_ids(uneven_shards, seed=3, epochs=2, start=30, shuffle_buffer_size=5)
    assert [example for _, _, example in rest] == list(range(30, 48))
    assert len({number for number, _, _ in rest}) == 18


def test_start_with_lost_records_lies_earlier_by_as_many(uneven_shards):
    corrupt_payload(uneven_shards[1].path, 4)  # 5 of its 9 records are lost
    options = {"seed": 3, "deterministic": True, "epochs": 2, "cycle_length": 1, "shuffle_buffer_size": 0}
    counter = SkipCounter()
    whole = [number for number, _, _ in read_ids(uneven_shards, **options, skip_counter=SkipCounter())]
    rest = [number for number, _, _ in read_ids(uneven_shards, **options, skip_counter=counter, start=24)]
    assert len(whole) == 38
    assert rest == whole[19:]
    assert counter.count == 5  # only what is read again is counted again


def test_endless_read_is_known_to_be_endless(shards):
    dataset = shards_dataset(shards).apply(Storage(shard_count=4))
    assert int(dataset.cardinality()) == tf.data.INFINITE_CARDINALITY


def test_records_near_each_other_in_one_epoch_are_mixed_with_others_in_the_next(tmp_path):
    with tf.io.TFRecordWriter(str(tmp_path / "train-00000-of-00001")) as writer:
        for number in range(400):
            writer.write(str(number).encode())
    shards = open_data_source(str(tmp_path)).shards
    numbers = read(shards, epochs=2, deterministic=True, seed=1, shuffle_buffer_size=80)
    first, second = ([set(numbers[at : at + 10]) for at in range(base, base + 400, 10)] for base in (0, 400))
    # Two batches of ten out of the same 40 records share 2.5; none is the same again.
    assert max(len(one & other) for one in first for other in second) <= 8
    ways = [abs(at % 400 - number) for at, number in enumerate(numbers)]
    assert 8 < sum(ways) / len(ways) < 14  # a third of a block of 30 to 40


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


@dataclass(frozen=True)
class Doubled:
    """A stage that stands for decoding: every number times two."""

    name: str = "doubled"

    def __call__(self, records: tf.data.Dataset) -> tf.data.Dataset:
        """Returns the records with their numbers doubled."""
        return records.map(
            lambda r: {
                **r,
                "serialized": tf.strings.as_string(2 * tf.strings.to_number(r["serialized"], tf.int64)),
            }
        )


@pytest.mark.parametrize("in_file", [False, True])
def test_start_in_what_is_changed_before_the_cache(uneven_shards, tmp_path, in_file):
    options = {
        "seed": 3,
        "deterministic": True,
        "epochs": 3,
        "shuffle_buffer_size": 8,
        "cache": True,
        "cache_path": str(tmp_path / "cache") if in_file else "",
        "before_cache": Doubled(),
    }
    whole = read_ids(uneven_shards, **options)
    assert sorted(number for number, _, _ in whole[:24]) == list(range(0, 48, 2))
    assert read_ids(uneven_shards, **options, start=30) == whole[30:]
