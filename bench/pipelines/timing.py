"""How long the parts of a comparison take, and how long its processes are waited for."""

from __future__ import annotations

from dataclasses import dataclass

from echoing.checks import check_number


@dataclass(frozen=True)
class Timing:
    """Times of a comparison, in seconds.

    Attributes:
        measured_seconds: length of each measurement.
        warm_up_seconds: from the first batch of a pipeline until it counts as started: tf.data's tuning of
            parallelism settles in this time.
        settle_seconds: taken before each measurement, and in no rate: long enough to use up the batches that
            were ready when the pipeline was stopped, and to come back to its pace.
        start_patience_seconds: within these a pipeline must have started: imports, where its library has a
            format of its own the conversion of the data, and the warm-up.
        answer_patience_seconds: a measurement is given up when it takes so much longer than
            `ANSWER_PATIENCE_FACTOR` times what it should.
        stop_patience_seconds: given to a process to end by itself before it is killed.

    Raises:
        OptionError: a time below zero, or no measured time.
    """

    measured_seconds: float = 4.0
    warm_up_seconds: float = 3.0
    settle_seconds: float = 1.0
    start_patience_seconds: float = 600.0
    answer_patience_seconds: float = 60.0
    stop_patience_seconds: float = 1.0

    def __post_init__(self) -> None:
        check_number("measured_seconds", self.measured_seconds, 0.0, exclusive_minimum=True)
        for name in (
            "warm_up_seconds",
            "settle_seconds",
            "start_patience_seconds",
            "answer_patience_seconds",
            "stop_patience_seconds",
        ):
            check_number(name, getattr(self, name), 0.0)

    @property
    def answer_seconds(self) -> float:
        """The longest that a measurement is waited for."""
        expected = self.settle_seconds + self.measured_seconds
        return self.answer_patience_seconds + ANSWER_PATIENCE_FACTOR * expected


ANSWER_PATIENCE_FACTOR = 10.0
"""Batches that are slow to come may stretch a measurement: it ends with the first one after its time."""
