"""The benchmark of synchronous replicas: its arithmetic, and one short run."""

from __future__ import annotations

import json

import pytest

from bench.replicas_benchmark import Measurement, Pace


def measured(*rates):
    return [Measurement(rate, updates=10, accepted=30, dropped=5, stale_tokens=2, last_replica_accepted=0)
            for rate in rates]  # fmt: skip


def test_pace_is_the_median_of_the_pairs():
    pace = Pace("x", 0.9, True, equal=measured(10.0, 20.0, 40.0), straggling=measured(10.0, 10.0, 38.0))
    assert pace.ratios == [1.0, 0.5, 0.95]
    assert pace.ratio == 0.95
    assert pace.keeps_promise


@pytest.mark.parametrize(
    "limit, keeps, rate, kept",
    [
        (0.9, True, 9.0, True),
        (0.9, True, 8.9, False),
        (0.5, False, 5.0, True),
        (0.5, False, 5.1, False),
        (None, True, 0.1, True),
    ],
)
def test_promises_are_judged(limit, keeps, rate, kept):
    assert Pace("x", limit, keeps, measured(10.0), measured(rate)).keeps_promise is kept


@pytest.mark.slow
def test_command_measures_every_plan_and_says_what_is_emulated(cli_invoke, tmp_path):
    path = tmp_path / "replicas.json"
    result = cli_invoke(
        "bench", "replicas", "--rounds", "1", "--steps", "10", "--step-milliseconds", "2",
        "--output", str(path), "--json",
    )  # fmt: skip
    # One round on a busy machine keeps no promise for sure; the figures must be there all the same.
    assert result.exit_code in (0, 1)
    document = json.loads(result.stdout)
    assert document == json.loads(path.read_text())
    assert "asleep 2 ms a batch" in document["emulated"]
    assert "emulated" in result.stderr
    paces = document["paces"]
    assert [pace["name"] for pace in paces] == ["4 of 4", "3 of 4", "3 of 4 shared tokens"]
    assert result.exit_code == (0 if all(pace["keeps_promise"] for pace in paces) else 1)
    for pace, gradients in zip(paces, (4, 3, 3), strict=True):
        for (one,) in (pace["equal"], pace["straggling"]):
            assert one["updates"] == 15
            assert one["accepted"] == 15 * gradients
            assert one["steps_per_second"] > 0
    assert all(one["dropped"] == one["stale_tokens"] == 0 for one in paces[0]["equal"])


def test_table_has_two_lines_a_plan_and_fits_the_terminal(capsys):
    from bench.commands.bench_replicas import _print

    _print(
        [
            Pace("4 of 4", 0.5, False, measured(40.0), measured(10.0)),
            Pace("3 of 4", 0.9, True, measured(40.0), measured(30.0)),
            Pace("3 of 4 shared tokens", None, True, measured(40.0), measured(30.0)),
        ],
        "the devices",
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["4", "of", "4", "40.0", "0.50", "0.20"]
    assert lines[2].split()[2:] == ["10.0", "0.25", "0.25-0.25", "0.50", "0.20", "<=", "0.5", "kept"]
    assert lines[4].endswith(">= 0.9 NOT KEPT")
    assert lines[6].split()[2:] == ["30.0", "0.75", "0.75-0.75", "0.50", "0.20"]
    assert lines[-1] == "Emulated: the devices."
    assert max(len(line) for line in lines) <= 80


@pytest.mark.parametrize("option", ["--rounds", "--steps", "--straggler-factor", "--step-milliseconds"])
def test_too_few_is_a_usage_error(cli_invoke, option):
    result = cli_invoke("bench", "replicas", option, "0")
    assert result.exit_code == 2
    assert option in result.stderr


def test_existing_output_file_is_refused_before_anything_is_measured(cli_invoke, tmp_path):
    path = tmp_path / "replicas.json"
    path.write_text("precious")
    result = cli_invoke("bench", "replicas", "--output", path)
    assert result.exit_code == 2
    assert "exists" in result.stderr
    assert path.read_text() == "precious"
