"""The comparison of pipelines as a table and as files: CSV, JSON and a chart."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bench.formatting import format_value, plural, printable
from bench.pipelines.comparison import Comparison, Measured, Ratio
from bench.pipelines.variants import Variant
from pipeline import filesystem

JSON_NAME = "pipeline.json"
CSV_NAME = "pipeline.csv"
CHART_NAME = "pipeline.png"

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

_EXPLANATION = (
    "\nRatio: to the reference's images/s of the same round, median and range of the rounds. To limit: to "
    "decoding the crop alone. CPU/image: processor time of all cores. Memory: peak of "
    "all processes."
)


def comparison_csv(comparison: Comparison) -> str:
    """Returns the content of `pipeline.csv`: a row a variant, medians over the rounds.

    A cell without a value is empty: ratios without the reference, everything of a variant that failed.
    """
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
    """Returns the table for the screen, with what is doubtful, failed and not installed below it.

    Args:
        comparison: the figures.
        absent: variants that were not measured because their packages are not installed.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("variant", no_wrap=True)
    for heading in ("images/s", "ratio", "from", "to", "to limit", "CPU/image", "memory"):
        table.add_column(heading, justify="right")
    for one in comparison.measured:
        table.add_row(*_row(comparison, one))
    notes = [f"Warning: {warning}" for warning in comparison.warnings]
    notes += [
        f"{one.variant.name} failed after {plural(len(one.rounds), 'round')}: {one.error}"
        for one in comparison.measured
        if one.error
    ]
    if absent:
        missing = ", ".join(f"{variant.name} ({variant.install_command})" for variant in absent)
        notes.append(f"Not installed: {missing}.")
    return Group(table, Text(_EXPLANATION), *(Text(printable(note)) for note in notes))


def write_comparison(
    comparison: Comparison, document: str, folder: str, on_warning: Callable[[str], None]
) -> list[str]:
    """Writes `pipeline.json`, `pipeline.csv` and `pipeline.png`; returns the paths written.

    In the order of worth: should drawing fail, the figures are on disk. A chart of an earlier comparison is
    removed where none is drawn this time, so that no picture contradicts the figures.

    Args:
        comparison: what was measured.
        document: all of it as JSON.
        folder: where to; files of these names are replaced.
        on_warning: is told why there is no chart.

    Raises:
        DataError: a file cannot be written.
    """
    contents = {JSON_NAME: document, CSV_NAME: comparison_csv(comparison)}
    written = [filesystem.join(folder, name) for name in contents]
    for path, text in zip(written, contents.values(), strict=True):
        filesystem.write_text(path, text)
    chart = filesystem.join(folder, CHART_NAME)
    try:
        from bench.reporters.pipeline_comparison_chart import comparison_png

        picture = comparison_png(comparison)
    except Exception as error:  # whatever a drawing library raises must not cost the figures
        on_warning(printable(f"No chart was drawn: {type(error).__name__}: {error}"))
        picture = b""
    if picture:
        filesystem.write_bytes(chart, picture)
        return [*written, chart]
    if filesystem.exists(chart):
        filesystem.remove(chart)
    return written


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


def _cell(value: float | int | None) -> str:
    return "" if value is None else repr(round(value, 6))
