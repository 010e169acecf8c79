"""The rate of a dataset alone, on a scripted clock."""

from __future__ import annotations

import pytest

from echoing.errors import OptionError
from profiling.dataset_rate import measure_dataset_rate


class Clock:
    """A clock that only elements move."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def elements(self, seconds: list[float]):
        for wait in seconds:
            self.now += wait
            yield None


def rate(waits: list[float], **options):
    clock = Clock()
    return measure_dataset_rate(clock.elements(waits), clock=clock, **options)


def test_warm_up_is_left_out_element_and_time_alike():
    # A second of start-up, then 0.5 s each: the warm-up ends with the first element.
    result = rate([1.0] + [0.5] * 100, seconds=5.0, warmup_seconds=1.0)
    assert (result.elements, result.seconds) == (10, 5.0)
    assert result.elements_per_second == pytest.approx(2.0)


def test_dataset_that_ends_early_gives_what_it_has():
    result = rate([1.0, 0.25, 0.25], seconds=60.0, warmup_seconds=0.5)
    assert result.elements_per_second == pytest.approx(4.0)


@pytest.mark.parametrize("seconds", [[], [0.1], [0.1, 0.1]])
def test_dataset_that_ends_in_the_warm_up_gives_no_rate(seconds):
    assert rate(seconds, seconds=1.0, warmup_seconds=10.0).elements_per_second is None


def test_clock_that_stands_still_gives_no_rate():
    def still() -> float:
        return 1.0

    assert measure_dataset_rate([1, 2, 3], 1.0, 0.0, clock=still).elements_per_second is None


@pytest.mark.parametrize("options", [{"seconds": 0}, {"seconds": 1, "warmup_seconds": -1}])
def test_bad_times_are_refused(options):
    with pytest.raises(OptionError):
        measure_dataset_rate([], **options)
