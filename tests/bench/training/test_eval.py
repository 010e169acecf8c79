"""`pipebench eval`: which weights, which checkpoint, how many examples."""

from __future__ import annotations

import json

import pytest


def test_evaluation_names_its_weights_and_counts_every_example_once(train, evaluate):
    train("--mode", "train", "--train-steps", 3)
    averaged = json.loads(evaluate("--json").stdout)
    raw = json.loads(evaluate("--raw", "--json", "--eval-batch-size", 2).stdout)
    assert (averaged["weights"], raw["weights"]) == ("average", "raw")
    assert averaged["examples"] == raw["examples"] == 5
    assert averaged["step"] == raw["step"] == 3
    assert averaged["loss"] != raw["loss"]
    assert "with averaged weights (EMA)" in evaluate().stdout
    assert (
        json.loads(evaluate("--json", "--eval-total-size", 3, "--eval-batch-size", 2).stdout)["examples"] == 3
    )


def test_averages_that_were_not_trained_are_refused_and_raw_weights_work(train, evaluate):
    """TN-07."""
    train("--mode", "train", "--train-steps", 2, "--no-moving-average")
    refused = evaluate(code=2)
    assert "checkpoint has no EMA weights; use raw weights with `--raw`" in refused.stderr
    assert "with raw weights" in evaluate("--raw").stdout


@pytest.mark.slow
def test_checkpoints_are_evaluated_by_step_best_and_as_they_come(train, evaluate, tmp_path, lines):
    train("--train-steps", 4, "--train-steps-per-eval", 2, "--keep", 2)
    best = max(
        lines(tmp_path / "model", "evaluations.jsonl"), key=lambda line: (line["accuracy"], -line["step"])
    )
    assert json.loads(evaluate("--best", "--json").stdout)["accuracy"] == best["accuracy"]
    assert json.loads(evaluate("--step", 2, "--json").stdout)["step"] == 2
    assert "There is no checkpoint to evaluate" in evaluate("--step", 3, code=2).stderr
    # The newest is the training's last: nothing is waited for.
    watched = evaluate("--watch", "--json").stdout.splitlines()
    assert [json.loads(line)["step"] for line in watched] == [4]
    assert "step 4" in train("--mode", "eval", "--train-steps", 4).stdout.lower()


def test_empty_model_folder_is_an_error_of_the_evaluation(evaluate):
    assert "There is no checkpoint to evaluate" in evaluate(code=2).stderr


@pytest.mark.slow
def test_predictions_of_the_first_examples_are_displayed(train, evaluate):
    train("--mode", "train", "--train-steps", 1)
    shown = [
        line for line in evaluate("--display-tensors").stderr.splitlines() if line.startswith("example ")
    ]
    assert [line.split(" (")[0] for line in shown] == [
        f"example {index}: label {index % 3 + 1}" for index in range(5)
    ]
