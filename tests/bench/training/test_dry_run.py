"""TP-01, TP-03: a dry run fails where a TPU would."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    "words, problem",
    [
        (("--train-batch-size", 6), "The nearest: 8."),  # TP-01
        (("--train-batch-size", 20), "The nearest: 16 or 24."),
        (("--train-batch-size", 8, "--eval-batch-size", 100), "The nearest: 96 or 104."),
        (("--train-batch-size", 8, "--image-dtype", "uint8"), "float32 or bfloat16 on a TPU"),
    ],
)
def test_dry_run_fails_where_a_tpu_would(train, tmp_path, words, problem):
    result = train("--dry-run", "--tpu", "any", "--train-steps", 10, *words, code=1)
    assert problem in result.stdout
    assert "not run on a TPU" in result.stdout.splitlines()[0]
    assert not (tmp_path / "model").exists()


@pytest.mark.slow
def test_dry_run_compiles_the_step_and_prints_the_plan(train, tmp_path):
    result = train(
        "--dry-run", "--tpu", "any", "--train-steps", 10, "--train-batch-size", 8, "--echo-factor", 2
    )
    plan = dict(line.split("  ", 1) for line in result.stdout.splitlines() if "  " in line)
    plan = {name: value.strip() for name, value in plan.items()}
    assert (plan["hosts"], plan["replicas"], plan["batch"]) == ("1", "8", "8: 8 a host, 1 a replica")
    assert plan["steps a pass"] == "2.50"  # 10 records twice in batches of 8
    assert plan["bytes per image sent"] == f"{17 * 17 * 3 * 4 + 4:,}"
    assert plan["step"].startswith("compiled by XLA for the CPU and run once")
    assert "nothing speaks against it" in result.stdout
    assert not (tmp_path / "model").exists()
