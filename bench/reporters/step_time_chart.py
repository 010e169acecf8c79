"""Chart: what each step took, busy and waiting."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from math import ceil
from statistics import fmean, median
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from bench.formatting import format_value
from bench.reporters.chart_canvas import BUSY, LIMIT, MUTED, WAITING, NothingToDraw, legend_below, new_figure
from bench.reporters.findings import device_ceiling, echo_label, number_of, waiting
from bench.result import Phase, RunResult

MAX_BARS = 120
"""More bars than these in one panel are thinner than three pixels; then each stands for several steps."""


@dataclass(frozen=True)
class Bar:
    """One bar: the mean of consecutive steps, all of them warm-up or none.

    Attributes:
        first: number of its first step.
        steps: how many steps it stands for.
        busy_seconds: mean busy time.
        wait_seconds: mean waiting time.
        slowest_seconds: the longest step among them, waiting included.
        warm_up: whether they are left out of the rates.
    """

    first: int
    steps: int
    busy_seconds: float
    wait_seconds: float
    slowest_seconds: float
    warm_up: bool

    @property
    def height_seconds(self) -> float:
        """Busy and waiting."""
        return self.busy_seconds + self.wait_seconds


def bars_of(phase: Phase, max_bars: int = MAX_BARS) -> list[Bar]:
    """Returns the bars of a phase: one a step, or as few steps a bar as keep to about `max_bars`."""
    steps = phase.steps
    count = len(steps.warm_up)
    width = max(1, ceil(count / max_bars))
    bars = []
    for warm_up, group in groupby(range(count), key=lambda index: steps.warm_up[index]):
        members = list(group)
        for start in range(0, len(members), width):
            chunk = members[start : start + width]
            busy = [steps.end_seconds[index] - steps.start_seconds[index] for index in chunk]
            wait = [steps.wait_seconds[index] for index in chunk]
            slowest = max(b + w for b, w in zip(busy, wait, strict=True))
            bars.append(Bar(chunk[0], len(chunk), fmean(busy), fmean(wait), slowest, warm_up))
    return bars


def step_time_figure(result: RunResult) -> Figure:
    """Draws a panel for the baseline, where there is one, and one for the run, on one scale of time.

    Raises:
        NothingToDraw: no step ended.
    """
    panels = [("without echo", result.baseline), (echo_label(result), result.phase)]
    drawn = [(name, phase, bars_of(phase)) for name, phase in panels if phase and phase.steps.warm_up]
    if not drawn:
        raise NothingToDraw("No step ended, so there is no step time to show.")
    limit_seconds, limit_label = _device_step(result)
    top_seconds = _top_seconds([bar for *_, bars in drawn for bar in bars], limit_seconds)
    scale, unit = (1e3, "ms") if top_seconds < 1 else (1.0, "s")

    figure = new_figure(3.7, _title(result))
    # A panel as wide as its steps, within limits that keep the titles readable.
    shares = [min(2.2, max(1.0, len(bars) / len(drawn[0][2]))) for *_, bars in drawn]
    grid = figure.subplots(1, len(drawn), sharey=True, squeeze=False, width_ratios=shares)
    for axes, (name, phase, bars) in zip(grid[0], drawn, strict=True):
        _draw_panel(axes, bars, scale, top_seconds)
        if limit_seconds is not None:
            axes.axhline(limit_seconds * scale, color=LIMIT, linewidth=1.4, linestyle="--")
        finding = "warm-up only" if phase.accelerator_utilization is None else f"waits {waiting(phase)}"
        axes.set_title(f"{name[:1].upper()}{name[1:]}: {finding}")
        widest = max(bar.steps for bar in bars)
        axes.set_xlabel("step" if widest == 1 else f"step (a bar is the mean of {widest:,} steps)")
        axes.grid(axis="y")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        axes.set_xlim(-0.7, sum(bar.steps for bar in bars) - 0.3)
    grid[0][0].set_ylim(0, top_seconds * scale)
    grid[0][0].set_ylabel(f"time per step ({unit})")
    legend_below(figure, _legend([bar for *_, bars in drawn for bar in bars], limit_label))
    return figure


def _draw_panel(axes: Axes, bars: list[Bar], scale: float, top_seconds: float) -> None:
    for warm_up in (False, True):
        chosen = [bar for bar in bars if bar.warm_up is warm_up]
        if not chosen:
            continue
        left = [bar.first - 0.5 for bar in chosen]
        width = [bar.steps if bar.steps > 1 else 0.86 for bar in chosen]
        busy = [bar.busy_seconds * scale for bar in chosen]
        wait = [bar.wait_seconds * scale for bar in chosen]
        look: dict[str, Any] = {"align": "edge", "linewidth": 0}
        alpha = 0.45 if warm_up else 1.0
        axes.bar(left, busy, width, color=BUSY, alpha=alpha, **look)
        axes.bar(left, wait, width, bottom=busy, color=WAITING, alpha=alpha, **look)
        if warm_up:
            heights = [bar.height_seconds * scale for bar in chosen]
            axes.bar(left, heights, width, facecolor="none", edgecolor=MUTED, hatch="////", **look)
    slowest = [bar for bar in bars if bar.steps > 1 and not bar.warm_up]
    if slowest:
        middle = [bar.first + (bar.steps - 1) / 2 for bar in slowest]
        heights = [bar.slowest_seconds * scale for bar in slowest]
        axes.plot(middle, heights, color=MUTED, linewidth=0.8)
    cut = [bar for bar in bars if bar.height_seconds > top_seconds]
    if cut:
        highest = max(cut, key=lambda bar: bar.height_seconds)
        text = f"↑ {format_value(highest.height_seconds, 'seconds')}"
        place = axes.get_xaxis_transform()  # step numbers across, shares of the height upwards
        axes.text(highest.first + 0.6, 0.97, text, transform=place, va="top", fontsize=9)


def _legend(bars: list[Bar], limit_label: str) -> list[Artist]:
    handles: list[Artist] = [
        Patch(color=BUSY, label="device busy"),
        Patch(color=WAITING, label="device waits for data"),
    ]
    if any(bar.warm_up for bar in bars):
        handles.append(Patch(facecolor="none", edgecolor=MUTED, hatch="////", label="warm-up (in no rate)"))
    if limit_label:
        handles.append(Line2D([], [], color=LIMIT, linestyle="--", label=limit_label))
    if any(bar.steps > 1 for bar in bars):
        handles.append(Line2D([], [], color=MUTED, linewidth=0.8, label="slowest step of a bar"))
    return handles


def _top_seconds(bars: list[Bar], limit_seconds: float | None) -> float:
    # Warm-up holds compilation and cold caches: at its scale the measured steps would be a flat line.
    shown = [bar for bar in bars if not bar.warm_up] or bars
    highest = max(max(bar.slowest_seconds for bar in shown), limit_seconds or 0.0)
    return highest * 1.15 if highest > 0 else 1.0


def _device_step(result: RunResult) -> tuple[float | None, str]:
    """Returns the device's own step time with its label: the preset's, or else the median measured."""
    preset = number_of(result.accelerator, "step_seconds")
    if preset is not None and device_ceiling(result) is not None:
        return preset, f"device's step time {format_value(preset, 'seconds')}"
    steps = result.phase.steps
    busy = [
        end - start
        for start, end, warm_up in zip(steps.start_seconds, steps.end_seconds, steps.warm_up, strict=True)
        if not warm_up
    ]
    if not busy:
        return None, ""
    return median(busy), f"median busy time {format_value(median(busy), 'seconds')}"


def _title(result: RunResult) -> str:
    if result.phase.accelerator_utilization is None:
        return "No step was measured"
    text = f"Device waits {waiting(result.phase)} of the time"
    if result.baseline is None or result.baseline.accelerator_utilization is None:
        return text
    return f"{text}, {waiting(result.baseline)} without echo"
