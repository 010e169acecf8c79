"""The folder of a run: `result.json` first, then what is drawn from it."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from bench.reporters.charts import CHART_KINDS, ECHO_FACTOR, Chart, draw_charts
from bench.reporters.html import FILE_NAME as HTML_NAME
from bench.reporters.html import html_page
from bench.reporters.steps_csv import FILE_NAME as CSV_NAME
from bench.reporters.steps_csv import steps_csv
from bench.result import RunResult
from echoing.errors import DataError
from pipeline import filesystem

RESULT_NAME = "result.json"


def write_run_folder(
    result: RunResult, folder: str, on_warning: Callable[[str], None] | None = None
) -> list[str]:
    """Writes `result.json`, `steps.csv`, the charts as PNG, `report.html`, in this order.

    The order is that of worth: whatever fails or is interrupted later, the figures are on disk.

    Args:
        result: the run.
        folder: where to; local or `scheme://`, made if it is not there. Files of these names are replaced.
        on_warning: is called with a text for each chart that could not be drawn; without it, Python's
            `warnings` shows them.

    Returns:
        The paths written, in order.

    Raises:
        DataError: the folder or a file cannot be written.
    """
    filesystem.make_folder(folder)
    path = filesystem.join(folder, RESULT_NAME)
    filesystem.write_text(path, result.to_json())
    return [path, *draw_report(result, folder, on_warning)]


def draw_report(result: RunResult, folder: str, on_warning: Callable[[str], None] | None = None) -> list[str]:
    """Writes what is drawn from a result: everything of `write_run_folder` but `result.json`.

    A chart file of an earlier drawing is removed where the chart is not drawn this time, so that no picture
    contradicts the page.
    """
    filesystem.make_folder(folder)
    written = [filesystem.join(folder, CSV_NAME)]
    filesystem.write_text(written[0], steps_csv(result))
    charts = draw_charts(result)
    for chart in charts:
        path = filesystem.join(folder, chart.kind.file_name)
        if chart.png:
            filesystem.write_bytes(path, chart.png)
            written.append(path)
        elif filesystem.exists(path):
            filesystem.remove(path)
        if chart.failed:
            _warn(chart, on_warning)
    path = filesystem.join(folder, HTML_NAME)
    filesystem.write_text(path, html_page(result, charts))
    return [*written, path]


def load_result(folder: str) -> RunResult:
    """Returns the result in a folder.

    Raises:
        DataError: there is no `result.json`, or it is damaged or of another version; the message names it.
    """
    path = filesystem.join(folder, RESULT_NAME)
    if not filesystem.exists(path):
        what = f"has no {RESULT_NAME}" if filesystem.exists(folder) else "does not exist"
        raise DataError(f"{folder} {what}. Name the folder of a run: the --output of `pipebench run`.")
    try:
        text = filesystem.read_text(path)
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is damaged: not UTF-8 text ({error}). Run again.") from error
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror or error}. Check the file.") from error
    return RunResult.from_json(text, path)


def _warn(chart: Chart, on_warning: Callable[[str], None] | None) -> None:
    if on_warning is None:
        warnings.warn(chart.missing, stacklevel=4)
    else:
        on_warning(chart.missing)


DRAWN_NAMES = (CSV_NAME, *(kind.file_name for kind in (*CHART_KINDS, ECHO_FACTOR)), HTML_NAME)
"""Names of all files that `draw_report` may write."""
