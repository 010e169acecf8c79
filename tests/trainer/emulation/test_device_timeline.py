from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from trainer.emulation.device_timeline import DeviceTimeline, Slot


def test_step_starts_at_arrival_when_the_device_is_idle() -> None:
    timeline = DeviceTimeline(start_seconds=10)
    assert timeline.schedule(arrival_seconds=12, duration_seconds=3) == Slot(2, 12, 15)


def test_step_starts_at_the_end_of_the_step_before_when_its_batch_came_earlier() -> None:
    timeline = DeviceTimeline(start_seconds=0)
    timeline.schedule(arrival_seconds=1, duration_seconds=4)
    assert timeline.schedule(arrival_seconds=2, duration_seconds=4) == Slot(0, 5, 9)


def test_batch_that_arrives_exactly_at_the_end_waits_for_nothing() -> None:
    timeline = DeviceTimeline(start_seconds=0)
    timeline.schedule(arrival_seconds=0, duration_seconds=4)
    assert timeline.schedule(arrival_seconds=4, duration_seconds=1) == Slot(0, 4, 5)


def test_host_twice_as_slow_leaves_the_device_idle_half_of_the_time() -> None:
    timeline = DeviceTimeline(start_seconds=0)
    slots = [timeline.schedule(arrival_seconds=2 * k, duration_seconds=1) for k in range(1, 6)]
    assert [slot.wait_seconds for slot in slots] == [2, 1, 1, 1, 1]


# Multiples of 1/64 s, so that sums are exact in binary floating point.
ticks = st.integers(0, 6400).map(lambda tick: tick / 64)


@given(ticks, st.lists(st.tuples(ticks, ticks), min_size=1))
def test_waiting_and_work_fill_the_span_without_overlap(
    start: float, steps: list[tuple[float, float]]
) -> None:
    timeline = DeviceTimeline(start)
    arrival, slots, arrivals = start, [], []
    for gap, duration in steps:
        arrival += gap
        arrivals.append(arrival)
        slots.append(timeline.schedule(arrival, duration))

    busy = sum(slot.end_seconds - slot.start_seconds for slot in slots)
    assert busy == sum(duration for _, duration in steps)
    assert sum(slot.wait_seconds for slot in slots) + busy == slots[-1].end_seconds - start
    assert all(slot.wait_seconds >= 0 for slot in slots)
    assert all(slot.start_seconds >= at for slot, at in zip(slots, arrivals, strict=True))
    assert all(later.start_seconds >= earlier.end_seconds for earlier, later in itertools.pairwise(slots))


@given(st.lists(st.tuples(ticks, ticks), min_size=1), ticks)
def test_later_arrivals_never_make_an_earlier_end(steps: list[tuple[float, float]], delay: float) -> None:
    def last_end(extra: float) -> float:
        timeline = DeviceTimeline(0)
        return [timeline.schedule(arrival + extra, duration) for arrival, duration in sorted(steps)][
            -1
        ].end_seconds

    assert last_end(0) <= last_end(delay) <= last_end(0) + delay
