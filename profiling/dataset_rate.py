"""How fast a dataset is on its own, with nothing behind it that could make it wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from echoing.checks import check_number


@dataclass(frozen=True)
class DatasetRate:
    """A measured rate.

    Attributes:
        elements: elements taken in the measured span.
        seconds: the measured span.
    """

    elements: int
    seconds: float

    @property
    def elements_per_second(self) -> float | None:
        """Elements a second, or None where nothing could be measured."""
        return self.elements / self.seconds if self.elements and self.seconds > 0 else None


def measure_dataset_rate(
    dataset: Any,
    seconds: float,
    warmup_seconds: float = 1.0,
    clock: Callable[[], float] = time.monotonic,
) -> DatasetRate:
    """Takes elements from a dataset as fast as it gives them.

    The first element and everything within the warm-up are left out. A dataset that ends early gives what it
    has; repeat it for a longer measurement.

    Args:
        dataset: a `tf.data.Dataset`; its elements are dropped.
        seconds: time to measure.
        warmup_seconds: time to leave out before it.
        clock: monotonic seconds.

    Raises:
        OptionError: a time that is not positive.
    """
    check_number("seconds", seconds, minimum=0, exclusive_minimum=True)
    check_number("warmup_seconds", warmup_seconds, minimum=0)
    begun = clock()
    measured_from: float | None = None
    elements = 0
    now = begun
    for _ in dataset:
        now = clock()
        if measured_from is None:
            if now - begun >= warmup_seconds:
                measured_from = now
            continue
        elements += 1
        if now - measured_from >= seconds:
            break
    return DatasetRate(elements, 0.0 if measured_from is None else now - measured_from)
