import io

import pytest
from rich.console import Console

from bench.reporters.terminal import terminal_summary

FILES = [f"/runs/a [v1]/{name}" for name in ("result.json", "steps.csv", "step_time.png", "report.html")]


def _lines(result, files=FILES, width=100):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(terminal_summary(result, files), crop=False)
    return console.file.getvalue().rstrip("\n").split("\n")


@pytest.mark.parametrize(
    "name",
    ["host_bound", "device_bound", "interrupted", "no_step", "single_step", "long_run", "real_training"],
)
def test_summary_fits_a_screen_of_100_by_30(request, name):
    lines = _lines(request.getfixturevalue(name))
    assert len(lines) <= 28  # leaves room for the command and the prompt
    assert max(len(line) for line in lines) <= 100


def test_long_texts_and_many_warnings_still_fit_and_say_what_is_left_out(host_bound, replace):
    crowded = replace(host_bound, verdict_text="word " * 500, warnings=["warning " * 30] * 9, complete=False)
    lines = _lines(crowded)
    assert len(lines) <= 34
    assert "6 more warnings in the report." in lines


def test_summary_shows_verdict_table_prediction_and_files(host_bound):
    lines = _lines(host_bound)
    text = "\n".join(lines)
    assert lines[0] == "Host-bound, even with echo"
    row = next(line for line in lines if line.startswith("Trained examples/s"))
    assert row.split()[2:] == ["32.0/s", "16.0/s", "2.00×"]
    assert "28 of 30 steps measured; 2 left out as warm-up." in text
    assert "Predicted 33.6/s trained, measured 32.0/s (error +5.0 %)." in text
    assert "Warning: Only 2 CPU cores" in text
    assert "Report: /runs/a [v1]/report.html" in text
    assert "Beside it: result.json, steps.csv, step_time.png" in text


def test_the_path_of_the_page_is_never_broken_however_long_it_is(host_bound):
    page = f"/runs/{'a long name ' * 20}/report.html"
    assert f"Report: {page}" in _lines(host_bound, files=[page, "/runs/x/result.json"])


def test_incomplete_run_says_so_in_the_first_line(interrupted):
    assert _lines(interrupted)[0].startswith("INCOMPLETE: interrupted by Ctrl-C.")


def test_markup_and_terminal_codes_in_texts_are_shown_not_obeyed(host_bound, replace):
    hostile = replace(
        host_bound, warnings=["[bold red]x[/] \x1b[2J [/nothing]"], verdict_text="[link=x]y[/link]"
    )
    text = "\n".join(_lines(hostile))
    assert "[bold red]x[/] \\x1b[2J [/nothing]" in text
    assert "[link=x]y[/link]" in text


def test_paths_without_a_page_are_listed(host_bound):
    assert _lines(host_bound, ["/runs/a/result.json"])[-1] == "Files: /runs/a/result.json"
    assert not _lines(host_bound, [])[-1].startswith("Files")
