"""The elastic factor, against a scripted supplier and a device on a fake clock.

The supplier makes batches one after another: a batch needs R / e step times, with the R of that moment and
the factor that was in force when its elements were echoed, `delay` batches earlier. `CAPACITY` finished
batches fit between it and the device. The unit of time is one step of the device.
"""

from __future__ import annotations

import bisect
import itertools
import math
import random
from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echoing.elastic import ElasticController, ElasticOptions, FactorChange

BATCH = 1000
CAPACITY = 4  # two batches of prefetch, two of infeed


class Run:
    """One simulated training, and what to ask of a stretch of it."""

    def __init__(self, need, steps, *, delay=2, jitter=0.0, stall_at=None, seed=0, **options):
        options = {"max_factor": 8, **options}
        self.controller = ElasticController(ElasticOptions(**options))
        generator = random.Random(seed)
        change_times, factors = [0.0], [self.controller.factor]
        line = deque([self.controller.factor] * delay)
        made = device_free = remainder = 0.0
        self.starts, self.waits, self.busy, self.factors = [], [], [], []
        for step in range(steps):
            begin = max(made, self.starts[step - CAPACITY] if step >= CAPACITY else 0.0)
            line.append(factors[bisect.bisect_right(change_times, begin) - 1])
            factor = line.popleft()
            made = begin + need(begin) / factor
            if stall_at is not None and made > stall_at:
                made, stall_at = made + 5, None
            fresh = int(BATCH / factor + remainder)
            remainder += BATCH / factor - fresh
            start = max(made, device_free)
            busy = generator.lognormvariate(-(jitter**2) / 2, jitter)
            self.starts.append(start)
            self.waits.append(start - device_free)
            self.busy.append(busy)
            device_free = start + busy
            self.factors.append(self.controller.observe(self.waits[-1], busy, fresh, BATCH))
            if self.factors[-1] != factors[-1]:
                change_times.append(device_free)
                factors.append(self.factors[-1])

    def utilization(self, first=0, last=None):
        busy, waits = sum(self.busy[first:last]), sum(self.waits[first:last])
        return busy / (busy + waits)

    def mean_factor(self, first=0, last=None):
        factors = self.factors[first:last]
        return sum(factors) / len(factors)

    def changes(self, first, last):
        return sum(first < change.step <= last for change in self.controller.trace)

    def step_at(self, time):
        return bisect.bisect_left(self.starts, time)

    def step_of_factor(self, factor, first):
        return next(step for step in range(first, len(self.factors)) if self.factors[step] == factor)


def steady(ratio):
    return lambda time: ratio


def switching(time_of_change, before, after):
    return lambda time: before if time < time_of_change else after


# --- steady supply -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ratio", [1.4, 3, 7.5])
@pytest.mark.parametrize(("delay", "settle_steps"), [(0, 6), (2, 6), (11, 15), (0, 3)])
def test_steady_slow_supply_keeps_the_device_busy_with_hardly_more_than_the_smallest_factor(
    ratio, delay, settle_steps
):
    run = Run(steady(ratio), 1200, delay=delay, settle_steps=settle_steps)
    assert run.utilization(200) >= 0.98
    assert run.mean_factor(200) == pytest.approx(ratio, rel=0.05)


def test_steady_supply_changes_the_factor_less_than_once_in_twelve_steps_and_only_by_small_steps():
    run = Run(steady(3), 1200)
    assert run.changes(200, 1200) <= 1000 / 12
    settled = run.factors[200:]
    assert max(settled) <= 3 * 1.05
    assert min(settled) >= 3 * 0.90


def test_supply_too_slow_for_the_largest_factor_settles_there_and_stays():
    run = Run(steady(8), 600, max_factor=6)
    assert run.factors[100:] == [6] * 500
    assert run.utilization(100) == pytest.approx(6 / 8)


def test_supply_fast_enough_never_leaves_the_smallest_factor():
    run = Run(steady(0.5), 600)
    assert run.controller.trace == [FactorChange(0, 1.0, "start")]


def test_supply_just_fast_enough_for_the_smallest_factor_stays_there():
    assert Run(steady(1.5), 600, min_factor=1.5).mean_factor() == 1.5


@pytest.mark.parametrize("seed", range(3))
def test_noise_of_a_fifth_on_the_step_time_costs_little(seed):
    run = Run(steady(3), 2000, jitter=0.2, seed=seed)
    assert run.utilization(300) >= 0.97
    assert run.mean_factor(300) == pytest.approx(3, rel=0.05)


# --- changes of supply -------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", range(0, 48, 6))
def test_supply_that_recovers_brings_the_factor_back_to_one_within_sixty_steps(phase):
    time = 700 + phase
    run = Run(switching(time, 3, 0.99), 1000)
    changed = run.step_at(time)
    returned = run.step_of_factor(1.0, changed)
    assert returned - changed <= 60
    assert set(run.factors[returned + 20 :]) == {1.0}


def test_recovery_behind_a_long_delay_is_followed_too():
    run = Run(switching(700, 3, 0.99), 1000, delay=11, settle_steps=15)
    changed = run.step_at(700)
    assert run.step_of_factor(1.0, changed) - changed <= 120


def test_supply_that_slows_down_is_answered_within_a_few_settle_times():
    run = Run(switching(500, 0.9, 3), 1000)
    changed = run.step_at(500)
    assert all(factor >= 2.8 for factor in run.factors[changed + 80 :])
    assert run.utilization(changed + 80) >= 0.98


