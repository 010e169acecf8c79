"""When an emulated device works and when it waits: arithmetic only, without a clock."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Slot:
    """The place of one step on the device's timeline, in seconds on the caller's clock.

    Attributes:
        wait_seconds: idle time before the step.
        start_seconds: begin of the step.
        end_seconds: end of the step.
    """

    wait_seconds: float
    start_seconds: float
    end_seconds: float


class DeviceTimeline:
    """Schedules steps on a device that does one at a time, in order of arrival.

    A step starts when the step before has ended and its batch has arrived, whichever is later. Because ends
    come from this schedule and not from a clock read after a sleep, the overshoot of sleeps does not add up.

    Args:
        start_seconds: when the device became ready; waiting for the first batch counts from here.
    """

    def __init__(self, start_seconds: float) -> None:
        self._free_seconds = start_seconds

    def schedule(self, arrival_seconds: float, duration_seconds: float) -> Slot:
        """Places the next step.

        Args:
            arrival_seconds: when its batch lay in the device's memory.
            duration_seconds: how long the device works on it, >= 0.
        """
        start = max(self._free_seconds, arrival_seconds)
        slot = Slot(start - self._free_seconds, start, start + duration_seconds)
        self._free_seconds = slot.end_seconds
        return slot
