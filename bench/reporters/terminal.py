"""What a run found, for the screen: fits 100 columns and 30 lines."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bench.formatting import plural, printable
from bench.reporters import findings
from bench.result import RunResult
from pipeline import filesystem

MAX_WARNINGS = 3
MAX_CHARACTERS = 200
"""Of a warning or notice: two lines of 100 columns. The page holds the whole text."""

MAX_VERDICT_CHARACTERS = 500
"""Of the verdict and of the basis of a prediction: five lines."""

LEFT_OUT = ("All steps", "Measured steps", "Distance between uses", "Effective epochs")
"""Rows that stand in the line below the table, or in the page alone, to save lines."""

_STYLES = {"host-bound": "bold red", "moderately host-bound": "bold yellow", "device-bound": "bold green"}


def terminal_summary(result: RunResult, files: Sequence[str] = ()) -> RenderableType:
    """Returns a rich renderable: verdict, table of run and baseline, prediction, warnings, files.

    Texts are never read as rich markup: folder names may hold brackets.

    Args:
        result: the run.
        files: paths that were written, all in one folder.
    """
    notices = findings.notices(result)
    parts: list[RenderableType] = []
    if not result.complete:
        parts.append(_paragraph(notices.pop(0), "bold red"))
    parts.append(Text(findings.headline(result), style=_STYLES.get(result.phase.verdict or "", "bold")))
    parts.append(_paragraph(result.verdict_text or findings.reason(result), limit=MAX_VERDICT_CHARACTERS))
    parts += [_paragraph(text, "yellow") for text in notices]
    parts.append(_table(result))
    counts = result.phase.counts
    warm_up = result.phase.throughput.warm_up_steps
    measured = f"{counts.measured_steps:,} of {plural(counts.steps, 'step')} measured"
    parts.append(Text(f"{measured}; {warm_up:,} left out as warm-up.", style="dim"))
    pipeline = findings.pipeline_sentence(result)
    if pipeline:
        parts.append(_paragraph(pipeline, "dim"))
    prediction = findings.prediction_sentence(result)
    if prediction:
        parts.append(_paragraph(prediction, limit=MAX_VERDICT_CHARACTERS))
    parts += [_paragraph(f"Warning: {text}", "yellow") for text in result.warnings[:MAX_WARNINGS]]
    if len(result.warnings) > MAX_WARNINGS:
        parts.append(Text(f"{plural(len(result.warnings) - MAX_WARNINGS, 'more warning')} in the report."))
    if files:
        parts.append(_files(files))
    return Group(*parts)


def _table(result: RunResult) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column("")
    table.add_column(Text(findings.echo_label(result)), justify="right")
    if result.baseline is not None:
        table.add_column("without echo", justify="right")
        table.add_column("ratio", justify="right")
    for row in findings.key_figures(result):
        if row.name in LEFT_OUT:
            continue
        cells = [row.name, row.run]
        if result.baseline is not None:
            cells += [row.baseline, row.ratio]
        table.add_row(*(Text(cell) for cell in cells))
    return table


def _paragraph(text: str, style: str = "", limit: int = MAX_CHARACTERS) -> Text:
    text = printable(" ".join(text.split()))
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    return Text(text, style=style)


def _files(paths: Sequence[str]) -> RenderableType:
    # The page is what most readers open next: its path stands whole, to be clicked or copied, and a line
    # break within it would spoil both. Printed with `crop=False`, it may be longer than the screen is wide.
    pages = [path for path in paths if path.endswith(".html")]
    others = ", ".join(filesystem.base_name(path) for path in paths if path not in pages)
    lines = [
        Text(printable(f"Report: {page}"), style="bold", no_wrap=True, overflow="ignore") for page in pages
    ]
    if others:
        beside = f"Beside it: {others}" if pages else f"Files: {', '.join(paths)}"
        lines.append(Text(printable(beside), style="bold", overflow="fold"))
    return Group(*lines)
