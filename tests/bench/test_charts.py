import io
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from bench.reporters import charts as charts_module
from bench.reporters.charts import CHART_KINDS, draw_charts
from bench.reporters.step_time_chart import bars_of
from bench.reporters.timeline_chart import window_of

NAMES = [kind.name for kind in CHART_KINDS]


def _by_name(charts):
    return {chart.kind.name: chart for chart in charts}


@pytest.mark.parametrize("name", ["host_bound", "device_bound", "single_step", "real_training"])
def test_measured_run_has_every_chart_in_both_formats(request, name, draw_once):
    for chart in draw_once(request.getfixturevalue(name)):
        assert chart.missing == ""
        picture = Image.open(io.BytesIO(chart.png))
        assert picture.width == 1350  # 9 inches at 150 dots an inch
        ElementTree.fromstring(chart.svg)
        assert "http" not in chart.svg


def test_charts_are_the_same_bytes_when_drawn_again(host_bound, draw_once):
    assert draw_charts(host_bound) == draw_once(host_bound)


def test_ids_differ_between_the_charts_of_a_page(host_bound, draw_once):
    sets = [
        {element.get("id") for element in ElementTree.fromstring(chart.svg).iter() if element.get("id")}
        for chart in draw_once(host_bound)
    ]
    assert all(sets)
    assert not sets[0] & sets[1] and not sets[0] & sets[2] and not sets[1] & sets[2]


def test_titles_say_the_finding(host_bound, draw_once):
    drawn = _by_name(draw_once(host_bound))
    assert "Device waits 60.0 % of the time, 80.0 % without echo" in drawn["step_time"].description
    assert "Echo gives 2.00× the trained rate, 1.00× the fresh rate" in drawn["throughput"].description
    assert "Without echo: steps 3 to 10" in drawn["timeline"].description
    assert "Echo 2 after_augment: steps 12 to 19" in drawn["timeline"].description


def test_run_without_a_step_draws_nothing_and_does_not_call_it_a_failure(no_step):
    for chart in draw_charts(no_step):
        assert (chart.svg, chart.png, chart.failed) == ("", b"", False)
        assert chart.missing.startswith("No step")


def test_run_of_warm_up_only_draws_its_steps_but_no_rates(interrupted, draw_once):
    drawn = _by_name(draw_once(interrupted))
    assert "warm-up only" in drawn["step_time"].description
    assert drawn["throughput"].missing == "No step was measured, so there are no rates to show."
    assert drawn["timeline"].png


def test_long_run_is_drawn_in_a_bounded_number_of_bars(long_run, draw_once):
    assert len(bars_of(long_run.phase)) <= 121
    assert all(len(chart.svg) < 400_000 for chart in draw_once(long_run))


def test_many_arrivals_become_a_density_of_bounded_size(make_phase, make_result):
    result = make_result(make_phase(12, 0.8, 0.2, batch_size=4096))
    assert 0 < len(_by_name(draw_charts(result))["timeline"].svg) < 400_000


def test_warm_up_step_beyond_the_scale_is_cut_and_labelled(make_phase, make_result):
    result = make_result(make_phase(12, 0.1, 0.1, first_wait_seconds=30))
    assert "↑ 30.1 s" in _by_name(draw_charts(result))["step_time"].svg


def test_formula_signs_and_markup_in_names_are_drawn_as_text(host_bound, replace):
    hostile = replace(host_bound, echo={"factor": 2, "insert_point": "$\\frac{<script>&\x00\udcff"})
    for chart in draw_charts(hostile):
        assert chart.missing == ""
        assert "<script" not in chart.svg
        chart.svg.encode("utf-8")


def test_one_chart_that_fails_leaves_the_others(host_bound, monkeypatch):
    import bench.reporters.throughput_chart as module

    def fail(result):
        raise RuntimeError("no ink")

    monkeypatch.setattr(module, "throughput_figure", fail)
    drawn = _by_name(draw_charts(host_bound))
    assert drawn["throughput"].failed
    assert drawn["throughput"].missing == "The chart 'throughput' could not be drawn: RuntimeError: no ink"
    assert drawn["step_time"].png and drawn["timeline"].png


def test_drawing_library_that_cannot_be_imported_fails_each_chart_with_the_reason(host_bound, monkeypatch):
    def fail(name):
        raise ImportError("matplotlib is broken")

    monkeypatch.setattr(charts_module.importlib, "import_module", fail)
    drawn = draw_charts(host_bound)
    assert [chart.failed for chart in drawn] == [True] * 3
    assert all("matplotlib is broken" in chart.missing for chart in drawn)


