"""`pipebench train` and `eval` in this process, on a network of two layers; everything else is real."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from trainer.learning_rate import LearningRateSchedule
from trainer.models.model import Outputs

BATCH = 4
RECORDS = 10


class TinyNetwork(tf.Module):
    """A linear layer on the mean colour and one moving average, which it never moves."""

    def __init__(self, num_classes, seed, **_):
        super().__init__(name="TinyNetwork")
        values = np.random.default_rng(seed).normal(size=(3, num_classes)).astype(np.float32)
        self.dense = tf.Variable(values, name="dense/weights")
        self.mean = tf.Variable(np.zeros(3, np.float32), name="mean", trainable=False)
        self.moving_variables = (self.mean,)
        self.regularized_variables = (self.dense,)

    def __call__(self, images, training, step=0, replica=0):
        if images.dtype == tf.uint8:
            images = tf.cast(images, tf.float32) / 127.5 - 1.0
        return Outputs(tf.reduce_mean(tf.cast(images, tf.float32), [1, 2]) @ self.dense - self.mean[0])


@pytest.fixture(autouse=True)
def tiny_network(monkeypatch):
    """Lets sessions train a `TinyNetwork`, whatever the name of their model.

    Kernels stay as they are, since `--deterministic` would change them for all tests after these: those of
    the network are deterministic on a CPU in any case.
    """
    for module in ("session", "strategies"):
        monkeypatch.setattr(f"trainer.{module}.use_deterministic_kernels", lambda: None)
    monkeypatch.setattr(
        "trainer.session.make_model",
        lambda name, **keywords: TinyNetwork(keywords["num_classes"], keywords["seed"]),
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory, make_record, put_shards):
    """Ten records to train on, in two shards, and five to evaluate on; three classes and the background."""
    folder = tmp_path_factory.mktemp("train") / "data"
    records = [make_record(index, label=index % 3 + 1, height=20, width=20) for index in range(RECORDS)]
    put_shards(folder, [records[:5], records[5:]])
    return put_shards(folder, [records[:5]], split="validation")


@pytest.fixture
def train(cli_invoke, data, tmp_path):
    """Returns a function that trains in `tmp_path/model` with further words."""

    def run(*words, folder=tmp_path / "model", code=0, model="resnet18"):
        result = cli_invoke(
            "train", "--data-dir", data, "--model-dir", folder, "--model", model, "--image-size", 17,
            "--num-classes", 4, "--train-batch-size", BATCH, "--shuffle-buffer-size", 4, "--seed", 3,
            "--deterministic", "--no-summaries", "--optimizer", "sgd", "--preprocess", "inception", *words,
        )  # fmt: skip
        assert result.exit_code == code, result.stderr
        return result

    return run


@pytest.fixture
def evaluate(cli_invoke, data, tmp_path):
    """Returns a function that evaluates `tmp_path/model` with further words."""

    def run(*words, folder=tmp_path / "model", code=0):
        result = cli_invoke("eval", "--data-dir", data, "--model-dir", folder, *words)
        assert result.exit_code == code, result.stderr
        return result

    return run


def lines(folder, name="metrics.jsonl"):
    return [json.loads(line) for line in (Path(folder) / name).read_text().splitlines()]


def column(folder, name, file="metrics.jsonl"):
    return [line[name] for line in lines(folder, file)]


def kill_at_checkpoint(monkeypatch, step, method="save"):
    """Lets the process be interrupted right after a checkpoint, as by a kill."""
    from trainer.checkpoints import CheckpointKeeper

    original = getattr(CheckpointKeeper, method)

    def killed(self, *arguments, **keywords):
        result = original(self, *arguments, **keywords)
        if step in arguments:
            raise KeyboardInterrupt
        return result

    monkeypatch.setattr(CheckpointKeeper, method, killed)


def test_every_step_has_a_line_and_echoed_examples_are_counted(train, tmp_path):
    result = train("--mode", "train", "--train-steps", 6, "--echo-factor", 2, "--json")
    folder = tmp_path / "model"
    assert column(folder, "step") == [1, 2, 3, 4, 5, 6]
    assert set(lines(folder)[0]) == {"step", "loss", "learning_rate", "examples_fresh", "examples_trained"}
    assert column(folder, "examples_trained") == [4, 8, 12, 16, 20, 24]
    # The shuffle of four, in blocks of two, is behind the echo: every block holds one example twice.
    assert column(folder, "examples_fresh") == [2, 4, 6, 8, 10, 12]
    document = json.loads(result.stdout)
    assert (document["step"], document["examples_fresh"], document["examples_trained"]) == (6, 12, 24)
    assert document["loss"] == column(folder, "loss")[-1]
    # TP-07: what `auto` has found stands on the first lines.
    assert "Training on CPU: 1 device(s), 1 worker(s)" in result.stderr.splitlines()[0]


@pytest.mark.parametrize(
    "words",
    [
        ("--echo-factor", 2.5),
        ("--echo-factor", 3, "--insert-point", "after_transfer", "--reaugment-on-device"),
    ],
)
def test_killed_run_that_goes_on_equals_one_that_was_not_killed(train, tmp_path, monkeypatch, words):
    words = ("--mode", "train", "--train-steps", 9, "--save-steps", 4, *words)
    whole = tmp_path / "whole"
    train(*words, folder=whole)
    with monkeypatch.context() as killed:
        kill_at_checkpoint(killed, 4)
        train(*words, code=130)
    # As after a kill in the middle: lines beyond the checkpoint, the last of them half written.
    log = tmp_path / "model" / "metrics.jsonl"
    log.write_bytes(log.read_bytes() + b'{"step": 5, "loss": 9.0}\n{"step": 6, "lo')
    result = train(*words)
    assert "Going on from the checkpoint of step 4" in result.stderr
    assert "Warning" not in result.stderr
    assert lines(tmp_path / "model") == lines(whole)


@pytest.mark.parametrize("stopped_at", [8, 3])
def test_warm_up_is_not_begun_again_after_a_resume(train, tmp_path, stopped_at):
    """TN-01. Two steps an epoch: one cold epoch, two in which the rate climbs."""
    words = ("--mode", "train", "--examples-per-epoch", 8, "--use-learning-rate-warmup",
             "--cold-epochs", 1, "--warmup-epochs", 2, "--learning-rate-decay-epochs", 1)  # fmt: skip
    train(*words, "--train-steps", stopped_at)
    train(*words, "--train-steps", 12)
    schedule = LearningRateSchedule(BATCH, 8, decay_epochs=1, warm_up=True, cold_epochs=1, warm_up_epochs=2)
    assert column(tmp_path / "model", "learning_rate") == [schedule.at(step) for step in range(12)]
    assert len(set(column(tmp_path / "model", "learning_rate"))) >= 5


def test_resumed_train_and_eval_repeats_no_evaluation(train, tmp_path, monkeypatch):
    """TN-05."""
    words = ("--train-steps", 6, "--train-steps-per-eval", 2)
    with monkeypatch.context() as killed:
        kill_at_checkpoint(killed, 4, "keep_best")
        train(*words, code=130)
    folder = tmp_path / "model"
    assert column(folder, "step", "evaluations.jsonl") == [2, 4]
    result = train(*words)
    assert "Evaluating step 6" in result.stderr and "Evaluating step 4" not in result.stderr
    assert column(folder, "step", "evaluations.jsonl") == [2, 4, 6]
    assert column(folder, "examples", "evaluations.jsonl") == [5, 5, 5]
    assert column(folder, "step") == [1, 2, 3, 4, 5, 6]


def test_evaluation_that_a_kill_has_prevented_is_made_up_for(train, tmp_path, monkeypatch):
    with monkeypatch.context() as killed:
        kill_at_checkpoint(killed, 2)
        train("--train-steps", 3, "--train-steps-per-eval", 2, code=130)
    assert not (tmp_path / "model" / "evaluations.jsonl").read_text()
    train("--train-steps", 3, "--train-steps-per-eval", 2)
    assert column(tmp_path / "model", "step", "evaluations.jsonl") == [2, 3]


def test_finished_training_does_nothing_and_goes_on_with_more_steps(train, tmp_path):
    train("--train-steps", 2)
    before = lines(tmp_path / "model")
    assert "All 2 steps are done already" in train("--train-steps", 2).stderr
    assert lines(tmp_path / "model") == before
    train("--train-steps", 3)
    assert column(tmp_path / "model", "step") == [1, 2, 3]


@pytest.mark.parametrize(
    "number, code", [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["SIGTERM", "Ctrl-C"]
)
def test_signal_saves_and_exits_and_the_same_command_goes_on(train, tmp_path, monkeypatch, number, code):
    from bench.train_log import TrainLog

    words = ("--mode", "train", "--train-steps", 5, "--save-seconds", 0)
    train(*words, folder=tmp_path / "whole")
    original = TrainLog.add

    def add(self, records, *arguments):
        original(self, records, *arguments)
        if records[0].index == 1:
            os.kill(os.getpid(), number)

    with monkeypatch.context() as signalled:
        signalled.setattr(TrainLog, "add", add)
        # Two steps: the first loop has one, the second is bounded by the limit on its time or to two.
        result = train(*words, "--iterations", 1, code=code)
    assert "the checkpoint of step 2 is saved. Run the same command again" in result.stderr
    train(*words)
    assert lines(tmp_path / "model") == lines(tmp_path / "whole")


def test_moved_folder_goes_on_and_the_old_place_is_not_touched(train, tmp_path, monkeypatch):
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


def test_loss_that_is_not_finite_stops_and_no_bad_checkpoint_is_kept(train, tmp_path):
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


def test_changed_input_goes_on_after_as_many_fresh_examples_and_says_so(train, tmp_path):
    train("--mode", "train", "--train-steps", 2)
    result = train("--mode", "train", "--train-steps", 4, "--echo-factor", 2)
    assert "Warning: the input has changed (echo_factor 1 -> 2, insert_point none -> after_augment)" in (
        result.stderr
    )
    assert column(tmp_path / "model", "examples_fresh") == [4, 8, 10, 12]


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


def test_elastic_echo_goes_on_with_the_examples_that_were_not_read(train, tmp_path):
    words = ("--mode", "train", "--echo-factor", "elastic", "--max-echo-factor", 3)
    train(*words, "--train-steps", 3)
    train(*words, "--train-steps", 5)
    fresh, trained = (
        column(tmp_path / "model", "examples_fresh"),
        column(tmp_path / "model", "examples_trained"),
    )
    assert trained == [4, 8, 12, 16, 20]
    assert fresh == sorted(fresh) and 0 < fresh[-1] <= 20


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


def test_checkpoints_are_evaluated_by_step_best_and_as_they_come(train, evaluate, tmp_path):
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


def test_predictions_of_the_first_examples_are_displayed(train, evaluate):
    train("--mode", "train", "--train-steps", 1)
    shown = [
        line for line in evaluate("--display-tensors").stderr.splitlines() if line.startswith("example ")
    ]
    assert [line.split(" (")[0] for line in shown] == [
        f"example {index}: label {index % 3 + 1}" for index in range(5)
    ]


def test_model_is_exported_once_and_predicts_from_bytes(train, tmp_path, make_record):
    export = tmp_path / "export"
    result = train("--mode", "train", "--train-steps", 2, "--export-dir", export, "--json")
    assert json.loads(result.stdout)["export_path"] == str(export / "2")
    model = tf.saved_model.load(str(export / "2"))
    jpeg = tf.io.encode_jpeg(np.full((30, 30, 3), 90, np.uint8))
    answer = model.signatures["serving_default"](image_bytes=jpeg[tf.newaxis])
    assert answer["probabilities"].shape == (1, 4)
    # Every pixel is 90 of 255; the network takes the mean of them.
    logits = (90 * 2 / 255 - 1) * np.ones(3) @ model.model.dense.numpy()
    np.testing.assert_allclose(answer["logits"][0], logits, rtol=0.02)
    assert "exported already" in train("--mode", "train", "--train-steps", 2, "--export-dir", export).stderr
    refused = train(
        "--mode", "train", "--train-steps", 2, "--export-dir", export, folder=tmp_path / "b", code=2
    )
    assert "without a version 2" in refused.stderr


def test_data_without_an_evaluation_split_are_trained_on_and_a_line_says_so(cli_invoke, small_data, tmp_path):
    words = ("train", "--data-dir", small_data, "--model-dir", tmp_path / "model", "--model", "resnet18",
             "--image-size", 17, "--train-batch-size", 4, "--train-steps", 1, "--no-summaries",
             "--num-classes", 4)  # fmt: skip
    assert "No evaluation:" in cli_invoke(*words).stderr
    assert cli_invoke(*words, "--mode", "train_and_eval").exit_code == 2


@pytest.mark.parametrize(
    "words, message",
    [
        (("--device", "gpu"), "it sees no GPU"),  # TP-07
        (("--device", "tpu"), "the name of a TPU"),  # TP-04
        (("--replicas", 8), "replicas is 8, but must be the number that there are, 1"),
        (("--image-size", 16), "image_size"),
        (("--profile-steps", "9"), "profile_steps"),
        (("--echo-factor", "elastic", "--insert-point", "after_batch"), "a number at after_batch"),
        (("--reaugment-on-device",), "reaugment_on_device"),
    ],
)
def test_options_that_do_not_work_are_errors_and_leave_no_folder(train, tmp_path, words, message):
    if "gpu" in words and tf.config.list_physical_devices("GPU"):
        pytest.skip("There is a GPU.")
    result = train(*words, "--train-steps", 1, code=2)
    assert message in result.stderr
    assert not (tmp_path / "model").exists()


def test_fake_data_are_trained_on_without_a_folder_and_never_evaluated(cli_invoke, tmp_path):
    words = ("train", "--use-data", "fake", "--model-dir", tmp_path / "m", "--model", "resnet18",
             "--image-size", 17, "--train-batch-size", 4, "--no-summaries", "--echo-factor", 2)  # fmt: skip
    result = cli_invoke(*words, "--train-steps", 2)
    assert result.exit_code == 0, result.stderr
    assert "Fake data: one random image and one label" in result.stderr
    assert column(tmp_path / "m", "examples_trained") == [4, 8]
    assert cli_invoke(*words, "--train-steps", 3).exit_code == 0
    assert column(tmp_path / "m", "step") == [1, 2, 3]
    refused = cli_invoke(*words, "--train-steps", 3, "--mode", "train_and_eval")
    assert refused.exit_code == 2 and "no end to evaluate" in refused.stderr


def test_summaries_and_a_profile_are_written_where_tensorboard_looks(cli_invoke, data, tmp_path):
    result = cli_invoke(
        "train", "--data-dir", data, "--model-dir", tmp_path / "m", "--model", "resnet18", "--image-size", 17,
        "--num-classes", 4, "--train-batch-size", 4, "--train-steps", 3, "--summary-steps", 2,
        "--profile-steps", "2,2",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    (events,) = (tmp_path / "m").glob("events.out.tfevents.*")
    names = {
        (event.step, value.tag)
        for event in tf.compat.v1.train.summary_iterator(str(events))
        for value in event.summary.value
    }
    for name in ("loss", "learning_rate", "epoch", "images_per_second_fresh", "images_per_second_trained",
                 "accelerator_utilization", "echo_factor"):  # fmt: skip
        assert {step for step, found in names if found == name} == {2, 3}, name
    assert list((tmp_path / "m" / "eval").glob("events.out.tfevents.*"))
    assert list((tmp_path / "m" / "plugins" / "profile").rglob("*.xplane.pb"))


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


def test_dry_run_compiles_the_step_and_prints_the_plan(train, tmp_path):
    result = train(
        "--dry-run", "--tpu", "any", "--train-steps", 10, "--train-batch-size", 8, "--echo-factor", 2
    )
    plan = dict(line.split("  ", 1) for line in result.stdout.splitlines() if "  " in line)
    plan = {name: value.strip() for name, value in plan.items()}
    assert (plan["hosts"], plan["replicas"], plan["batch"]) == ("1", "8", "8: 8 a host, 1 a replica")
    assert plan["steps a pass"] == "2.5"  # 10 records twice in batches of 8
    assert plan["bytes per image sent"] == f"{17 * 17 * 3 * 4 + 4:,}"
    assert plan["step"].startswith("compiled by XLA for the CPU and run once")
    assert "nothing speaks against it" in result.stdout
    assert not (tmp_path / "model").exists()
