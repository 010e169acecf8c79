"""Resume, signals and refusals: what a model folder guarantees."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from trainer.learning_rate import LearningRateSchedule

BATCH = 4


@pytest.mark.parametrize(
    "words",
    [
        ("--echo-factor", 2.5),
        pytest.param(
            ("--echo-factor", 3, "--insert-point", "after_transfer", "--reaugment-on-device"),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_killed_run_that_goes_on_equals_one_that_was_not_killed(
    train, tmp_path, words, lines, kill_at_checkpoint
):
    words = ("--mode", "train", "--train-steps", 9, "--save-steps", 4, *words)
    whole = tmp_path / "whole"
    train(*words, folder=whole)
    undo = kill_at_checkpoint(4)
    train(*words, code=130)
    undo()
    # As after a kill in the middle: lines beyond the checkpoint, the last of them half written.
    log = tmp_path / "model" / "metrics.jsonl"
    log.write_bytes(log.read_bytes() + b'{"step": 5, "loss": 9.0}\n{"step": 6, "lo')
    result = train(*words)
    assert "Going on from the checkpoint of step 4" in result.stderr
    assert "Warning" not in result.stderr
    assert lines(tmp_path / "model") == lines(whole)


@pytest.mark.parametrize("stopped_at", [3, pytest.param(8, marks=pytest.mark.slow)])
def test_warm_up_is_not_begun_again_after_a_resume(train, tmp_path, stopped_at, column, kill_at_checkpoint):
    """TN-01. Two steps an epoch: one cold epoch, two in which the rate climbs."""
    words = ("--mode", "train", "--examples-per-epoch", 8, "--use-learning-rate-warmup",
             "--cold-epochs", 1, "--warmup-epochs", 2, "--learning-rate-decay-epochs", 1)  # fmt: skip
    words += ("--train-steps", 12, "--save-steps", stopped_at)
    undo = kill_at_checkpoint(stopped_at)
    train(*words, code=130)
    undo()
    train(*words)
    schedule = LearningRateSchedule(BATCH, 8, decay_epochs=1, warm_up=True, cold_epochs=1, warm_up_epochs=2)
    assert column(tmp_path / "model", "learning_rate") == [schedule.at(step) for step in range(12)]
    assert len(set(column(tmp_path / "model", "learning_rate"))) >= 5


def test_resumed_train_and_eval_repeats_no_evaluation(train, tmp_path, column, kill_at_checkpoint):
    """TN-05."""
    words = ("--train-steps", 6, "--train-steps-per-eval", 2)
    undo = kill_at_checkpoint(4, "keep_best")
    train(*words, code=130)
    undo()
    folder = tmp_path / "model"
    assert column(folder, "step", "evaluations.jsonl") == [2, 4]
    result = train(*words)
    assert "Evaluating step 6" in result.stderr and "Evaluating step 4" not in result.stderr
    assert column(folder, "step", "evaluations.jsonl") == [2, 4, 6]
    assert column(folder, "examples", "evaluations.jsonl") == [5, 5, 5]
    assert column(folder, "step") == [1, 2, 3, 4, 5, 6]


@pytest.mark.slow
def test_evaluation_that_a_kill_has_prevented_is_made_up_for(train, tmp_path, column, kill_at_checkpoint):
    undo = kill_at_checkpoint(2)
    train("--train-steps", 3, "--train-steps-per-eval", 2, code=130)
    undo()
    assert not (tmp_path / "model" / "evaluations.jsonl").read_text()
    train("--train-steps", 3, "--train-steps-per-eval", 2)
    assert column(tmp_path / "model", "step", "evaluations.jsonl") == [2, 3]


@pytest.mark.slow
def test_finished_training_does_nothing_and_goes_on_with_more_steps(train, tmp_path, lines, column):
    train("--train-steps", 2)
    before = lines(tmp_path / "model")
    assert "All 2 steps are done already" in train("--train-steps", 2).stderr
    assert lines(tmp_path / "model") == before
    train("--train-steps", 3)
    assert column(tmp_path / "model", "step") == [1, 2, 3]


@pytest.mark.parametrize(
    "number, code", [(signal.SIGTERM, 143), pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow)]
)
def test_signal_saves_and_exits_and_the_same_command_goes_on(
    train, tmp_path, monkeypatch, number, code, column
):
    from bench.train_log import TrainLog

    words = ("--mode", "train", "--train-steps", 5, "--save-seconds", 0)
    original = TrainLog.add

    def add(self, records, *arguments):
        original(self, records, *arguments)
        if records[0].index == 1:
            os.kill(os.getpid(), number)

    with monkeypatch.context() as signalled:
        signalled.setattr(TrainLog, "add", add)
        result = train(*words, "--iterations", 1, code=code)
    assert "the checkpoint of step 2 is saved. Run the same command again" in result.stderr
    train(*words)
    assert column(tmp_path / "model", "step") == [1, 2, 3, 4, 5]
    assert column(tmp_path / "model", "examples_trained") == [4, 8, 12, 16, 20]


def test_moved_folder_goes_on_and_the_old_place_is_not_touched(train, tmp_path, monkeypatch, column):
    """TN-09, with a relative path; all others here are absolute."""
    monkeypatch.chdir(tmp_path)
    words = ("--mode", "train", "--train-steps")
    train(*words, 3, folder="run1")
    shutil.move("run1", "run2")
    Path("run1").mkdir()
    assert "Going on from the checkpoint of step 3" in train(*words, 4, folder=tmp_path / "run2").stderr
    assert column("run2", "step") == [1, 2, 3, 4]
    assert list(Path("run1").iterdir()) == []


def test_other_number_of_classes_is_named_and_nothing_is_touched(train, tmp_path):
    """TN-12."""
    train("--mode", "train", "--train-steps", 2)
    folder = tmp_path / "model"
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    result = train("--mode", "train", "--train-steps", 4, "--num-classes", 7, code=2)
    assert "Checkpoint has 4 classes, you asked for 7" in result.stderr
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_loss_that_is_not_finite_stops_and_no_bad_checkpoint_is_kept(train, tmp_path, column):
    """TN-13."""
    result = train(
        "--mode", "train", "--learning-rate", 1e30, "--save-steps", 1, "--keep", 2, "--train-steps", 10,
        "--optimizer", "momentum", code=2,
    )  # fmt: skip
    assert "The loss of step" in result.stderr or "NaN or infinite values" in result.stderr
    folder = tmp_path / "model" / "checkpoints"
    for checkpoint in folder.glob("step-*"):
        reader = tf.train.load_checkpoint(str(checkpoint / "state"))
        for name, dtype in reader.get_variable_to_dtype_map().items():
            assert not dtype.is_floating or np.isfinite(reader.get_tensor(name)).all(), (checkpoint, name)
    assert all(np.isfinite(loss) for loss in column(tmp_path / "model", "loss"))


@pytest.mark.slow
def test_changed_input_goes_on_after_as_many_fresh_examples_and_says_so(train, tmp_path, column):
    train("--mode", "train", "--train-steps", 2)
    result = train("--mode", "train", "--train-steps", 4, "--echo-factor", 2)
    assert "Warning: the input has changed (echo_factor 1 -> 2, insert_point none -> after_augment)" in (
        result.stderr
    )
    assert column(tmp_path / "model", "examples_fresh") == [4, 8, 10, 12]


@pytest.mark.slow
def test_seed_that_was_drawn_is_kept_in_the_checkpoint(cli_invoke, data, tmp_path):
    def run(steps):
        return cli_invoke(
            "train", "--data-dir", data, "--model-dir", tmp_path / "model", "--model", "resnet18", "--mode",
            "train", "--image-size", 17, "--num-classes", 4, "--train-batch-size", 4, "--no-summaries",
            "--train-steps", steps,
        )  # fmt: skip

    assert run(1).exit_code == 0
    result = run(2)
    assert result.exit_code == 0
    assert "Warning" not in result.stderr


@pytest.mark.slow
def test_elastic_echo_goes_on_with_the_examples_that_were_not_read(train, tmp_path, column):
    words = ("--mode", "train", "--echo-factor", "elastic", "--max-echo-factor", 3)
    train(*words, "--train-steps", 3)
    train(*words, "--train-steps", 5)
    fresh, trained = (
        column(tmp_path / "model", "examples_fresh"),
        column(tmp_path / "model", "examples_trained"),
    )
    assert trained == [4, 8, 12, 16, 20]
    assert fresh == sorted(fresh) and 0 < fresh[-1] <= 20
