"""Going on from any batch: the same batches as of the run from the start, at every point of the echo."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from echoing.errors import OptionError
from pipeline import InputPipeline, PipelineConfig
from pipeline.storage import Storage


def make(folder: str, is_training: bool = True, **options: Any) -> InputPipeline:
    defaults = {
        "batch_size": 4,
        "image_size": 8,
        "epochs": 3,
        "seed": 1,
        "keep_tags": True,
        "deterministic": True,
        "shuffle_buffer_size": 12,
        "cycle_length": 2,
    }
    return InputPipeline(PipelineConfig(folder, **{**defaults, **options}), is_training)


def batches(pipeline: InputPipeline, **call: Any) -> list[dict[str, np.ndarray]]:
    return list(pipeline(**call).as_numpy_iterator())


def assert_goes_on(pipeline: InputPipeline, starts: list[int], **call: Any) -> None:
    whole = batches(pipeline, **call)
    assert len(whole) > max(starts)
    for start in starts:
        rest = batches(pipeline, **call, start_batch=start)
        assert len(rest) == len(whole) - start
        tf.nest.map_structure(np.testing.assert_array_equal, rest, whole[start:])


@pytest.fixture
def folder(make_data: Callable[..., str]) -> str:
    """23 records over 3 shards of 8, 8 and 7."""
    return make_data(23, shards=3)


@pytest.mark.parametrize("factor", [pytest.param(2, marks=pytest.mark.slow), 1.5])
@pytest.mark.parametrize("point", ["after_read", "after_decode", "after_augment", "after_batch"])
def test_goes_on_with_the_same_batches_whatever_the_point_of_the_echo(folder, point, factor):
    pipeline = make(folder, echo_factor=factor, insert_point=point, batch_shuffle_buffer_size=4)
    assert_goes_on(pipeline, [9])


OPTIONS: dict[str, dict[str, Any]] = {
    "no echo": {},
    "no shuffle": {"shuffle_buffer_size": 0},
    "shuffle before the echo": {"echo_factor": 2, "echo_shuffle": "none"},
    "cached": {"cache": "records"},
    "images cached": {"cache": "images"},
    "without fused stages": {"preprocess": "inception"},
    "smaller last batch": {"drop_remainder": False},
    "one shard at a time": {"cycle_length": 1},
    "buffer in bytes": {"shuffle_buffer_bytes": 20_000},
    "batches shuffled in bytes": {
        "echo_factor": 2,
        "insert_point": "after_batch",
        "batch_shuffle_buffer_bytes": 9 * 4 * (8 * 8 * 3 * 4 + 4 + 3 * 8),
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIONS)
def test_goes_on_with_the_same_batches_under(folder, name):
    assert_goes_on(make(folder, **OPTIONS[name]), [8])


@pytest.mark.parametrize(("hosts", "index"), [(2, 1), (5, 4)])
def test_every_host_goes_on_with_its_own_share(folder, hosts, index):
    context = tf.distribute.InputContext(hosts, index, num_replicas_in_sync=hosts)
    assert_goes_on(make(folder, batch_size=2 * hosts), [5], input_context=context)


def test_evaluation_goes_on_as_well(make_data):
    folder = make_data(14, shards=2, split="validation")
    assert_goes_on(make(folder, is_training=False), [3])


def test_uses_on_the_device_go_on(folder):
    pipeline = make(folder, echo_factor=1.5, insert_point="after_transfer")
    assert_goes_on(pipeline, [7])
    assert [int(batch["device_uses"]) for batch in batches(pipeline, start_batch=7)[:4]] == [2, 1, 2, 1]


def test_start_far_in_endless_data_is_the_right_epoch(folder):
    pipeline = make(folder, epochs=None)
    first = next(iter(pipeline(start_batch=23 * 1000).as_numpy_iterator()))
    # 23,000 batches of 4 are 4,000 epochs: the batch begins epoch 4,000, in a block of 5 or 6 records.
    assert first["example_id"].tolist() == list(range(92_000, 92_004))
    assert len(set(first["record_id"].tolist())) == 4


def test_reads_one_block_again_and_not_what_came_before(folder):
    def read_from(**options: Any) -> int:
        storage = make(folder, **options).stages(start_batch=11).stages[0]
        assert isinstance(storage, Storage)
        return storage.start

    assert read_from() == 44
    # Outputs 44 to 47 lie in the block of six from 42 on, which begins with a use of example 21.
    assert read_from(echo_factor=2) == 21
    assert read_from(echo_factor=2, shuffle_buffer_size=0) == 22
    assert read_from(echo_factor=2, insert_point="after_batch") == 5 * 4


def test_without_determinism_as_many_examples_are_left_out(folder):
    rest = batches(make(folder, deterministic=False, drop_remainder=False), start_batch=6)
    ids = np.concatenate([batch["example_id"] for batch in rest])
    assert sorted(ids.tolist()) == list(range(24, 69))


def test_bad_records_make_the_start_earlier_by_as_many(write_records, good_record):
    folder = write_records([b"no example", *(good_record(index) for index in range(1, 12))])
    options = {"on_bad_record": "skip", "epochs": 1, "shuffle_buffer_size": 0, "batch_size": 1}
    whole = [int(batch["record_id"][0]) for batch in batches(make(folder, **options))]
    rest = [int(batch["record_id"][0]) for batch in batches(make(folder, **options), start_batch=4)]
    assert rest == whole[3:]


def test_elastic_echo_goes_on_at_a_stated_example(folder):
    pipeline = make(folder, echo_factor="elastic", batch_size=1)
    assert pipeline.echo_variable is not None
    pipeline.echo_variable.assign(2.0)
    rest = batches(pipeline, start_example=60)
    assert sorted(int(batch["example_id"][0]) for batch in rest) == sorted([*range(60, 69)] * 2)
    with pytest.raises(OptionError, match=r"start_batch is 3.*0 with an elastic echo.*start_example"):
        pipeline(start_batch=3)


def test_stated_example_is_refused_where_the_batch_is_exact(folder):
    with pytest.raises(OptionError, match=r"start_example is 3.*start_batch"):
        make(folder)(start_example=3)


@pytest.mark.parametrize("start", [-1, 1.5])
def test_bad_start_is_refused(folder, start):
    with pytest.raises(OptionError, match="start_batch"):
        make(folder)(start_batch=start)
