"""Host-bound or device-bound: the verdict from the share of time that the device waits for data."""

from __future__ import annotations

import enum

MODERATE_WAITING = 0.05
"""Share of step time waiting for input from which a run counts as moderately host-bound."""
HIGH_WAITING = 0.20
"""Share from which it counts as host-bound. Both thresholds are those of the TensorFlow profiler's
input-pipeline analyser (XProf): below 5 % not input-bound, 5 to 20 % moderately, from 20 % on highly."""


class Verdict(enum.Enum):
    """Which side the training step waits for."""

    HOST_BOUND = "host-bound"
    MODERATELY_HOST_BOUND = "moderately host-bound"
    DEVICE_BOUND = "device-bound"


def judge(accelerator_utilization: float) -> Verdict:
    """Returns the verdict.

    Args:
        accelerator_utilization: busy / (busy + waiting for data), 0 to 1. Nothing else decides: work that
            hides outside named operations still makes the device wait.
    """
    waiting = 1.0 - accelerator_utilization
    if waiting >= HIGH_WAITING:
        return Verdict.HOST_BOUND
    if waiting >= MODERATE_WAITING:
        return Verdict.MODERATELY_HOST_BOUND
    return Verdict.DEVICE_BOUND
