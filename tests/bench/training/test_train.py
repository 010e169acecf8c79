"""`pipebench train`: lines, counts, exports, summaries, and options that do not work."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tensorflow as tf


def test_every_step_has_a_line_and_echoed_examples_are_counted(train, tmp_path, lines, column):
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
    assert "Training on CPU: 1 replica, 1 worker" in result.stderr.splitlines()[0]


@pytest.mark.slow
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


@pytest.mark.slow
def test_fake_data_are_trained_on_without_a_folder_and_never_evaluated(cli_invoke, tmp_path, column):
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


@pytest.mark.slow
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
