"""What a run found, in words and rows; page, screen and charts take it from here, so they cannot disagree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from bench.formatting import NOT_AVAILABLE, format_value, plural, printable
from bench.result import Phase, RunResult

MLPERF_NOTE = (
    "MLPerf: with an echo factor above 1 examples are used more than once per traversal of the data set, "
    "which the CLOSED division does not allow; such results belong in the OPEN division."
)


@dataclass(frozen=True)
class PhaseMeans:
    """Means over the measured steps of a phase, seconds a step; None without a measured step.

    Attributes:
        wait_seconds: device idle before the step.
        busy_seconds: device working on the step.
    """

    wait_seconds: float | None
    busy_seconds: float | None


@dataclass(frozen=True)
class KeyFigure:
    """One row of the table of key figures, ready to show.

    Attributes:
        name: what the figure is.
        run: the run itself.
        baseline: the same without echo, or `n/a`.
        ratio: run / baseline, `n/a` where it cannot be told, empty where it would mean nothing.
    """

    name: str
    run: str
    baseline: str
    ratio: str


def phase_means(phase: Phase) -> PhaseMeans:
    """Returns the means over the steps that are not warm-up."""
    steps = phase.steps
    measured = [index for index, warm_up in enumerate(steps.warm_up) if not warm_up]
    if not measured:
        return PhaseMeans(None, None)
    return PhaseMeans(
        wait_seconds=fmean(steps.wait_seconds[index] for index in measured),
        busy_seconds=fmean(steps.end_seconds[index] - steps.start_seconds[index] for index in measured),
    )


def number_of(mapping: dict[str, Any], key: str) -> float | None:
    """Returns a number from the free part of a result, or None if there is none."""
    value = mapping.get(key)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def has_echo(result: RunResult) -> bool:
    """Whether the run repeats examples."""
    factor = number_of(result.echo, "factor")
    return result.echo.get("factor") == "elastic" or (factor is not None and factor > 1)


def echo_label(result: RunResult) -> str:
    """Returns `echo 2 after_augment`, or `no echo`."""
    if not has_echo(result):
        return "no echo"
    return printable(f"echo {result.echo.get('factor')} {result.echo.get('insert_point', '')}").strip()


def device_ceiling(result: RunResult) -> float | None:
    """Returns the examples/s of a device that never waits: batch size / step time; None if not known."""
    batch_size = number_of(result.accelerator, "batch_size")
    step_seconds = number_of(result.accelerator, "step_seconds")
    return batch_size / step_seconds if batch_size and step_seconds else None


def headline(result: RunResult) -> str:
    """Returns the verdict in a few words."""
    verdict = result.phase.verdict
    if verdict is None:
        return "No verdict"
    words = verdict[:1].upper() + verdict[1:]
    if not has_echo(result):
        return words
    return f"{words} with echo" if verdict == "device-bound" else f"{words}, even with echo"


def reason(result: RunResult) -> str:
    """Returns the one sentence that says why the verdict is what it is."""
    phase, baseline = result.phase, result.baseline
    if phase.accelerator_utilization is None:
        if phase.counts.steps == 0:
            return "No step was measured: none ended."
        return f"No step was measured: {plural(phase.counts.steps, 'step')} ended, all warm-up."
    text = f"The device waited for data {waiting(phase)} of the time"
    if baseline is None or baseline.accelerator_utilization is None:
        return text + "."
    text += f" ({waiting(baseline)} without echo)"
    if not has_echo(result):
        return text + "."
    trained = _ratio(
        phase.throughput.trained_examples_per_second, baseline.throughput.trained_examples_per_second
    )
    fresh = _ratio(phase.throughput.fresh_examples_per_second, baseline.throughput.fresh_examples_per_second)
    return f"{text}; {echo_label(result)} gave {trained} the trained rate at {fresh} the fresh rate."


def waiting(phase: Phase) -> str:
    """Returns the share of the time that the device waited for data, such as `52.0 %`."""
    utilization = phase.accelerator_utilization
    return format_value(None if utilization is None else 1 - utilization, "percent")


def notices(result: RunResult) -> list[str]:
    """Returns what must be read before the figures: incomplete, emulated."""
    found = []
    if not result.complete:
        cause = f" by {result.interrupted_by}" if result.interrupted_by else ""
        found.append(
            f"INCOMPLETE: interrupted{cause}. The figures cover what ended before: "
            f"{plural(result.phase.counts.steps, 'step')}."
        )
    if result.accelerator.get("emulated"):
        step = format_value(number_of(result.accelerator, "step_seconds"), "seconds")
        found.append(
            f"Emulated accelerator: nothing was trained. {result.accelerator.get('name', 'The device')} is "
            f"held {step} a step; the host pipeline is real."
        )
    return [printable(text) for text in found]


def prediction_sentence(result: RunResult) -> str:
    """Returns the prediction beside the measurement with its error, or an empty string."""
    prediction = result.prediction
    if prediction is None:
        return ""
    predicted = format_value(prediction.trained_examples_per_second, "examples/s")
    measured = format_value(prediction.measured_trained_examples_per_second, "examples/s")
    error = format_value(prediction.error, "signed percent")
    text = f"Predicted {predicted} trained, measured {measured}"
    text += f" (error {error})." if prediction.error is not None else "."
    return printable(f"{text} Basis: {prediction.basis.rstrip('.')}." if prediction.basis else text)


def pipeline_sentence(result: RunResult) -> str:
    """Returns the stages of the input pipeline in order, or an empty string where they are not known."""
    stages = result.data.get("stages")
    if not stages:
        return ""
    names = ", ".join(str(stage) for stage in stages)
    text = f"Input pipeline: {names}; {result.data.get('image_dtype')} images"
    if "decode" in stages and result.config.get("preprocess") == "fused":
        text += ". Whole images are decoded, because the echo stands between decode and augment"
    return printable(text + ".")


def method_sentences(result: RunResult) -> list[str]:
    """Returns how the figures were measured."""
    warm_up = plural(result.phase.throughput.warm_up_steps, "warm-up step")
    if result.baseline is not None:
        warm_up += f" of the run and {result.baseline.throughput.warm_up_steps:,} of the baseline"
    pipeline = pipeline_sentence(result)
    return [
        *([pipeline] if pipeline else []),
        f"Rates, AU and means leave out {warm_up}; the first step never counts. "
        "Counts are exact and include every step.",
        "A rate is the sum of examples over the span of the measured steps, not a mean of rates.",
        "Times come from a monotonic clock on the device's side: waiting runs from the end of one step to "
        "the begin of the next.",
    ]


def key_figures(result: RunResult) -> list[KeyFigure]:
    """Returns the rows of the table: run, without echo, ratio."""
    rows = [
        _row(result, "Trained examples/s", "examples/s", lambda p: p.throughput.trained_examples_per_second),
        _row(result, "Fresh examples/s", "examples/s", lambda p: p.throughput.fresh_examples_per_second),
        _row(result, "Accelerator utilisation (AU)", "percent", lambda p: p.accelerator_utilization),
        _row(result, "Wait per step", "seconds", lambda p: phase_means(p).wait_seconds),
        _row(result, "Step time (busy)", "seconds", lambda p: phase_means(p).busy_seconds),
        _row(result, "Measured steps", "count", lambda p: p.counts.measured_steps, compare=False),
        _row(result, "All steps", "count", lambda p: p.counts.steps, compare=False),
        _row(result, "Trained examples in all", "count", lambda p: p.counts.trained_examples, compare=False),
        _row(result, "Fresh examples in all", "count", lambda p: p.counts.fresh_examples, compare=False),
        _row(result, "Repeats in all", "count", lambda p: p.counts.repeated_examples, compare=False),
        _row(result, "Skipped records", "count", lambda p: p.counts.skipped_records, compare=False),
    ]
    if result.phase.freshness is not None:
        rows += [
            _row(result, "Duplicates within a batch", "number", _duplicates_per_batch, compare=False),
            _row(result, "Distance between uses", "count", _median_distance, compare=False),
            _row(result, "Effective epochs", "number", _effective_epochs, compare=False),
        ]
    phases = [phase for phase in (result.phase, result.baseline) if phase is not None]
    if any(loss is not None for phase in phases for loss in phase.steps.loss):
        rows.append(_row(result, "Loss of the first step", "number", lambda p: _loss(p, 0), compare=False))
        rows.append(_row(result, "Loss of the last step", "number", lambda p: _loss(p, -1), compare=False))
    return rows


def _row(
    result: RunResult, name: str, unit: str, figure: Callable[[Phase], float | None], compare: bool = True
) -> KeyFigure:
    run = figure(result.phase)
    baseline = None if result.baseline is None else figure(result.baseline)
    return KeyFigure(
        name=name,
        run=format_value(run, unit),
        baseline=format_value(baseline, unit),
        ratio=_ratio(run, baseline) if compare else "",
    )


def _ratio(run: float | None, baseline: float | None) -> str:
    return format_value(run / baseline, "ratio") if run is not None and baseline else NOT_AVAILABLE


def _duplicates_per_batch(phase: Phase) -> float | None:
    """Further copies of an example that is in the batch already, on average."""
    report = phase.freshness
    return report["duplicates_within_batches"] / report["batches"] if report and report["batches"] else None


def _median_distance(phase: Phase) -> float | None:
    return phase.freshness["median_distance"] if phase.freshness else None


def _effective_epochs(phase: Phase) -> float | None:
    return phase.freshness["effective_epochs"] if phase.freshness else None


def _loss(phase: Phase, index: int) -> float | None:
    return phase.steps.loss[index] if phase.steps.loss else None
