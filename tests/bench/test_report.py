import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from bench.commands.report import command
from bench.reporters.charts import draw_charts
from bench.reporters.folder import write_run_folder
from echoing.errors import DataError, OptionError

DRAWN = ["steps.csv", "step_time.png", "throughput.png", "timeline.png", "report.html"]

pytestmark = pytest.mark.usefixtures("charts_drawn_once")


@pytest.fixture
def run_folder(tmp_path, host_bound):
    """The folder of a finished run."""
    folder = tmp_path / "run [v1]"
    write_run_folder(host_bound, str(folder))
    return folder


def _invoke(*arguments):
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def _bytes_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_report_is_drawn_again_from_result_json_alone_with_the_same_bytes(run_folder):
    before = _bytes_of(run_folder)
    for name in DRAWN:
        (run_folder / name).unlink()
    done = _invoke(run_folder)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [f"wrote {run_folder / name}" for name in DRAWN]
    assert _bytes_of(run_folder) == before


def test_several_folders_are_drawn_in_turn(run_folder, tmp_path, device_bound):
    write_run_folder(device_bound, str(tmp_path / "second"))
    done = _invoke("--json", run_folder, tmp_path / "second")
    assert done.exit_code == 0
    reports = json.loads(done.stdout)["reports"]
    assert [report["folder"] for report in reports] == [str(run_folder), str(tmp_path / "second")]
    assert all(report["warnings"] == [] and len(report["files"]) == 5 for report in reports)


def test_output_folder_gets_the_drawn_files_and_the_run_is_left_alone(run_folder, tmp_path):
    before = _bytes_of(run_folder)
    done = _invoke(run_folder, "--output", tmp_path / "out")
    assert done.exit_code == 0
    assert sorted(_bytes_of(tmp_path / "out")) == sorted(DRAWN)
    assert _bytes_of(run_folder) == before


def test_output_folder_that_is_not_empty_needs_overwrite(run_folder, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "steps.csv").write_text("mine")
    refused = _invoke(run_folder, "--output", out)
    assert isinstance(refused.exception, DataError)
    assert "--overwrite" in str(refused.exception) and str(out) in str(refused.exception)
    assert _bytes_of(out) == {"steps.csv": b"mine"}
    assert _invoke(run_folder, "--output", out, "--overwrite").exit_code == 0
    assert sorted(_bytes_of(out)) == sorted(DRAWN)


def test_empty_output_folder_is_used(run_folder, tmp_path):
    (tmp_path / "out").mkdir()
    assert _invoke(run_folder, "--output", tmp_path / "out").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["a", "b", "--output", "c"], "with one DIR"),
        (["a", "--overwrite"], "--output"),
        (["a", "--output", ""], "--output is ''"),
        ([""], "DIR is ''"),
    ],
)
def test_options_that_do_not_go_together_are_refused(arguments, part):
    done = _invoke(*arguments)
    assert isinstance(done.exception, OptionError)
    assert part in str(done.exception)


@pytest.mark.parametrize("arguments", [[], ["x", "--ouput", "y"]])
def test_usage_errors_exit_with_2(arguments):
    assert _invoke(*arguments).exit_code == 2


def test_second_folder_without_a_result_stops_before_anything_is_drawn(run_folder, tmp_path):
    (run_folder / "report.html").unlink()
    done = _invoke(run_folder, tmp_path / "missing")
    assert isinstance(done.exception, DataError)
    assert str(tmp_path / "missing") in str(done.exception)
    assert not (run_folder / "report.html").exists()


def test_result_of_a_newer_version_is_refused_and_named(run_folder):
    path = run_folder / "result.json"
    path.write_text(path.read_text().replace('"schema_version": 1', '"schema_version": 2'))
    done = _invoke(run_folder)
    assert isinstance(done.exception, DataError)
    assert str(path) in str(done.exception)


def test_missing_chart_is_warned_of_and_the_rest_is_written(run_folder, monkeypatch):
    import bench.reporters.folder as folder_module
    import bench.reporters.timeline_chart as chart_module

    monkeypatch.setattr(folder_module, "draw_charts", draw_charts)
    monkeypatch.setattr(chart_module, "timeline_figure", lambda result: 1 / 0)
    done = _invoke(run_folder, "--json")
    assert done.exit_code == 0
    (report,) = json.loads(done.stdout)["reports"]
    assert "ZeroDivisionError" in report["warnings"][0]
    assert "Warning: The chart 'timeline'" in done.stderr
    assert not (run_folder / "timeline.png").exists()


def test_remote_folder_is_drawn(host_bound):
    write_run_folder(host_bound, "ram://report-command/run")
    done = _invoke("ram://report-command/run", "--output", "ram://report-command/out")
    assert done.exit_code == 0, done.exception
    assert "wrote ram://report-command/out/report.html" in done.stdout


def test_command_module_imports_nothing_heavy():
    script = (
        "import sys, bench.commands.report\n"
        "heavy = {'tensorflow', 'matplotlib', 'numpy', 'jinja2', 'rich', 'PIL', 'pandas'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
