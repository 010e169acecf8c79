"""Chart: examples per second, fresh and repeated, with and without echo, against what the device could do."""

from __future__ import annotations

from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from bench.formatting import format_value
from bench.reporters.chart_canvas import (
    FRESH,
    INK,
    LIMIT,
    MUTED,
    REPEATED,
    NothingToDraw,
    legend_below,
    new_figure,
)
from bench.reporters.findings import device_ceiling, echo_label, has_echo
from bench.result import Phase, RunResult

INK_ON_PALE = "#10202c"
"""Text on a pale bar; it stays dark in a dark page."""

BAR_HEIGHT = 0.62

MIN_LABELLED_SHARE = 0.13
"""A bar narrower than this share of the axis cannot hold its value."""


def throughput_figure(result: RunResult) -> Figure:
    """Draws a bar a phase: fresh and repeated examples add up to the trained ones.

    Raises:
        NothingToDraw: no rate could be measured.
    """
    panels = [("without echo", result.baseline), (echo_label(result), result.phase)]
    drawn = [
        (name, phase)
        for name, phase in panels
        if phase is not None and phase.throughput.trained_examples_per_second is not None
    ]
    if not drawn:
        raise NothingToDraw("No step was measured, so there are no rates to show.")
    ceiling = device_ceiling(result)
    trained_rates = [phase.throughput.trained_examples_per_second or 0.0 for _, phase in drawn]
    longest = max([*trained_rates, ceiling or 0.0]) or 1.0

    figure = new_figure(1.55 + 0.62 * len(drawn), _title(result))
    axes = figure.subplots()
    handles: list[Artist] = [Patch(color=FRESH, label="fresh"), Patch(color=REPEATED, label="repeated")]
    for place, ((_, phase), trained) in enumerate(zip(drawn, trained_rates, strict=True)):
        fresh = min(phase.throughput.fresh_examples_per_second or 0.0, trained)
        for noun, left, width, colour, text_colour in [
            ("fresh", 0.0, fresh, FRESH, "white"),
            ("repeated", fresh, trained - fresh, REPEATED, INK_ON_PALE),
        ]:
            axes.barh([place], [width], BAR_HEIGHT, left=[left], color=colour)
            if width >= MIN_LABELLED_SHARE * longest:
                text = f"{format_value(width, 'examples/s')} {noun}"
                middle = left + width / 2
                axes.text(middle, place, text, ha="center", va="center", fontsize=9, color=text_colour)
    if ceiling is not None:
        label = f"device's ceiling {format_value(ceiling, 'examples/s')} (batch size / step time)"
        handles.append(axes.axvline(ceiling, color=LIMIT, linestyle="--", linewidth=1.4, label=label))
    axes.set_yticks(range(len(drawn)), [name for name, _ in drawn])
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0, labelsize=10, labelcolor=INK)
    axes.set_xlim(0, longest * 1.04)
    right = axes.twinx()
    right.set_ylim(axes.get_ylim())
    right.set_yticks(range(len(drawn)), [_end_label(phase) for _, phase in drawn])
    right.tick_params(axis="y", length=0, labelsize=10, labelcolor=INK)
    right.spines[:].set_visible(False)
    axes.set_xlabel("examples/s")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.spines["left"].set_color(MUTED)
    axes.grid(axis="x")
    legend_below(figure, handles)
    return figure


def _end_label(phase: Phase) -> str:
    rates = phase.throughput
    trained = format_value(rates.trained_examples_per_second, "examples/s")
    fresh = format_value(rates.fresh_examples_per_second, "examples/s")
    utilization = format_value(phase.accelerator_utilization, "percent")
    return f"{trained} trained\n{fresh} fresh\nAU {utilization}"


def _title(result: RunResult) -> str:
    run = result.phase.throughput
    base = None if result.baseline is None else result.baseline.throughput
    trained = format_value(run.trained_examples_per_second, "examples/s")
    if base is None or not base.trained_examples_per_second or run.trained_examples_per_second is None:
        return f"{trained} trained, {format_value(run.fresh_examples_per_second, 'examples/s')} fresh"
    gain = format_value(run.trained_examples_per_second / base.trained_examples_per_second, "ratio")
    if run.fresh_examples_per_second is None or not base.fresh_examples_per_second:
        return f"The run gives {gain} the trained rate"
    fresh = format_value(run.fresh_examples_per_second / base.fresh_examples_per_second, "ratio")
    subject = "Echo" if has_echo(result) else "The run"
    return f"{subject} gives {gain} the trained rate, {fresh} the fresh rate"
