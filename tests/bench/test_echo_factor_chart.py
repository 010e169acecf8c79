"""The picture of the elastic factor."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.reporters.chart_canvas import NothingToDraw
from bench.reporters.charts import draw_charts
from bench.reporters.echo_factor_chart import echo_factor_figure, used_factors, waiting_shares
from bench.result import Steps


def elastic(result, **echo):
    values = {"factor": "elastic", "mean_factor": 2.0, "max_factor": 8.0, "trace": [[0, 1.0], [5, 2.5]]}
    return replace(result, echo={**result.echo, **values, **echo})


def with_steps(result, **columns):
    return replace(result.phase, steps=Steps(**columns))


def test_used_factor_is_trained_over_fresh_of_the_last_eight_steps(host_bound):
    phase = with_steps(host_bound, trained_examples=[4] * 10, fresh_examples=[4, 4, 0, 0, 0, 0, 0, 0, 0, 4])
    assert used_factors(phase) == [1.0, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 8.0, 8.0]


def test_used_factor_of_steps_without_a_fresh_example_is_unknown(host_bound):
    assert used_factors(with_steps(host_bound, trained_examples=[4], fresh_examples=[0])) == [None]


def test_waiting_is_the_share_of_the_last_eight_steps(host_bound):
    phase = with_steps(host_bound, wait_seconds=[1.0, 0.0], start_seconds=[1.0, 2.0], end_seconds=[2.0, 4.0])
    assert waiting_shares(phase) == [0.5, 0.25]


def test_elastic_run_has_the_chart_and_a_fixed_factor_has_not(host_bound):
    names = [chart.kind.name for chart in draw_charts(elastic(host_bound))]
    assert names == ["step_time", "throughput", "timeline", "echo_factor"]
    assert "echo_factor" not in [chart.kind.name for chart in draw_charts(host_bound)]


@pytest.mark.parametrize("trace", [[], [[0, 1.0]], [[0, 1.0], [10_000, 3.0]]])
def test_chart_is_drawn_for_any_trace(host_bound, trace):
    (chart,) = [c for c in draw_charts(elastic(host_bound, trace=trace)) if c.kind.name == "echo_factor"]
    assert chart.png.startswith(b"\x89PNG")
    assert "2.00 on average" in chart.description


def test_run_without_a_step_has_nothing_to_draw(no_step):
    with pytest.raises(NothingToDraw):
        echo_factor_figure(elastic(no_step))