def test_supply_that_recovers_from_beyond_the_largest_factor_is_followed():
    run = Run(switching(2000, 40, 1.5), 1100)
    changed = run.step_at(2000)
    assert run.factors[changed - 1] == 8
    assert run.mean_factor(changed + 200) == pytest.approx(1.5, rel=0.06)
    assert run.utilization(changed + 200) >= 0.97


def test_slow_drift_is_followed_both_ways():
    def drift(time):
        return 3 - math.cos(time / 300)

    run = Run(drift, 3000)
    assert run.utilization(200) >= 0.96
    needed = [drift(start) for start in run.starts[200:]]
    assert run.mean_factor(200) == pytest.approx(sum(needed) / len(needed), rel=0.1)


def test_bursts_shorter_than_the_buffers_average_out():
    run = Run(lambda time: 1.5 if int(time / 4) % 2 else 4.5, 2000)
    mean_ratio = 2 / (1 / 1.5 + 1 / 4.5)
    assert run.utilization(200) >= 0.96
    assert run.mean_factor(200) == pytest.approx(mean_ratio, rel=0.15)
    assert max(run.factors[200:]) < 4.5


# --- stalls ------------------------------------------------------------------------------------------------


def test_one_stall_leaves_the_factor_nearly_where_it_was():
    run = Run(steady(3), 1200, stall_at=700)
    stalled = run.step_at(705)
    # The other one is the first wait of all, at the start from e = 1.
    assert run.controller.stalls == 2
    assert Run(steady(3), 1200).controller.stalls == 1
    assert max(run.factors[stalled : stalled + 100]) <= 3 * 1.1
    assert run.mean_factor(stalled, stalled + 100) == pytest.approx(3, rel=0.05)


def test_one_stall_of_a_fast_supply_changes_nothing():
    run = Run(steady(0.5), 600, stall_at=300)
    assert max(run.waits[1:]) > 1  # the buffers hide the rest
    assert run.controller.trace == [FactorChange(0, 1.0, "start")]


def test_second_long_wait_soon_after_the_first_is_a_slowdown_and_counts():
    controller = ElasticController(ElasticOptions(max_factor=8, settle_steps=0, window_steps=4))
    for wait in (0, 0, 0, 0, 0, 50):
        assert controller.observe(wait, 1, BATCH, BATCH) == 1
    assert controller.stalls == 1
    assert controller.observe(50, 1, BATCH, BATCH) == 8


# --- exact reactions ---------------------------------------------------------------------------------------


def test_raise_is_the_measured_need_with_one_percent_of_headroom_and_waits_for_window_and_settling():
    controller = ElasticController(ElasticOptions(max_factor=8, window_steps=4, settle_steps=3))
    factors = [controller.observe(1.0, 1.0, 100, 100) for _ in range(7)]
    assert factors == [1, 1, 1, 1, 1, 1, pytest.approx(2.02)]
    assert controller.trace[1:] == [FactorChange(7, pytest.approx(2.02), "waiting")]


def test_change_that_has_not_arrived_yet_is_not_made_a_second_time():
    controller = ElasticController(ElasticOptions(max_factor=8, window_steps=4, settle_steps=0))
    for _ in range(20):  # every batch is still made of fresh examples alone, and half the time is waiting
        controller.observe(1.0, 1.0, 100, 100)
    assert controller.factor == pytest.approx(2.02)


def test_failed_probe_returns_to_the_good_factor_and_doubles_the_pause():
    controller = ElasticController(
        ElasticOptions(max_factor=8, initial_factor=3, settle_steps=0, window_steps=4)
    )
    for _ in range(8):
        controller.observe(0.0, 1.0, 100, 300)
    assert controller.trace[1:] == [FactorChange(8, pytest.approx(2.79), "probe")]
    controller.observe(0.2, 1.0, 100, 300)
    assert controller.trace[2:] == [FactorChange(9, 3, "probe failed")]
    for _ in range(15):
        assert controller.observe(0.0, 1.0, 100, 300) == 3
    assert controller.observe(0.0, 1.0, 100, 300) == pytest.approx(2.79)


@pytest.mark.parametrize("wait_seconds", [-1.0, math.nan, math.inf])
def test_time_that_is_none_is_refused(wait_seconds):
    with pytest.raises(ValueError, match="step times must be finite"):
        ElasticController(ElasticOptions(max_factor=2)).observe(wait_seconds, 1.0, 1, 1)


# --- laws --------------------------------------------------------------------------------------------------

SECONDS = st.one_of(st.just(0.0), st.floats(0, 10), st.floats(0, 1e300), st.just(5e-324))


@settings(deadline=None)
@given(
    steps=st.lists(st.tuples(SECONDS, SECONDS, st.integers(0, 50), st.integers(0, 50)), max_size=120),
    limits=st.lists(st.floats(1, 1e6), min_size=3, max_size=3).map(sorted),
    settle_steps=st.integers(0, 12),
    window_steps=st.integers(1, 12),
)
def test_whatever_is_observed_the_factor_stays_in_bounds_and_settles_between_changes(
    steps, limits, settle_steps, window_steps
):
    low, initial, high = limits
    controller = ElasticController(
        ElasticOptions(high, low, initial, settle_steps=settle_steps, window_steps=window_steps)
    )
    for step in steps:
        before = controller.factor
        after = controller.observe(*step)
        assert math.isfinite(after)
        assert low <= after <= high
        assert after == controller.factor
        assert (after != before) == (controller.trace[-1].step == controller._steps)
    changes = [change.step for change in controller.trace]
    assert all(later - sooner > settle_steps for sooner, later in itertools.pairwise(changes))
