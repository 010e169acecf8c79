import json

import pytest

from bench.reporters import folder as folder_module
from bench.reporters.charts import CHART_KINDS, Chart
from bench.reporters.folder import DRAWN_NAMES, draw_report, load_result, write_run_folder
from bench.reporters.steps_csv import steps_csv
from echoing.errors import DataError
from pipeline import filesystem

ALL_NAMES = ["result.json", "steps.csv", "step_time.png", "throughput.png", "timeline.png", "report.html"]


pytestmark = pytest.mark.usefixtures("charts_drawn_once")


@pytest.fixture
def broken_charts(charts_drawn_once, monkeypatch):
    """Lets every chart fail."""

    def fail(result):
        return [Chart(kind, missing="no drawing library", failed=True) for kind in CHART_KINDS]

    monkeypatch.setattr(folder_module, "draw_charts", fail)


@pytest.mark.parametrize(
    "name",
    ["host_bound", "device_bound", "interrupted", "no_step", "single_step", "long_run", "real_training"],
)
def test_written_result_is_read_back_equal(request, name, tmp_path):
    result = request.getfixturevalue(name)
    write_run_folder(result, str(tmp_path))
    assert load_result(str(tmp_path)) == result


def test_files_are_written_in_the_order_of_worth_and_nothing_else_is_left(host_bound, tmp_path):
    target = tmp_path / "deep" / "er [v1]"
    paths = write_run_folder(host_bound, str(target))
    assert [filesystem.base_name(path) for path in paths] == ALL_NAMES
    assert filesystem.list_folder(str(target)) == sorted(ALL_NAMES)
    # The chart of the elastic factor belongs to elastic runs alone.
    assert set(DRAWN_NAMES) == {*ALL_NAMES[1:], "echo_factor.png"}
    assert (target / "steps.csv").read_bytes() == steps_csv(host_bound).encode()


def test_result_json_has_no_nan_and_null_for_what_was_not_measured(interrupted, tmp_path):
    write_run_folder(interrupted, str(tmp_path))

    def refuse(name):
        raise AssertionError(name)

    document = json.loads((tmp_path / "result.json").read_text(), parse_constant=refuse)
    assert document["throughput"]["trained_examples_per_second"] is None
    assert document["verdict"] is None
    assert document["complete"] is False


def test_remote_folder_holds_the_same_bytes_as_a_local_one(host_bound, tmp_path):
    write_run_folder(host_bound, str(tmp_path))
    paths = write_run_folder(host_bound, "ram://reports/run")
    assert paths == [f"ram://reports/run/{name}" for name in ALL_NAMES]
    for name in ALL_NAMES:
        with filesystem.open_file(f"ram://reports/run/{name}") as file:
            assert bytes(file.read()) == (tmp_path / name).read_bytes(), name
    assert load_result("ram://reports/run") == host_bound


def test_failing_charts_cost_neither_figures_nor_page(host_bound, tmp_path, broken_charts):
    problems = []
    paths = write_run_folder(host_bound, str(tmp_path), problems.append)
    assert [filesystem.base_name(path) for path in paths] == ["result.json", "steps.csv", "report.html"]
    assert len(problems) == len(CHART_KINDS)
    assert all("no drawing library" in problem for problem in problems)
    assert "no drawing library" in (tmp_path / "report.html").read_text()
    assert load_result(str(tmp_path)) == host_bound


def test_failing_chart_warns_where_nobody_listens(host_bound, tmp_path, broken_charts):
    with pytest.warns(UserWarning, match="no drawing library"):
        write_run_folder(host_bound, str(tmp_path))


@pytest.mark.parametrize("step", ["steps_csv", "draw_charts", "html_page"])
def test_interrupt_while_drawing_leaves_a_complete_result(host_bound, tmp_path, monkeypatch, step):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(folder_module, step, interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_run_folder(host_bound, str(tmp_path))
    assert load_result(str(tmp_path)) == host_bound


def test_picture_of_an_earlier_run_does_not_stay_beside_a_page_without_it(host_bound, no_step, tmp_path):
    write_run_folder(host_bound, str(tmp_path))
    draw_report(no_step, str(tmp_path))
    assert filesystem.list_folder(str(tmp_path)) == ["report.html", "result.json", "steps.csv"]


@pytest.mark.parametrize("target", ["local", "ram://reports/none"])
def test_folder_without_a_result_is_named(tmp_path, target):
    path = str(tmp_path / "none") if target == "local" else target
    with pytest.raises(DataError) as caught:
        load_result(path)
    assert str(caught.value).startswith(f"{path} does not exist")


def test_empty_folder_lacks_result_json(tmp_path):
    with pytest.raises(DataError, match=r"has no result\.json"):
        load_result(str(tmp_path))


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"", b"{", b"{}"])
def test_damaged_result_names_the_file(tmp_path, content):
    (tmp_path / "result.json").write_bytes(content)
    with pytest.raises(DataError, match=r"result\.json"):
        load_result(str(tmp_path))


def test_result_json_that_is_a_folder_is_a_data_error(tmp_path):
    (tmp_path / "result.json").mkdir()
    with pytest.raises(DataError, match=r"Cannot read .*result\.json"):
        load_result(str(tmp_path))


def test_file_in_the_place_of_the_folder_is_a_data_error(host_bound, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match="Cannot make the folder"):
        write_run_folder(host_bound, str(tmp_path / "file"))
