"""The benchmark of the echo: its arithmetic, and one short run."""

from __future__ import annotations

import json

import pytest

from bench.commands.bench_echo import command
from bench.echo_benchmark import Comparison, _in_turn
from bench.elastic_benchmark import ElasticTrace


def test_ratio_is_the_median_of_the_pairs():
    comparison = Comparison("x", "ms", ours=[1.0, 9.0, 3.0], other=[2.0, 3.0, 3.0], limit=1.0)
    assert comparison.ratios == [0.5, 3.0, 1.0]
    assert comparison.ratio == 1.0
    assert comparison.keeps_promise


def test_a_ratio_above_the_limit_breaks_the_promise():
    assert not Comparison("x", "ms", [1.02], [1.0], limit=1.01).keeps_promise


@pytest.mark.parametrize(
    "above, kept",
    [(4, True), (6, True), (7, False), (8, False)],  # 8 pairs: 6 above have a chance of 0.145, 7 of 0.035
)
def test_a_ratio_above_the_limit_by_noise_alone_keeps_the_promise(above, kept):
    ours = [1.1] * above + [0.9] * (8 - above)
    assert Comparison("x", "ms", ours, [1.0] * 8, limit=1.0).keeps_promise is kept


def test_variants_take_turns_in_going_first_after_a_warm_up():
    calls = []

    def measure(name):
        calls.append(name)
        return float(len(calls))

    figures = _in_turn(2, lambda: measure("ours"), lambda: measure("other"))
    assert calls == ["ours", "other", "ours", "other", "other", "ours"]
    assert figures == ([3.0, 6.0], [4.0, 5.0])


@pytest.mark.slow
def test_command_measures_every_promise_and_writes_the_trace(cli_invoke, tmp_path):
    path = tmp_path / "echo.json"
    result = cli_invoke(
        "bench", "echo", "--rounds", "1", "--elements", "200", "--steps", "10", "--elastic-steps", "40",
        "--output", str(path), "--json",
    )  # fmt: skip
    # One round on a busy machine keeps no promise for sure; the figures must be there all the same.
    assert result.exit_code in (0, 1)
    document = json.loads(result.stdout)
    assert document == json.loads(path.read_text())
    assert len(document["comparisons"]) == 6
    assert all(len(one["ours"]) == len(one["other"]) == 1 for one in document["comparisons"])
    elastic = document["elastic"]
    kept = [one["keeps_promise"] for one in document["comparisons"]]
    kept += [promise["kept"] for promise in elastic["promises"]]
    assert result.exit_code == (0 if all(kept) else 1)
    assert len(elastic["factors"]) == len(elastic["used_factors"]) == len(elastic["end_seconds"]) == 80
    assert all(1.0 <= factor <= 8.0 for factor in elastic["factors"])


@pytest.mark.parametrize("option", ["--rounds", "--steps"])
def test_too_few_is_a_usage_error(option):
    from click.testing import CliRunner

    result = CliRunner().invoke(command, [option, "0"])
    assert result.exit_code == 2
    assert option in result.output


def test_existing_output_file_is_refused_before_anything_is_measured(cli_invoke, tmp_path):
    path = tmp_path / "echo.json"
    path.write_text("precious")
    result = cli_invoke("bench", "echo", "--output", path)
    assert result.exit_code == 2
    assert "exists" in result.stderr
    assert path.read_text() == "precious"


def test_output_file_that_cannot_be_written_is_refused_before_anything_is_measured(cli_invoke, tmp_path):
    result = cli_invoke("bench", "echo", "--output", tmp_path / "no" / "such" / "echo.json")
    assert result.exit_code == 2
    assert "Cannot write" in result.stderr


def trace(**changes):
    values = {
        "end_seconds": [], "factors": [], "used_factors": [], "busy": 0.985, "mean_factor": 3.05,
        "smallest_factor": 3.0, "steps_to_one": 45, "seconds_to_one": 4.5,
    }  # fmt: skip
    return ElasticTrace(**{**values, **changes})


@pytest.mark.parametrize(
    "changes, kept",
    [
        ({}, [True, True, True]),
        ({"busy": 0.979}, [False, True, True]),
        ({"mean_factor": 3.2}, [True, False, True]),
        ({"mean_factor": 2.8}, [True, False, True]),
        ({"steps_to_one": 61}, [True, True, False]),
        ({"steps_to_one": None, "seconds_to_one": None}, [True, True, False]),
    ],
)
def test_elastic_promises_are_judged(changes, kept):
    assert [one for _, one in trace(**changes).promises] == kept
