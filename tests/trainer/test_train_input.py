from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from trainer.step import StepRecord
from trainer.train_input import TrainInput


def records(*repeats: int) -> list[StepRecord]:
    return [StepRecord(0, 0, 0, 0, 0, 2, device_repeat=repeat) for repeat in repeats]


def source(first_batch: int, uses_done: int) -> TrainInput:
    caller: Any = SimpleNamespace(loop=SimpleNamespace(uses_done=lambda: uses_done))
    return TrainInput(None, caller, first_batch)


def test_position_before_the_first_step_is_the_first_batch() -> None:
    assert source(12, 0).position == {"batch": 12, "uses": 0}


@pytest.mark.parametrize(
    ("calls", "uses_done", "position"),
    [
        ([(0, 0, 0)], 0, {"batch": 3, "uses": 0}),
        ([(0, 1, 2, 0)], 1, {"batch": 1, "uses": 1}),
        ([(0, 1), (2, 0, 1)], 0, {"batch": 2, "uses": 0}),
        ([(0,), (), (1,)], 2, {"batch": 0, "uses": 2}),
    ],
)
def test_position_is_the_batch_whose_uses_are_not_all_done(
    calls: list[tuple[int, ...]], uses_done: int, position: dict[str, int]
) -> None:
    batches = source(0, uses_done)
    for repeats in calls:
        batches.count(records(*repeats))
    assert batches.position == position


def test_batch_that_a_run_before_began_counts_once() -> None:
    batches = source(4, 0)
    batches.count(records())
    batches.count(records(2, 3))
    assert batches.position == {"batch": 5, "uses": 0}
    batches.count(records(1))  # not the first steps any more: these belong to a batch that was counted
    assert batches.batches_begun == 5
