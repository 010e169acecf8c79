"""The comparison of pipelines as a table, a CSV file and a chart."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bench.formatting import format_value, plural, printable
from bench.pipelines.comparison import Comparison, Measured, Ratio
from bench.pipelines.variants import Variant
from bench.reporters.chart_canvas import BUSY, FRESH, INK, LIMIT, MUTED, WAITING, NothingToDraw, new_figure

CSV_COLUMNS = (
    "variant",
    "output",
    "images_per_second",
    "ratio_to_reference",
    "ratio_to_reference_lowest",
    "ratio_to_reference_highest",
    "ratio_to_crop_decode",
    "cpu_seconds_per_image",
    "peak_memory_bytes",
    "rounds",
)


def comparison_csv(comparison: Comparison) -> str:
    """Returns the content of `pipeline.csv`: a row a variant, medians over the rounds."""
    lines = [",".join(CSV_COLUMNS)]
    for one in comparison.measured:
        to_reference, to_limit = comparison.ratio(one), comparison.ratio_to_limit(one)
        cells: list[float | int | None] = [
            one.images_per_second,
            *((None,) * 3 if to_reference is None else (to_reference.median, *_spread(to_reference))),
            None if to_limit is None else to_limit.median,
            one.cpu_seconds_per_image,
            one.peak_memory_bytes,
            len(one.rounds),
        ]
        lines.append(",".join([one.variant.name, one.variant.output, *map(_cell, cells)]))
    return "\n".join(lines) + "\n"


def comparison_table(comparison: Comparison, absent: Sequence[Variant]) -> RenderableType:
    """Returns the table for the screen, with what failed and what is not installed below it."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("variant", no_wrap=True)
    for heading in ("images/s", "ratio", "from", "to", "to limit", "CPU/image", "memory"):
        table.add_column(heading, justify="right")
    for one in comparison.measured:
        table.add_row(*_row(comparison, one))
    notes = [
        f"{one.variant.name} failed after {plural(len(one.rounds), 'round')}: {one.error}"
        for one in comparison.measured
        if one.error
    ]
    if absent:
        missing = ", ".join(f"{variant.name} (pip install {variant.distribution})" for variant in absent)
        notes.append(f"Not installed: {missing}.")
    return Group(table, *(Text(printable(note), style="dim") for note in notes))


def comparison_figure(comparison: Comparison) -> Figure:
    """Draws the ratio of each variant to the reference with its spread.

    Raises:
        NothingToDraw: no ratio was measured.
    """
    rows = [(one, comparison.ratio(one)) for one in comparison.measured]
    drawn = [(one, ratio) for one, ratio in rows if ratio is not None]
    if not drawn:
        raise NothingToDraw("The reference was not measured, so there is no ratio to show.")
    best = max((ratio.median for one, ratio in drawn if one.variant.name.startswith("ours")), default=None)
    title = "Images per second, as a ratio to the reference's pipeline"
    if best is not None:
        title += f": pipebench {format_value(best, 'ratio')}"
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


def _row(comparison: Comparison, one: Measured) -> list[Text]:
    ratio, limit = comparison.ratio(one), comparison.ratio_to_limit(one)
    cells = [
        one.variant.name,
        format_value(one.images_per_second, "number"),
        _median(ratio),
        *(format_value(value, "ratio") for value in ((None, None) if ratio is None else _spread(ratio))),
        _median(limit),
        format_value(one.cpu_seconds_per_image, "seconds"),
        format_value(one.peak_memory_bytes, "bytes"),
    ]
    return [Text(cell) for cell in cells]


def _median(ratio: Ratio | None) -> str:
    return format_value(None if ratio is None else ratio.median, "ratio")


def _spread(ratio: Ratio) -> tuple[float, float]:
    return ratio.lowest, ratio.highest


def _colour(one: Measured) -> str:
    if one.variant.name.startswith("ours"):
        return FRESH
    if one.variant.output == "none":
        return LIMIT
    return WAITING if one.variant.package else BUSY


def _cell(value: float | int | None) -> str:
    return "" if value is None else repr(round(value, 6))
