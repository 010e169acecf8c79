"""Chart: the elastic echo factor over time, and the waiting that it follows."""

from __future__ import annotations

from matplotlib.figure import Figure

from bench.formatting import format_value
from bench.reporters.chart_canvas import BUSY, REPEATED, WAITING, NothingToDraw, legend_below, new_figure
from bench.result import Phase, RunResult

WINDOW_STEPS = 8
"""Steps over which the used factor and the waiting are averaged: one step alone says little of either."""


def used_factors(phase: Phase) -> list[float | None]:
    """Returns trained / fresh examples of the last `WINDOW_STEPS` steps, for each; None if none was fresh."""
    steps = phase.steps
    factors: list[float | None] = []
    for end in range(1, len(steps.trained_examples) + 1):
        window = slice(max(0, end - WINDOW_STEPS), end)
        fresh = sum(steps.fresh_examples[window])
        factors.append(sum(steps.trained_examples[window]) / fresh if fresh else None)
    return factors


def waiting_shares(phase: Phase) -> list[float]:
    """Returns the share of time that the device waited over the last `WINDOW_STEPS` steps, for each step."""
    steps = phase.steps
    shares = []
    for end in range(1, len(steps.wait_seconds) + 1):
        first = max(0, end - WINDOW_STEPS)
        waited = sum(steps.wait_seconds[first:end])
        busy = sum(steps.end_seconds[i] - steps.start_seconds[i] for i in range(first, end))
        shares.append(waited / (waited + busy) if waited + busy else 0.0)
    return shares


def echo_factor_figure(result: RunResult) -> Figure:
    """Draws the factor in force, the factor used and, below, the device's waiting.

    Raises:
        NothingToDraw: no step was made.
    """
    phase = result.phase
    ends = phase.steps.end_seconds
    if not ends:
        raise NothingToDraw("No step was made, so there is no factor to show.")
    mean = result.echo.get("mean_factor")
    figure = new_figure(4.2, f"The factor used is {format_value(mean, 'number')} on average")
    factor_axes, waiting_axes = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    known = [(end, used) for end, used in zip(ends, used_factors(phase), strict=True) if used is not None]
    handles = factor_axes.plot(
        [end for end, _ in known], [used for _, used in known], color=BUSY, label="used (mean of 8 steps)"
    )
    trace = result.echo.get("trace") or []
    if trace:
        # A change is made after its step and holds until the next one.
        times = [0.0 if step == 0 else ends[min(step, len(ends)) - 1] for step, _ in trace] + [ends[-1]]
        values = [factor for _, factor in trace] + [trace[-1][1]]
        handles += factor_axes.step(
            times, values, where="post", color=REPEATED, linewidth=2.2, label="in force at the echo"
        )
    factor_axes.set_ylabel("echo factor")
    factor_axes.set_ylim(bottom=0.9)
    factor_axes.grid(axis="y")
    shares = [100 * share for share in waiting_shares(phase)]
    handles.append(
        waiting_axes.fill_between(
            ends, shares, color=WAITING, linewidth=0, label="device waits (mean of 8 steps)"
        )
    )
    waiting_axes.set_ylim(0, 100)
    waiting_axes.set_ylabel("waits (%)")
    waiting_axes.set_xlabel("seconds since the begin of the run")
    waiting_axes.grid(axis="y")
    legend_below(figure, handles)
    return figure