def test_settings_of_the_user_are_neither_used_nor_changed(host_bound, draw_once):
    import matplotlib

    with matplotlib.rc_context({"text.usetex": True, "font.size": 40, "svg.fonttype": "path"}):
        assert draw_charts(host_bound) == draw_once(host_bound)
        assert matplotlib.rcParams["font.size"] == 40


@pytest.mark.parametrize(
    "settings",
    [{}, {"MPLBACKEND": "TkAgg", "DISPLAY": "localhost:64.0"}, {"MPLBACKEND": "no such backend"}],
    ids=["nothing set", "TkAgg and a dead display", "unknown backend"],
)
def test_png_is_drawn_without_a_window_library_whatever_the_environment_says(settings, host_bound, tmp_path):
    (tmp_path / "result.json").write_text(host_bound.to_json())
    script = (
        "import os, pathlib, sys\n"
        "from bench.reporters.charts import draw_charts\nfrom bench.result import RunResult\n"
        "before = os.environ.get('MPLBACKEND')\n"
        "charts = draw_charts(RunResult.from_json(pathlib.Path(sys.argv[1]).read_text(), 'r'))\n"
        "assert all(chart.png for chart in charts), [chart.missing for chart in charts]\n"
        "windows = {'tkinter', '_tkinter', 'PyQt5', 'PyQt6', 'PySide6', 'gi', 'wx', 'matplotlib.pyplot'}\n"
        "assert not windows & set(sys.modules), windows & set(sys.modules)\n"
        "assert os.environ.get('MPLBACKEND') == before\n"
    )
    environment = {
        k: v for k, v in os.environ.items() if k not in ("DISPLAY", "MPLBACKEND", "WAYLAND_DISPLAY")
    }
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "result.json")],
        env=environment | settings,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@given(st.lists(st.booleans(), max_size=60), st.integers(1, 20))
def test_bars_cover_each_step_once_and_never_mix_warm_up_with_measured(flags, max_bars):
    from bench.result import Counts, Phase, Steps, Throughput

    count = len(flags)
    steps = Steps(
        wait_seconds=[0.5] * count,
        start_seconds=[float(i) for i in range(count)],
        end_seconds=[i + 0.25 for i in range(count)],
        transfer_seconds=[0.0] * count,
        fresh_examples=[1] * count,
        trained_examples=[1] * count,
        warm_up=flags,
        loss=[None] * count,
    )
    phase = Phase(None, None, Counts(count, 0, 0, 0, 0, 0), Throughput(None, None, 0.0, 0), steps)
    bars = bars_of(phase, max_bars)
    assert [step for bar in bars for step in range(bar.first, bar.first + bar.steps)] == list(range(count))
    for bar in bars:
        assert {flags[step] for step in range(bar.first, bar.first + bar.steps)} == {bar.warm_up}
        assert (bar.busy_seconds, bar.wait_seconds, bar.slowest_seconds) == pytest.approx((0.25, 0.5, 0.75))


def test_bar_of_several_steps_holds_their_mean_and_their_slowest(make_phase, replace):
    phase = make_phase(4, 0.5, 0.0, warm_up_steps=0, first_wait_seconds=0.0)
    slow = replace(phase, steps=replace(phase.steps, wait_seconds=[0.0, 1.0, 0.0, 3.0]))
    first, second = bars_of(slow, max_bars=2)
    assert (first.wait_seconds, first.slowest_seconds) == pytest.approx((0.5, 1.5))
    assert (second.wait_seconds, second.slowest_seconds) == pytest.approx((1.5, 3.5))


def test_window_holds_the_recorded_steps_from_the_begin_of_their_waiting(host_bound):
    window = window_of("run", host_bound.phase)
    assert window.steps == list(range(12, 20))
    # Step 0 takes 0.5 + 0.1 s, each later one 0.15 + 0.1 s: step 12 begins to wait at 0.6 + 11 x 0.25 s.
    assert window.begin_seconds == pytest.approx(3.35)
    assert window.end_seconds == pytest.approx(5.35)
    assert window.waiting_share == pytest.approx(0.6)


def test_window_without_recorded_arrivals_holds_the_last_measured_steps(host_bound, replace):
    phase = replace(host_bound.phase, upstream_arrivals_seconds=[])
    assert window_of("run", phase).steps == list(range(22, 30))


def test_window_of_warm_up_only_holds_the_warm_up(interrupted):
    assert window_of("run", interrupted.phase).steps == [0]


def test_recorded_step_that_does_not_exist_is_left_out(host_bound, replace):
    phase = replace(host_bound.phase, upstream_arrivals_seconds=[(-1, [0.1]), (29, [7.0]), (30, [8.0])])
    assert window_of("run", phase).steps == [29]


def test_window_of_a_phase_without_steps_is_none(no_step):
    assert window_of("run", no_step.phase) is None
