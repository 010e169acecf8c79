"""The steps of a run as CSV: commas, point decimals, line feeds, whatever the locale says."""

from __future__ import annotations

from bench.result import Phase, RunResult

FILE_NAME = "steps.csv"

COLUMNS = (
    "step",
    "phase",
    "warm_up",
    "wait_seconds",
    "step_seconds",
    "transfer_seconds",
    "fresh_examples",
    "trained_examples",
    "loss",
)


def steps_csv(result: RunResult) -> str:
    r"""Returns the content of `steps.csv`.

    One line a step in the order of measurement, so the baseline comes first. `step` counts from 0 in each
    phase; `phase` is `baseline` or `run`; `warm_up` is `true` or `false`; `wait_seconds` is the device's idle
    time before the step, `step_seconds` its busy time, both to the nanosecond. A cell without a value is
    empty.
    """
    lines = [",".join(COLUMNS)]
    if result.baseline is not None:
        lines += _lines("baseline", result.baseline)
    lines += _lines("run", result.phase)
    return "\n".join(lines) + "\n"


def _lines(name: str, phase: Phase) -> list[str]:
    steps = phase.steps
    columns = zip(
        steps.warm_up,
        steps.wait_seconds,
        steps.start_seconds,
        steps.end_seconds,
        steps.transfer_seconds,
        steps.fresh_examples,
        steps.trained_examples,
        steps.loss,
        strict=True,
    )
    return [
        ",".join(
            [
                str(index),
                name,
                "true" if warm_up else "false",
                _seconds(wait),
                _seconds(end - start),
                _seconds(transfer),
                str(fresh),
                str(trained),
                "" if loss is None else repr(float(loss)),
            ]
        )
        for index, (warm_up, wait, start, end, transfer, fresh, trained, loss) in enumerate(columns)
    ]


def _seconds(value: float) -> str:
    # Nine places: a clock reads nanoseconds, and the difference of two readings carries rounding beyond them.
    # Neither `format` with `f` nor `repr` looks at the locale.
    return f"{round(value, 9) + 0.0:.9f}".rstrip("0").rstrip(".")  # + 0.0 turns -0 into 0
