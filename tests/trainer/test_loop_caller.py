"""The loop that is called is a stand-in which reports given steps; real loops are in the trainers' tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from echoing.errors import DataError, PipebenchError
from trainer.loop_caller import LoopCaller
from trainer.loop_report import LoopStatus, TimedStep
from trainer.step import StepRecord


class Loop:
    """Reports the steps of each call as given; their times are wall-clock seconds."""

    steps_per_loop = 100
    num_classes = 4

    def __init__(
        self,
        calls: Sequence[Sequence[TimedStep]],
        status: LoopStatus = LoopStatus.LIMIT_REACHED,
        refused: Sequence[int] = (),
    ) -> None:
        self._calls = list(calls)
        self._outcome = status, list(refused)
        self._steps: list[TimedStep] = []
        self.asked: list[tuple[int, int]] = []

    def run(self, iterator: Any, limit: int, first_step: int) -> tuple[LoopStatus, list[int], float]:
        self.asked.append((limit, first_step))
        self._steps = list(self._calls.pop(0))
        began = self._steps[0].arrived_seconds if self._steps else 0.0
        return *self._outcome, began

    def finished_steps(self) -> list[TimedStep]:
        steps, self._steps = self._steps, []
        return steps


def step(arrived: float, ended: float, loss: float = 0.5, repeat: int = 0) -> TimedStep:
    return TimedStep(arrived, arrived, ended, loss, 2, {}, repeat)


def call(loop: Loop, **options: Any) -> tuple[LoopCaller, list[StepRecord], bool]:
    caller, records = LoopCaller(loop, 7, **options), []  # type: ignore[arg-type, var-annotated]
    return caller, records, caller.call(None, 10, records.append)


def test_steps_are_numbered_on_from_call_to_call() -> None:
    loop = Loop([[step(1, 2), step(2, 3)], [step(3, 4)]])
    caller, records, ended = call(loop, first_index=7)
    caller.call(None, 5, records.append)
    assert loop.asked == [(10, 7), (5, 9)]
    assert [record.index for record in records] == [7, 8, 9]
    assert caller.next_step == 10
    assert not ended


@pytest.mark.parametrize("status", list(LoopStatus)[:2])
def test_end_of_the_data_is_told(status: LoopStatus) -> None:
    assert call(Loop([[]], status))[2] is (status is LoopStatus.DATASET_ENDED)


@pytest.mark.parametrize(
    ("seconds", "limit"), [(0.001, 100), (0.01, 100), (0.25, 4), (0.3, 3), (0.9, 1), (5, 1)]
)
def test_next_call_should_take_about_a_second(seconds: float, limit: int) -> None:
    steps = [step(place * seconds, (place + 1) * seconds) for place in range(4)]
    assert call(Loop([steps]))[0].next_limit == limit


def test_first_call_is_one_step_and_one_without_steps_changes_nothing() -> None:
    caller, _, _ = call(Loop([[]], LoopStatus.DATASET_ENDED))
    assert caller.next_limit == 1


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(("named_from", "name"), [(0, 8), (1, 9)])
def test_loss_that_is_not_finite_is_named_and_not_reported(bad: float, named_from: int, name: int) -> None:
    loop = Loop([[step(1, 2), step(2, 3, bad)]], LoopStatus.LOSS_NOT_FINITE)
    caller = LoopCaller(loop, 7, 7, named_from)  # type: ignore[arg-type]
    records: list[StepRecord] = []
    with pytest.raises(PipebenchError, match=f"loss of step {name} is {bad}: training stopped"):
        caller.call(None, 10, records.append)
    assert [record.index for record in records] == [7]
    assert caller.next_step == 9  # the step was done, though it is worth nothing


@pytest.mark.parametrize(
    ("status", "refused", "message"),
    [
        (LoopStatus.LABELS_OUTSIDE, [9, -1, 9], r"step 1 has labels outside 0 to 3 .*: -1, 9\."),
        (LoopStatus.USES_BELOW_ONE, [0], "device_uses 0, but must be used at least once"),
        (LoopStatus.USES_BELOW_ONE, [2], "step 1 is to be used 2 times, but the run that this one goes on"),
        (LoopStatus.BATCH_UNEVEN, [7], "step 1 has 7 examples, which the devices of this host cannot share"),
    ],
)
def test_batch_that_is_refused_is_named_after_the_steps_before_it(
    status: LoopStatus, refused: list[int], message: str
) -> None:
    records: list[StepRecord] = []
    caller = LoopCaller(Loop([[step(1, 2)]], status, refused), 0)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=message):
        caller.call(None, 10, records.append)
    assert len(records) == 1


def test_pause_is_not_waiting_for_data() -> None:
    waits = []
    for pauses in (False, True):
        caller, records, _ = call(Loop([[step(1, 2)], [step(50, 51)]]))
        if pauses:
            caller.pause()
        caller.call(None, 10, records.append)
        waits.append(records[1].wait_seconds)
    # The stamps of the steps lie 48 s apart, on whatever clock.
    assert waits == pytest.approx([48, 0], abs=0.01)
