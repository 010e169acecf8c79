"""The verdict from the share of waiting."""

from __future__ import annotations

import pytest

from profiling.verdict import judge


@pytest.mark.parametrize(
    ("utilization", "verdict"),
    [
        (1.0, "device-bound"),
        (0.96, "device-bound"),
        (0.94, "moderately host-bound"),
        (0.81, "moderately host-bound"),
        (0.79, "host-bound"),
        (0.05, "host-bound"),  # MP-09: 5 ms of device in a step of 100 ms
        (0.0, "host-bound"),
    ],
)
def test_verdict_changes_at_5_and_20_percent_waiting(utilization, verdict):
    assert judge(utilization).value == verdict
