"""Stages in order."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import tensorflow as tf

from echoing.errors import OptionError
from pipeline.stage import Pipeline


@dataclass(frozen=True)
class Add:
    amount: int
    name: str = "add"

    def __call__(self, dataset):
        return dataset.map(lambda value: value + self.amount)


@dataclass(frozen=True)
class Double:
    name: str = "double"

    def __call__(self, dataset):
        return dataset.map(lambda value: value * 2)


def run(pipeline: Pipeline) -> list[int]:
    return [int(value) for value in pipeline(tf.data.Dataset.range(3))]


def test_stages_are_applied_in_order():
    assert run(Pipeline((Add(1), Double()))) == [2, 4, 6]
    assert run(Pipeline((Double(), Add(1)))) == [1, 3, 5]


def test_prefix_holds_everything_up_to_the_stage():
    pipeline = Pipeline((Add(1), Double(), Add(5, "last")))
    assert pipeline.prefix("double").names == ("add", "double")
    assert pipeline.prefix("last") == pipeline


def test_stage_is_inserted_right_after_the_named_one():
    pipeline = Pipeline((Add(1), Double())).with_stage_after("add", Add(10, "more"))
    assert pipeline.names == ("add", "more", "double")
    assert run(pipeline) == [22, 24, 26]


def test_unknown_stage_is_refused_with_the_names():
    with pytest.raises(OptionError, match="one of add, double"):
        Pipeline((Add(1), Double())).prefix("batch")


def test_two_stages_of_one_name_are_refused():
    with pytest.raises(OptionError, match="different names"):
        Pipeline((Add(1), Add(2)))


def test_a_stage_works_alone_with_apply():
    assert [int(value) for value in tf.data.Dataset.range(2).apply(Add(3))] == [3, 4]
