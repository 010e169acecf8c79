"""Places the time stamps of TensorFlow's wall clock on Python's monotonic clock."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

_logger = logging.getLogger(__name__)

SHIFT_WARNING_SECONDS = 0.005
"""A change of the offset between two samples that is worth a warning. Slewing by NTP moves a clock by at most
500 microseconds a second, so within a loop of seconds only a clock that was set exceeds this."""


@dataclass(frozen=True)
class ClockSample:
    """One moment on both clocks, in seconds."""

    wall_seconds: float
    monotonic_seconds: float

    @classmethod
    def take(
        cls, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic
    ) -> ClockSample:
        """Reads both clocks; the monotonic one twice, so that the wall clock is read in between."""
        before = monotonic()
        now = wall()
        return cls(now, (before + monotonic()) / 2)

    @property
    def offset_seconds(self) -> float:
        """What to add to the wall clock to get the monotonic one."""
        return self.monotonic_seconds - self.wall_seconds


class HostClock:
    """Converts wall-clock stamps taken between two samples; the results never run backwards.

    `tf.timestamp` reads the wall clock, which may be adjusted during a run. The offset is interpolated
    between a sample before the stamps and one after, so that slewing does no harm.

    Args:
        before: a sample from before the first stamp.
        after: a sample from after the last.
        earliest_seconds: no result is earlier than this time on the monotonic clock; None for no such limit.
    """

    def __init__(self, before: ClockSample, after: ClockSample, earliest_seconds: float | None) -> None:
        self._before, self._after = before, after
        self._latest_seconds = -math.inf if earliest_seconds is None else earliest_seconds
        shift = after.offset_seconds - before.offset_seconds
        if abs(shift) > SHIFT_WARNING_SECONDS:
            _logger.warning(
                "The system clock was set by %+.3f s while steps ran; the times of these steps are off by "
                "up to that much.",
                -shift,
            )

    def to_monotonic(self, wall_seconds: float) -> float:
        """Returns a stamp on the monotonic clock, in seconds, not before the result of the call before."""
        span = self._after.wall_seconds - self._before.wall_seconds
        share = (wall_seconds - self._before.wall_seconds) / span if span > 0 else 0.0
        share = min(max(share, 0.0), 1.0)
        offset = (1 - share) * self._before.offset_seconds + share * self._after.offset_seconds
        self._latest_seconds = max(self._latest_seconds, wall_seconds + offset)
        return self._latest_seconds
