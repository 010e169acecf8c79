"""Runs one phase: a dataset through a trainer until its limit, measured step by step."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from contextlib import closing
from typing import Any

from bench.elastic_echo import ElasticEcho
from bench.result import Counts, Phase, Steps, Throughput
from bench.run_options import RunLimit
from echoing.freshness import FreshnessTracker, count_fresh
from pipeline.element import EXAMPLE_ID, READY_SECONDS, REPEAT_INDEX
from pipeline.input_pipeline import InputPipeline
from profiling.step_meter import StepMeter, WarmUp
from profiling.verdict import judge
from trainer.step import StepRecord, Trainer

TIMELINE_STEPS = 8
"""Steps of the timeline in the report: enough to see the rhythm, few enough to read."""

MIN_TRACKED_EXAMPLES = 100_000
TRACKED_BUFFERS = 15
"""How far back uses of an example are remembered: so many shuffle buffers, and at least so many examples.
15 buffers back, almost no use is still to come (see `FreshnessTracker`)."""

MAX_ARRIVALS = 500_000
"""Upstream time stamps kept while running (4 MB): the newest ones, which the timeline is drawn from."""


class PhaseRunner:
    """Feeds a trainer from a pipeline and keeps what was measured, also when it is interrupted.

    `on_step`, where set, is called after every step, to show progress.

    Args:
        pipeline: the pipeline; it must keep its tags.
        trainer: what eats the batches.
        limit: when to stop; an epochs limit is the pipeline's own.
        warm_up: what the rates leave out.
        elastic: the elastic echo of the pipeline; None where the factor is a number.
        max_seconds: measured time after which the phase ends even before its limit; None for no such bound.
        clock: monotonic seconds.
        wall_clock: seconds since the Unix epoch, to place the pipeline's stamps on the monotonic clock.
    """

    def __init__(
        self,
        pipeline: InputPipeline,
        trainer: Trainer,
        limit: RunLimit,
        warm_up: WarmUp,
        elastic: ElasticEcho | None = None,
        max_seconds: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._pipeline = pipeline
        self._trainer = trainer
        self._limit = limit
        self._elastic = elastic
        self._max_seconds = max_seconds
        self._clock = clock
        self._wall_clock = wall_clock
        self._start_seconds = 0.0
        self._steps = Steps()
        self._arrivals_seconds: deque[float] = deque(maxlen=MAX_ARRIVALS)
        self.meter = StepMeter(warm_up)
        self._tracker = FreshnessTracker(
            max(MIN_TRACKED_EXAMPLES, TRACKED_BUFFERS * _shuffled_examples(pipeline)),
            pipeline.source.records,
        )
        self.on_step: Callable[[], None] | None = None

    def run(self) -> None:
        """Runs to the limit or to the end of the data.

        Raises:
            Exception: whatever the pipeline or the trainer raises; `phase` still gives what was measured.
        """
        dataset = self._pipeline() if self._elastic is None else self._elastic.dataset()
        self._start_seconds = self._clock()
        stamp_offset_seconds = self._wall_clock() - self._start_seconds
        with closing(self._trainer.steps(dataset)) as records:  # type: ignore[type-var]
            for record in records:
                self._add(record, stamp_offset_seconds)
                if self.on_step is not None:
                    self.on_step()
                if self._is_done():
                    break

    @property
    def progress(self) -> float:
        """Share of the phase that is done, 0 to 1; 0 where its length is not known."""
        limit, meter = self._limit, self.meter
        if limit.seconds is not None:
            return min(1.0, meter.measured_seconds / limit.seconds)
        total = limit.steps
        if limit.epochs is not None:
            total = self._pipeline.steps_in(limit.epochs)
        return min(1.0, meter.steps / total) if total else 0.0

    def phase(self) -> Phase:
        """Returns what was measured so far."""
        meter = self.meter
        utilization = meter.accelerator_utilization
        counter = self._pipeline.skip_counter
        return Phase(
            verdict=None if utilization is None else judge(utilization).value,
            accelerator_utilization=utilization,
            counts=Counts(
                steps=meter.steps,
                fresh_examples=meter.fresh_examples,
                repeated_examples=meter.trained_examples - meter.fresh_examples,
                trained_examples=meter.trained_examples,
                skipped_records=0 if counter is None else counter.count,
                measured_steps=meter.measured_steps,
            ),
            throughput=Throughput(
                fresh_examples_per_second=meter.fresh_examples_per_second,
                trained_examples_per_second=meter.trained_examples_per_second,
                measured_seconds=meter.measured_seconds,
                warm_up_steps=meter.warm_up_steps,
            ),
            steps=self._steps,
            upstream_arrivals_seconds=self._timeline(),
            freshness=self._tracker.report().to_dict(),
        )

    def _add(self, record: StepRecord, stamp_offset_seconds: float) -> None:
        # A step on a batch that the device held is a repeat of all its examples.
        repeat_index = record.tags[REPEAT_INDEX] + record.device_repeat
        fresh = count_fresh(repeat_index)
        self._tracker.update(record.tags[EXAMPLE_ID], repeat_index)
        end_seconds = record.end_seconds - self._start_seconds
        is_warm_up = self.meter.add(
            end_seconds=end_seconds,
            wait_seconds=record.wait_seconds,
            busy_seconds=record.busy_seconds,
            trained=record.examples,
            fresh=fresh,
        )
        if self._elastic is not None:
            self._elastic.observe(record.wait_seconds, record.busy_seconds, fresh, record.examples)
        steps = self._steps
        steps.wait_seconds.append(record.wait_seconds)
        steps.start_seconds.append(record.start_seconds - self._start_seconds)
        steps.end_seconds.append(end_seconds)
        steps.transfer_seconds.append(record.transfer_seconds)
        steps.fresh_examples.append(fresh)
        steps.trained_examples.append(record.examples)
        steps.warm_up.append(is_warm_up)
        steps.loss.append(record.loss)
        stamps: Any = record.tags.get(READY_SECONDS)
        if stamps is not None:
            ready = stamps[repeat_index == 0] - stamp_offset_seconds - self._start_seconds
            self._arrivals_seconds.extend(ready.tolist())

    def _is_done(self) -> bool:
        limit, meter = self._limit, self.meter
        if limit.steps is not None and meter.steps >= limit.steps:
            return True
        bounds = [seconds for seconds in (limit.seconds, self._max_seconds) if seconds is not None]
        if not bounds or not meter.measured_steps:
            return False
        return meter.measured_seconds >= min(bounds)

    def _timeline(self) -> list[tuple[int, list[float]]]:
        """Returns the upstream arrivals during some steps in the middle of the measured part.

        Not the last steps: what arrived during those is partly still in the shuffle buffer, and would be
        missing from the picture.
        """
        warm_up = self.meter.warm_up_steps
        measured = self.meter.measured_steps
        if not measured or not self._arrivals_seconds:
            return []
        shown = min(TIMELINE_STEPS, measured)
        first = warm_up + (measured - shown) // 2
        arrivals = sorted(self._arrivals_seconds)
        ends = self._steps.end_seconds
        timeline = []
        for index in range(first, first + shown):
            since = ends[index - 1] if index else 0.0
            timeline.append((index, [time for time in arrivals if since < time <= ends[index]]))
        return timeline


def _shuffled_examples(pipeline: InputPipeline) -> int:
    """Returns how many examples the largest shuffle buffer holds."""
    config = pipeline.config
    return max(pipeline.example_shuffle_size, config.batch_shuffle_buffer_size * config.batch_size)
