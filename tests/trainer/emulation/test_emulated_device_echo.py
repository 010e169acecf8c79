"""Repeats on the emulated device, with the times of arrival written down in each test."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from echoing.errors import DataError
from trainer.device_echo import DeviceEcho
from trainer.emulation.accelerator import EmulatedAccelerator
from trainer.step import StepRecord

ELASTIC = DeviceEcho(opportunistic_max_uses=100)


def batch(number: int = 0, uses: int | None = None, examples: int = 4) -> dict[str, Any]:
    element = {"image": np.zeros((examples, 2, 2, 3)), "label": np.zeros(examples, np.int32)}
    element["number"] = np.full(examples, number)
    return element if uses is None else element | {"device_uses": np.int64(uses)}


class Script:
    """A supplier whose batches arrive at set times, and a device that sleeps until all of them are there.

    The infeed runs ahead, so that later arrivals may lie in the device's memory before their time; the end of
    the data is made known at its time. So the outcome does not hang on the threads.

    Args:
        arrivals: when each batch arrives, in seconds.
        uses: `device_uses` of each, or None for batches without.
        end: when the end of the data is known, if that is after the last arrival.
    """

    def __init__(self, arrivals: list[float], uses: list[int] | None = None, end: float = 0.0) -> None:
        self._arrivals = arrivals
        self._uses = uses
        self._end = max([end, *arrivals])
        self._changed = threading.Condition()
        self._arrived = 0
        self._woken = 0.0
        self._now = 0.0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self._infeed = threading.current_thread()
        for number, seconds in enumerate(self._arrivals):
            self._note(number)
            self._now = seconds
            yield batch(number, None if self._uses is None else self._uses[number])
        self._note(len(self._arrivals))
        with self._changed:
            self._changed.wait_for(lambda: self._woken >= self._end)

    def _note(self, arrived: int) -> None:
        with self._changed:
            self._arrived = arrived
            self._changed.notify_all()

    def clock(self) -> float:
        return self._now

    def wait_until(self, deadline_seconds: float, stopped: threading.Event) -> None:
        before = sum(seconds <= deadline_seconds for seconds in self._arrivals)
        with self._changed:
            self._changed.wait_for(lambda: self._arrived >= before or stopped.is_set())
            self._woken = deadline_seconds
            self._changed.notify_all()
        if deadline_seconds >= self._end:
            self._infeed.join()

    def steps(self, echo: DeviceEcho | None = None, **options: Any) -> Iterator[StepRecord]:
        options = {"batch_size": 4, "step_seconds": 1.0, "queue_depth": 1000} | options
        trainer = EmulatedAccelerator(
            device_echo=echo, clock=self.clock, wait_until=self.wait_until, **options
        )
        return trainer.steps(self)


def uses_of(steps: list[StepRecord]) -> list[tuple[int, int]]:
    return [(int(step.tags["number"][0]), step.device_repeat) for step in steps]


def waits_of(steps: list[StepRecord]) -> list[float]:
    return [step.wait_seconds for step in steps]


def test_batch_is_used_as_often_as_it_says_without_waiting() -> None:
    steps = list(Script([3, 4, 10], uses=[2, 1, 3]).steps())
    assert uses_of(steps) == [(0, 0), (0, 1), (1, 0), (2, 0), (2, 1), (2, 2)]
    assert waits_of(steps) == [3, 0, 0, 4, 0, 0]
    assert [step.start_seconds for step in steps] == [3, 4, 5, 10, 11, 12]
    assert [step.index for step in steps] == list(range(6))
    assert all(set(step.tags) == {"number"} and step.examples == 4 for step in steps)


def test_copy_counts_for_the_first_use_only() -> None:
    readings = iter([0.0, 5.0, 7.5])  # start of the run, before the copy, after it
    trainer = EmulatedAccelerator(
        batch_size=4, step_seconds=1.0, clock=lambda: next(readings), wait_until=lambda *_: None
    )
    assert [step.transfer_seconds for step in trainer.steps([batch(uses=3)])] == [2.5, 0, 0]


def test_all_uses_of_the_last_batches_are_done_before_the_error_after_them() -> None:
    def source() -> Iterator[dict[str, Any]]:
        yield batch(0, 2)
        yield batch(1, 3)
        raise ValueError("bad record")

    seen = []
    trainer = EmulatedAccelerator(batch_size=4, step_seconds=0.001)
    with pytest.raises(ValueError, match="bad record"):
        for step in trainer.steps(source()):
            seen.append(step)
    assert uses_of(seen) == [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]


def test_steady_slow_host_is_made_up_for_by_repeats() -> None:
    steps = list(Script([3, 6, 9, 12]).steps(ELASTIC))
    assert uses_of(steps) == [
        *[(0, 0), (0, 1), (0, 2)],
        *[(1, 0), (1, 1), (1, 2)],
        *[(2, 0), (2, 1), (2, 2)],
        (3, 0),
    ]
    assert waits_of(steps) == [3] + [0] * 9


def test_steady_fast_host_sees_no_repeat() -> None:
    steps = list(Script([0.5 * k for k in range(1, 20)]).steps(ELASTIC))
    assert uses_of(steps) == [(k, 0) for k in range(19)]
    assert waits_of(steps) == [0.5] + [0] * 18


def test_burst_is_worked_off_before_anything_is_repeated() -> None:
    steps = list(Script([1, 1, 1, 5.5, 5.5, 9]).steps(ELASTIC))
    assert uses_of(steps) == [
        *[(0, 0), (1, 0), (2, 0), (2, 1), (2, 2)],  # to 6 s
        *[(3, 0), (4, 0), (4, 1)],  # to 9 s
        (5, 0),
    ]
    assert sum(waits_of(steps)) == 1


def test_stall_uses_up_the_batch_and_then_waits_until_recovery() -> None:
    steps = list(Script([1, 2, 10.25, 11, 12]).steps(DeviceEcho(opportunistic_max_uses=3)))
    assert uses_of(steps) == [(0, 0), (1, 0), (1, 1), (1, 2), (2, 0), (3, 0), (4, 0)]
    assert waits_of(steps) == [1, 0, 0, 0, 5.25, 0, 0]


def test_arrival_when_the_step_ends_counts_as_arrived_and_a_later_one_does_not() -> None:
    assert uses_of(list(Script([1, 2, 3]).steps(ELASTIC))) == [(0, 0), (1, 0), (2, 0)]
    late = list(Script([1, 2 + 2**-40, 3.5]).steps(ELASTIC))
    assert uses_of(late) == [(0, 0), (0, 1), (1, 0), (2, 0)]
    assert [step.start_seconds for step in late] == [1, 2, 3, 4]


def test_maximum_of_one_repeats_nothing() -> None:
    steps = list(Script([3, 6]).steps(DeviceEcho(opportunistic_max_uses=1)))
    assert uses_of(steps) == [(0, 0), (1, 0)]
    assert waits_of(steps) == [3, 2]


def test_uses_asked_for_by_the_batch_come_first_and_further_ones_while_nothing_arrives() -> None:
    steps = list(Script([1, 1, 6], uses=[2, 1, 2]).steps(DeviceEcho(opportunistic_max_uses=3)))
    assert uses_of(steps) == [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1)]
    assert waits_of(steps) == [1, 0, 0, 0, 0, 0, 0]


def test_last_batch_is_repeated_until_the_end_of_the_data_is_known() -> None:
    assert uses_of(list(Script([1, 2], end=4.5).steps(ELASTIC))) == [(0, 0), (1, 0), (1, 1), (1, 2)]
    assert uses_of(list(Script([1, 2], end=3).steps(ELASTIC))) == [(0, 0), (1, 0)]


def test_error_of_the_pipeline_ends_the_repeats() -> None:
    ready = threading.Event()

    def source() -> Iterator[dict[str, Any]]:
        yield batch(0)
        ready.wait()
        raise ValueError("bad record")

    seen = []
    trainer = EmulatedAccelerator(batch_size=4, step_seconds=0.001, device_echo=ELASTIC)
    with pytest.raises(ValueError, match="bad record"):
        for step in trainer.steps(source()):
            seen.append(step)
            if len(seen) == 5:
                ready.set()
    assert uses_of(seen) == [(0, repeat) for repeat in range(len(seen))]
    assert 5 <= len(seen) <= 100


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 20).map(lambda tick: tick / 4), min_size=1, max_size=12),
    st.integers(1, 4),
    st.data(),
)
def test_schedule_repeats_only_where_the_device_would_idle(
    gaps: list[float], most: int, data: st.DataObject
) -> None:
    arrivals = [float(seconds) for seconds in itertools.accumulate(gaps)]
    uses = data.draw(st.lists(st.integers(1, most), min_size=len(gaps), max_size=len(gaps)))
    steps = list(Script(arrivals, uses).steps(DeviceEcho(opportunistic_max_uses=most)))

    free, expected = 0.0, []
    for number, arrival in enumerate(arrivals):
        free = max(free, arrival)
        following = arrivals[number + 1] if number + 1 < len(arrivals) else 0.0
        count = uses[number]
        while count < most and free + count < following:
            count += 1
        expected += [(number, repeat, free + repeat) for repeat in range(count)]
        free += count
    assert [(*use, step.start_seconds) for use, step in zip(uses_of(steps), steps, strict=True)] == expected
    assert sum(waits_of(steps)) + len(steps) == steps[-1].end_seconds


def test_memory_of_a_batch_becomes_free_when_its_last_use_ends() -> None:
    taken = threading.Semaphore(0)
    unexpected = []
    calls = itertools.count()

    def source() -> Iterator[dict[str, Any]]:
        for number in range(5):
            taken.release()
            yield batch(number, uses=3)

    def wait_until(deadline_seconds: float, stopped: threading.Event) -> None:
        call = next(calls)
        if call == 0:  # one in work, one queued, one in the infeed's hands
            assert all(taken.acquire(timeout=60) for _ in range(3))
        elif call == 3:  # the second batch begins
            assert taken.acquire(timeout=60)
        if call < 6 and taken.acquire(timeout=0.02):
            unexpected.append(call)

    trainer = EmulatedAccelerator(batch_size=4, step_seconds=1.0, queue_depth=1, wait_until=wait_until)
    assert len(list(trainer.steps(source()))) == 15
    assert unexpected == []


@pytest.mark.parametrize("elastic", [False, True])
def test_iterator_can_be_closed_between_the_repeats_of_a_batch(elastic: bool) -> None:
    never = threading.Event()

    def source() -> Iterator[dict[str, Any]]:
        yield batch(uses=None if elastic else 100)
        never.wait(0.5)

    steps = EmulatedAccelerator(
        batch_size=4, step_seconds=0.001, device_echo=ELASTIC if elastic else None
    ).steps(source())
    assert [next(steps).device_repeat for _ in range(3)] == [0, 1, 2]
    steps.close()  # type: ignore[attr-defined]


def test_uses_computed_by_a_dataset_are_followed_and_are_no_tag() -> None:
    features = {"image": tf.zeros([10, 2, 2, 3]), "label": tf.range(10), "number": tf.range(10)}
    dataset = tf.data.Dataset.from_tensor_slices(features).batch(4).enumerate()
    dataset = dataset.map(lambda index, element: element | {"device_uses": 1 + index % 2})
    steps = list(EmulatedAccelerator(batch_size=4, step_seconds=0.001).steps(dataset))
    assert uses_of(steps) == [(0, 0), (4, 0), (4, 1), (8, 0)]
    assert [step.examples for step in steps] == [4, 4, 4, 2]
    assert set(steps[0].tags) == {"number"}


@pytest.mark.parametrize(
    ("uses", "echo", "message"),
    [
        (0, None, "device_uses 0"),
        (np.ones(4, int), None, r"the shape \[4\]"),
        (3, DeviceEcho(opportunistic_max_uses=2), "more than opportunistic_max_uses"),
    ],
)
def test_uses_out_of_range_are_refused_after_the_steps_before(
    uses: Any, echo: DeviceEcho | None, message: str
) -> None:
    seen = []
    trainer = EmulatedAccelerator(batch_size=4, step_seconds=0.001, device_echo=echo)
    with pytest.raises(DataError, match=message):
        for step in trainer.steps([batch(0, 1), batch(1) | {"device_uses": np.asarray(uses)}]):
            seen.append(step)
    assert uses_of(seen)[0] == (0, 0)
    assert {number for number, _ in uses_of(seen)} == {0}
