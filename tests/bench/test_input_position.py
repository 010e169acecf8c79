"""How far a training has come: kept, read again, and carried over to other options."""

from __future__ import annotations

import json

import pytest

from bench.input_position import InputPosition, changes, input_identity
from pipeline.config import PipelineConfig
from pipeline.data_source import open_data_source


def config(**options):
    return PipelineConfig(**{"data_dir": "d", "batch_size": 8} | options)


def test_position_is_read_as_it_was_saved_through_json():
    position = InputPosition(7, 2, 0, 1.0, 56, 130, 9)
    scalars = json.loads(json.dumps(position.to_scalars({"seed": 9}) | {"train_steps": 3}))
    assert InputPosition.from_scalars(scalars) == position


@pytest.mark.parametrize(
    "options, workers, batch, example",
    [
        ({}, 1, 12, 0),  # 100 fresh examples in batches of 8
        ({}, 2, 12, 0),  # 50 a host in batches of 4
        ({"echo_factor": 2.5}, 1, 31, 0),  # 250 examples behind the echo
        ({"echo_factor": 2, "insert_point": "after_batch"}, 1, 24, 0),
        ({"echo_factor": 2, "insert_point": "after_transfer", "keep_tags": True}, 1, 12, 0),
        ({"echo_factor": "elastic"}, 1, 0, 100),
    ],
)
def test_other_options_go_on_after_as_many_fresh_examples(options, workers, batch, example):
    before = InputPosition(batch=50, uses=1, examples_fresh=100, examples_trained=400, seed=5)
    moved = before.moved_to(config(**options), workers)
    assert (moved.batch, moved.uses, moved.example) == (batch, 0, example)
    assert (moved.examples_fresh, moved.examples_trained, moved.seed) == (100, 400, 5)


def test_changes_of_the_input_are_named_and_others_are_none(small_data):
    source = open_data_source(small_data)

    def identity(seed=1, **options):
        return input_identity(config(**options), source, 1, seed)

    saved = InputPosition().to_scalars(identity())
    assert changes(saved, identity()) == ""
    assert changes(saved, identity(num_parallel_calls=3, prefetch_batches=5)) == ""
    assert changes(saved, identity(batch_size=4)) == "train_batch_size 8 -> 4"
    assert changes(saved, identity(echo_factor=2)) == (
        "echo_factor 1 -> 2, insert_point none -> after_augment"
    )
    assert changes(saved, identity(seed=2)) == "seed 1 -> 2"
