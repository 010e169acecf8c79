from __future__ import annotations

import logging

import pytest

from trainer.host_clock import ClockSample, HostClock


def test_sample_takes_the_middle_of_two_monotonic_readings() -> None:
    readings = iter([5.0, 6.0])
    sample = ClockSample.take(wall=lambda: 100.0, monotonic=lambda: next(readings))
    assert sample == ClockSample(wall_seconds=100.0, monotonic_seconds=5.5)


def test_steady_clocks_differ_by_a_constant() -> None:
    clock = HostClock(ClockSample(100, 10), ClockSample(104, 14), None)
    assert [clock.to_monotonic(at) for at in (101, 102, 103.5)] == [11, 12, 13.5]


def test_drift_between_the_samples_is_interpolated() -> None:
    # The wall clock ran twice as fast as it should.
    clock = HostClock(ClockSample(100, 10), ClockSample(104, 12), None)
    assert [clock.to_monotonic(at) for at in (101, 102, 104)] == [10.5, 11, 12]


def test_clock_that_was_set_back_is_told_and_time_never_runs_backwards(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        clock = HostClock(ClockSample(100, 10), ClockSample(101, 12), None)
    assert "set by -1.000 s" in caplog.text
    assert clock.to_monotonic(101.5) == 12.5
    assert clock.to_monotonic(100.5) == 12.5


def test_steady_clock_is_not_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        HostClock(ClockSample(100, 10), ClockSample(101, 11.001), None)
    assert caplog.text == ""


def test_result_is_not_before_the_earliest_time() -> None:
    clock = HostClock(ClockSample(100, 10), ClockSample(101, 11), earliest_seconds=10.5)
    assert clock.to_monotonic(100.25) == 10.5


def test_equal_samples_do_not_divide_by_zero() -> None:
    clock = HostClock(ClockSample(100, 10), ClockSample(100, 10), None)
    assert clock.to_monotonic(100) == 10
