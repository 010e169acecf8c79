"""Counts and rates of steps, on scripted times."""

from __future__ import annotations

import math

import pytest

from echoing.errors import OptionError
from profiling.step_meter import StepMeter, WarmUp


def measure(busy: list[float], batch: int, fresh: int | None = None, wait=0.0, **warm_up) -> StepMeter:
    meter = StepMeter(WarmUp(**warm_up))
    now = 0.0
    for seconds in busy:
        now += wait + seconds
        meter.add(now, wait, seconds, batch, batch if fresh is None else fresh)
    return meter


def test_first_step_is_counted_but_never_measured():  # MP-01
    meter = measure([30.0] + [0.5] * 9, batch=16)
    assert meter.trained_examples_per_second == pytest.approx(32.0)
    assert meter.trained_examples == 160
    assert (meter.steps, meter.warm_up_steps, meter.measured_steps) == (10, 1, 9)


def test_a_single_step_gives_counts_and_no_rates():  # MP-01, MP-10
    meter = measure([30.0], batch=16)
    assert meter.trained_examples == 16
    assert meter.trained_examples_per_second is None
    assert meter.fresh_examples_per_second is None
    assert meter.accelerator_utilization is None


def test_no_step_gives_nothing():
    meter = StepMeter(WarmUp())
    assert (meter.steps, meter.measured_steps, meter.measured_seconds) == (0, 0, 0.0)
    assert meter.trained_examples_per_second is None


def test_rate_is_the_sum_over_the_sum_not_the_mean_of_rates():  # MP-03
    meter = measure([1.0] + [0.1] * 9 + [1.1], batch=32)
    assert meter.trained_examples_per_second == pytest.approx(160.0)


def test_clock_that_stands_still_gives_no_rate():  # MP-04
    meter = StepMeter(WarmUp())
    for _ in range(3):
        meter.add(end_seconds=5.0, wait_seconds=0.0, busy_seconds=0.0, trained=8, fresh=8)
    assert meter.trained_examples_per_second is None
    assert meter.accelerator_utilization is None
    assert meter.trained_examples == 24


def test_fresh_and_trained_rates_and_utilization_come_from_the_same_span():
    meter = measure([0.2] * 6, batch=10, fresh=5, wait=0.3)
    assert meter.trained_examples_per_second == pytest.approx(20.0)
    assert meter.fresh_examples_per_second == pytest.approx(10.0)
    assert meter.accelerator_utilization == pytest.approx(0.4)
    assert meter.measured_seconds == pytest.approx(2.5)


def test_warm_up_lasts_as_long_as_the_longer_of_steps_and_seconds():
    assert measure([1.0] * 6, 1, steps=3).warm_up_steps == 3
    assert measure([1.0] * 6, 1, steps=1, seconds=4.0).warm_up_steps == 4
    assert measure([1.0] * 6, 1, steps=5, seconds=2.0).warm_up_steps == 5
    assert not measure([1.0] * 2, 1, steps=3).is_warm


@pytest.mark.parametrize("options", [{"steps": 0}, {"seconds": -1.0}, {"seconds": math.nan}])
def test_bad_warm_up_is_refused(options):
    with pytest.raises(OptionError, match="warmup_"):
        WarmUp(**options)
