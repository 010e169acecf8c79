"""Chart: some steps on a time axis, with the lanes of the upstream side, the transfer and the device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from bench.formatting import format_value
from bench.reporters.chart_canvas import (
    BUSY,
    FRESH,
    MUTED,
    TRANSFER,
    WAITING,
    NothingToDraw,
    legend_below,
    new_figure,
)
from bench.reporters.findings import echo_label
from bench.result import Phase, RunResult

SHOWN_STEPS = 8

MAX_TICKS = 300
"""More arrivals than these cannot be told apart at the width of a page; then their density is drawn."""

DENSITY_BINS = 180

DIGIT_SHARE = 0.0085
"""Share of the width of the axis that a digit of a step number takes."""

UPSTREAM, TRANSFERRING, DEVICE = 2.0, 1.0, 0.0
LANE_HEIGHT = 0.62

ALTERNATE_ALPHA = 0.55
"""Every other step is fainter in each lane, so that a step can be followed from lane to lane."""


@dataclass(frozen=True)
class Window:
    """The steps shown of one phase.

    Attributes:
        name: what the phase is.
        phase: the phase.
        steps: their numbers.
        begin_seconds: since the begin of the phase: the device starts to wait for the first of them.
        end_seconds: the device ends the last of them.
    """

    name: str
    phase: Phase
    steps: list[int]
    begin_seconds: float
    end_seconds: float

    @property
    def waiting_share(self) -> float:
        """Share of the window that the device waits."""
        span = self.end_seconds - self.begin_seconds
        wait = sum(self.phase.steps.wait_seconds[step] for step in self.steps)
        return min(1.0, wait / span) if span > 0 else 0.0


def window_of(name: str, phase: Phase) -> Window | None:
    """Returns the steps to show of a phase.

    They are those with recorded arrivals; without any, the last measured ones; without any, the last ones. A
    phase without steps has none.
    """
    columns = phase.steps
    count = len(columns.warm_up)
    recorded = sorted({step for step, _ in phase.upstream_arrivals_seconds if 0 <= step < count})
    measured = [step for step, warm_up in enumerate(columns.warm_up) if not warm_up]
    steps = (recorded or measured or list(range(count)))[-SHOWN_STEPS:]
    if not steps:
        return None
    begin = columns.start_seconds[steps[0]] - columns.wait_seconds[steps[0]]
    return Window(name, phase, steps, begin, columns.end_seconds[steps[-1]])


def timeline_figure(result: RunResult) -> Figure:
    """Draws a panel for the baseline, where there is one, and one for the run, on one scale of time.

    Raises:
        NothingToDraw: no step ended.
    """
    phases = [("without echo", result.baseline), (echo_label(result), result.phase)]
    windows = [window for name, phase in phases if phase and (window := window_of(name, phase))]
    if not windows:
        raise NothingToDraw("No step ended, so there is no timeline to show.")
    figure = new_figure(0.95 + 1.75 * len(windows), _title(windows))
    longest_seconds = max(window.end_seconds - window.begin_seconds for window in windows) or 1.0
    grid = figure.subplots(len(windows), 1, sharex=True, squeeze=False)
    for axes, window in zip(grid[:, 0], windows, strict=True):
        _draw_upstream(axes, window)
        _draw_steps(axes, window, longest_seconds)
        axes.set_yticks([UPSTREAM, TRANSFERRING, DEVICE], ["upstream:\nfresh elements", "transfer", "device"])
        axes.set_ylim(-0.5, 2.5)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x")
        begin = format_value(window.begin_seconds, "seconds")
        label = f"{window.name[:1].upper()}{window.name[1:]}"
        axes.set_title(
            f"{label}: {_steps_label(window.steps)}, from {begin} on; "
            f"device waits {format_value(window.waiting_share, 'percent')} of this time"
        )
    grid[-1][0].set_xlim(0, longest_seconds)
    grid[-1][0].set_xlabel("seconds since the begin of the steps shown")
    legend_below(
        figure,
        [
            Patch(color=FRESH, label="fresh elements leave upstream"),
            Patch(color=TRANSFER, label="transfer"),
            Patch(color=BUSY, label="device busy"),
            Patch(color=WAITING, label="device waits for data"),
        ],
    )
    return figure


def _steps_label(steps: list[int]) -> str:
    return f"step {steps[0]}" if len(steps) == 1 else f"steps {steps[0]} to {steps[-1]}"


def _draw_steps(axes: Axes, window: Window, longest_seconds: float) -> None:
    columns = window.phase.steps
    for step in window.steps:
        alpha = 1.0 if step % 2 == 0 else ALTERNATE_ALPHA
        start = columns.start_seconds[step] - window.begin_seconds
        busy = columns.end_seconds[step] - columns.start_seconds[step]
        wait, transfer = columns.wait_seconds[step], columns.transfer_seconds[step]
        bars = [
            (DEVICE, start, busy, BUSY, alpha),
            (DEVICE, start - wait, wait, WAITING, 1.0),
            # Only the length is recorded: this is the latest place that it can have had.
            (TRANSFERRING, start - transfer, transfer, TRANSFER, alpha),
        ]
        for lane, left, width, colour, opacity in bars:
            axes.barh([lane], [width], LANE_HEIGHT, left=[left], linewidth=0, color=colour, alpha=opacity)
        if busy > DIGIT_SHARE * len(str(step)) * longest_seconds:
            axes.text(
                start + busy / 2, DEVICE, str(step), ha="center", va="center", color="white", fontsize=8
            )


def _draw_upstream(axes: Axes, window: Window) -> None:
    recorded = dict(window.phase.upstream_arrivals_seconds)
    inside = {
        step: np.sort(np.asarray(recorded.get(step, []))) - window.begin_seconds for step in window.steps
    }
    total = sum(len(times) for times in inside.values())
    if total == 0:
        axes.text(0, UPSTREAM, " none recorded for these steps", va="center", fontsize=9, color=MUTED)
    elif total <= MAX_TICKS:
        _draw_ticks(axes, inside)
    else:
        _draw_density(axes, inside, window.end_seconds - window.begin_seconds)


def _draw_ticks(axes: Axes, inside: dict[int, np.ndarray]) -> None:
    low, high = UPSTREAM - LANE_HEIGHT / 2, UPSTREAM + LANE_HEIGHT / 2
    for step, times in inside.items():
        alpha = 1.0 if step % 2 == 0 else ALTERNATE_ALPHA
        if len(times):
            axes.vlines(times, low, high, color=FRESH, linewidth=1.1, alpha=alpha)


def _draw_density(axes: Axes, inside: dict[int, np.ndarray], span: float) -> None:
    edges = np.linspace(0, span, DENSITY_BINS + 1)
    counts = {step: np.histogram(times, edges)[0] for step, times in inside.items()}
    highest = max(1, int(np.max(sum(counts.values()))))
    base = np.full(DENSITY_BINS, UPSTREAM - LANE_HEIGHT / 2)
    for step, count in counts.items():
        alpha = 1.0 if step % 2 == 0 else ALTERNATE_ALPHA
        top = base + count * (LANE_HEIGHT / highest)
        axes.stairs(top, edges, baseline=base, fill=True, color=FRESH, alpha=alpha, linewidth=0)
        base = top


def _title(windows: list[Window]) -> str:
    shares = [format_value(window.waiting_share, "percent") for window in windows]
    if len(windows) == 1:
        return f"In the steps shown the device waits {shares[0]} of the time"
    return f"In the steps shown the device waits {shares[1]} of the time, {shares[0]} without echo"
