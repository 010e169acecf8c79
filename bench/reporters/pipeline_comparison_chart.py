"""The chart of a comparison of pipelines."""

from __future__ import annotations

from matplotlib.figure import Figure

from bench.formatting import format_value
from bench.pipelines.comparison import Comparison, Measured
from bench.reporters.chart_canvas import (
    BUSY,
    FRESH,
    INK,
    LIMIT,
    MUTED,
    WAITING,
    NothingToDraw,
    chart_style,
    new_figure,
    png_bytes,
)


def comparison_png(comparison: Comparison) -> bytes:
    """Returns the chart as PNG; empty where there is nothing to draw."""
    with chart_style():
        try:
            return png_bytes(comparison_figure(comparison))
        except NothingToDraw:
            return b""


def comparison_figure(comparison: Comparison) -> Figure:
    """Draws the ratio of each variant to the reference with its spread; call it within `chart_style`.

    Raises:
        NothingToDraw: no ratio was measured.
    """
    rows = [(one, comparison.ratio(one)) for one in comparison.measured]
    drawn = [(one, ratio) for one, ratio in rows if ratio is not None]
    if not drawn:
        raise NothingToDraw("The reference was not measured, so there is no ratio to show.")
    title = "Images per second, as a ratio to the reference's pipeline"
    ours = [(ratio.median, one.variant.name) for one, ratio in drawn if _is_ours(one)]
    if ours:
        best, name = max(ours)
        title += f": {name} {format_value(best, 'ratio')}"
    figure = new_figure(1.2 + 0.42 * len(drawn), title)
    axes = figure.subplots()
    for place, (one, ratio) in enumerate(drawn):
        axes.barh(place, ratio.median, color=_colour(one), height=0.62)
        axes.plot([ratio.lowest, ratio.highest], [place, place], color=INK, linewidth=1.2)
        label = f"{format_value(ratio.median, 'ratio')}, {format_value(one.images_per_second, 'examples/s')}"
        axes.text(ratio.highest, place, f"  {label}", va="center", fontsize=9)
    axes.set_yticks(range(len(drawn)), [f"{one.variant.name} ({one.variant.output})" for one, _ in drawn])
    axes.invert_yaxis()
    axes.axvline(1.0, color=MUTED, linewidth=0.9, linestyle="--")
    axes.set_xlim(0, 1.3 * max(ratio.highest for _, ratio in drawn))
    axes.set_xlabel("ratio to the reference, median over the rounds; lines from the lowest to the highest")
    axes.grid(axis="x")
    return figure


def _is_ours(one: Measured) -> bool:
    return one.variant.name.startswith("ours")


def _colour(one: Measured) -> str:
    if _is_ours(one):
        return FRESH
    if one.variant.output == "none":
        return LIMIT
    return WAITING if one.variant.packages else BUSY
