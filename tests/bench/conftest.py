"""Results of runs built by hand: nothing here was measured, every figure follows from the arguments."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from bench.reporters.charts import Chart, draw_charts
from bench.result import Counts, Phase, Prediction, RunResult, Steps, Throughput


def build_phase(
    steps: int,
    busy_seconds: float,
    wait_seconds: float,
    batch_size: int = 8,
    fresh_share: float = 1.0,
    warm_up_steps: int = 2,
    first_wait_seconds: float = 0.5,
    verdict: str | None = "host-bound",
    losses: bool = False,
    skipped_records: int = 0,
) -> Phase:
    """Returns a phase of equal steps, but for the first wait."""
    columns = Steps()
    now = 0.0
    arrivals: list[tuple[int, list[float]]] = []
    measured = max(0, steps - warm_up_steps)
    # As a run does it: eight steps in the middle of the measured ones.
    first_recorded = warm_up_steps + max(0, measured - 8) // 2
    for step in range(steps):
        wait = first_wait_seconds if step == 0 else wait_seconds
        fresh = round(batch_size * fresh_share)
        if first_recorded <= step < first_recorded + 8:
            span = wait + busy_seconds
            arrivals.append((step, [now + span * (i + 0.5) / fresh for i in range(fresh)]))
        columns.wait_seconds.append(wait)
        columns.start_seconds.append(now + wait)
        columns.end_seconds.append(now + wait + busy_seconds)
        columns.transfer_seconds.append(busy_seconds / 8)
        columns.fresh_examples.append(fresh)
        columns.trained_examples.append(batch_size)
        columns.warm_up.append(step < warm_up_steps)
        columns.loss.append(7.0 - 0.1 * step if losses else None)
        now += wait + busy_seconds
    step_seconds = wait_seconds + busy_seconds
    fresh_total, trained_total = sum(columns.fresh_examples), steps * batch_size
    return Phase(
        verdict=verdict if measured else None,
        accelerator_utilization=busy_seconds / step_seconds if measured else None,
        counts=Counts(
            steps=steps,
            fresh_examples=fresh_total,
            repeated_examples=trained_total - fresh_total,
            trained_examples=trained_total,
            skipped_records=skipped_records,
            measured_steps=measured,
        ),
        throughput=Throughput(
            fresh_examples_per_second=round(batch_size * fresh_share) / step_seconds if measured else None,
            trained_examples_per_second=batch_size / step_seconds if measured else None,
            measured_seconds=measured * step_seconds,
            warm_up_steps=min(steps, warm_up_steps),
        ),
        steps=columns,
        upstream_arrivals_seconds=arrivals,
    )


def build_result(phase: Phase, baseline: Phase | None = None, **changes: Any) -> RunResult:
    """Returns a complete run with echo factor 2 on an emulated device of 0.1 s a step of 8 examples."""
    measured = phase.throughput.trained_examples_per_second
    predicted = None if measured is None else measured * 1.05
    values: dict[str, Any] = {
        "phase": phase,
        "baseline": baseline,
        "complete": True,
        "interrupted_by": "",
        "verdict_text": (
            "Host-bound: the accelerator waits for data. The echo fills part of the idle time with repeats; "
            "the fresh rate is set by decoding and does not rise."
        ),
        "warnings": [],
        "echo": {"factor": 2, "insert_point": "after_augment", "shuffle_buffer_size": 1024},
        "accelerator": {
            "name": "tpu-v2-8",
            "kind": "emulated",
            "emulated": True,
            "count": 1,
            "model": "Inception v3",
            "step_seconds": 0.1,
            "batch_size": 8,
            "provenance": "step time of a preset, scaled to the batch",
        },
        "data": {
            "data_dir": "/data/generated",
            "split": "train",
            "shards": 8,
            "records": 1024,
            "record_bytes": 110_000,
            "generated": True,
            "skipped_records": 0,
        },
        "config": {
            "steps": 30,
            "batch_size": 8,
            "echo_factor": 2,
            "insert_point": "after_augment",
            "seed": 0,
        },
        "environment": {
            "pipebench": "0.1.0",
            "tensorflow": "2.21.0",
            "python": "3.11.7",
            "processor": "a processor",
            "cores": 2,
            "memory_bytes": 8_000_000_000,
        },
        "command": "pipebench run --echo-factor 2 --insert-point after_augment --seed 0",
        "created_at": "2026-01-02T03:04:05+00:00",
        "prediction": None
        if baseline is None
        else Prediction(
            predicted, measured, None if measured is None else 0.05, "lower of host and device rate"
        ),
    }
    return RunResult(**(values | changes))


@pytest.fixture
def host_bound() -> RunResult:
    """Echo factor 2 halves the waiting, and the device still waits: 30 steps and a baseline of 12."""
    return build_result(
        phase=build_phase(30, busy_seconds=0.1, wait_seconds=0.15, fresh_share=0.5),
        baseline=build_phase(12, busy_seconds=0.1, wait_seconds=0.4),
        warnings=["Only 2 CPU cores are visible: other work on this machine moves the figures."],
    )


@pytest.fixture
def device_bound() -> RunResult:
    """The device hardly waits, without a baseline and without echo."""
    return build_result(
        phase=build_phase(20, busy_seconds=0.1, wait_seconds=0.001, verdict="device-bound"),
        echo={"factor": 1, "insert_point": "after_augment", "shuffle_buffer_size": 0},
        verdict_text="Device-bound: the host delivers faster than the device trains.",
    )


@pytest.fixture
def interrupted() -> RunResult:
    """Ctrl-C during warm-up: one step was finished, none was measured."""
    return build_result(
        phase=build_phase(1, busy_seconds=0.1, wait_seconds=0.15),
        complete=False,
        interrupted_by="Ctrl-C",
        verdict_text="",
    )


@pytest.fixture
def no_step() -> RunResult:
    """Ctrl-C before the first step ended."""
    return build_result(
        phase=build_phase(0, busy_seconds=0.1, wait_seconds=0.1),
        complete=False,
        interrupted_by="Ctrl-C",
        verdict_text="",
    )


@pytest.fixture
def single_step() -> RunResult:
    """One measured step after one warm-up step."""
    return build_result(phase=build_phase(2, busy_seconds=0.1, wait_seconds=0.15, warm_up_steps=1))


@pytest.fixture
def long_run() -> RunResult:
    """5,000 steps."""
    return build_result(phase=build_phase(5000, busy_seconds=0.1, wait_seconds=0.15, fresh_share=0.5))


@pytest.fixture
def real_training() -> RunResult:
    """A real device: no preset step time, losses."""
    return build_result(
        phase=build_phase(25, 0.3, 0.02, fresh_share=0.5, verdict="moderately host-bound", losses=True),
        baseline=build_phase(10, busy_seconds=0.3, wait_seconds=0.2, losses=True),
        accelerator={
            "name": "GPU",
            "kind": "gpu",
            "emulated": False,
            "count": 1,
            "model": "Inception v3",
            "step_seconds": None,
            "batch_size": 8,
            "provenance": "",
        },
    )


@pytest.fixture
def make_result() -> Callable[..., RunResult]:
    """Returns `build_result`."""
    return build_result


@pytest.fixture
def make_phase() -> Callable[..., Phase]:
    """Returns `build_phase`."""
    return build_phase


@pytest.fixture
def replace() -> Callable[..., Any]:
    """Returns `dataclasses.replace`."""
    return dataclasses.replace


_DRAWN: dict[str, list[Chart]] = {}


@pytest.fixture
def draw_once() -> Callable[[RunResult], list[Chart]]:
    """Returns `draw_charts` that draws equal results once a session: a chart takes about a second."""

    def draw(result: RunResult) -> list[Chart]:
        key = result.to_json()
        if key not in _DRAWN:
            _DRAWN[key] = draw_charts(result)
        return list(_DRAWN[key])

    return draw


@pytest.fixture
def charts_drawn_once(monkeypatch: pytest.MonkeyPatch, draw_once: Callable[[RunResult], list[Chart]]) -> None:
    """Lets run folders be written with `draw_once`."""
    monkeypatch.setattr("bench.reporters.folder.draw_charts", draw_once)
