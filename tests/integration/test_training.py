"""Trainings in processes of their own: killed and resumed, and on two workers, with a real network."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

pytestmark = pytest.mark.slow

DEADLINE_SECONDS = 200.0
STEPS = 6

PROGRAM = "import sys; from bench.cli import main; main(sys.argv[1:])"


@pytest.fixture(scope="module")
def data(tmp_path_factory, make_record, put_shards):
    folder = tmp_path_factory.mktemp("training") / "data"
    records = [make_record(index, label=index % 3 + 1, height=20, width=20) for index in range(12)]
    put_shards(folder, [records[:6], records[6:]])
    return put_shards(folder, [records[:5]], split="validation")


def start(data, folder, *words):
    command = [
        sys.executable, "-c", PROGRAM, "train", "--data-dir", data, "--model-dir", folder, "--model",
        "resnet18", "--image-size", 17, "--width-multiplier", 0.05, "--num-classes", 4,
        "--train-batch-size", 4, "--shuffle-buffer-size", 8, "--seed", 3, "--deterministic",
        "--no-summaries", "--learning-rate", 1, *words,
    ]  # fmt: skip
    environment = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
    return subprocess.Popen(
        list(map(str, command)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )


def finish(process):
    stdout, stderr = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0, stderr
    return stdout, stderr


def lines(folder, name="metrics.jsonl"):
    path = folder / name
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_killed_training_goes_on_to_the_same_bits(data, tmp_path):
    words = ("--train-steps", STEPS, "--save-steps", 1, "--train-steps-per-eval", 4, "--echo-factor", 2)
    finish(start(data, tmp_path / "whole", *words))
    killed = start(data, tmp_path / "killed", *words)
    deadline = time.monotonic() + DEADLINE_SECONDS
    # Killed wherever it happens to be once the third step has a line.
    log = tmp_path / "killed" / "metrics.jsonl"
    while not log.exists() or log.read_bytes().count(b"\n") < 3:
        assert killed.poll() is None and time.monotonic() < deadline
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    _, stderr = finish(start(data, tmp_path / "killed", *words))
    assert "Going on from the checkpoint of step" in stderr
    whole, resumed = lines(tmp_path / "whole"), lines(tmp_path / "killed")
    assert resumed == whole
    assert [line["step"] for line in whole] == list(range(1, STEPS + 1))
    assert lines(tmp_path / "killed", "evaluations.jsonl") == lines(tmp_path / "whole", "evaluations.jsonl")


def test_two_workers_on_this_host_train_one_model_and_go_on_together(data, tmp_path):
    # Without a shuffle after it, the echo stands side by side: a batch of two on each host has one fresh.
    words = ("--echo-factor", 2, "--echo-shuffle", "none", "--local-workers", 2)
    _, stderr = finish(start(data, tmp_path / "two", *words, "--train-steps", 2))
    assert "[worker 0] Training on CPU of 2 workers: 2 replicas, 2 workers" in stderr
    assert "[worker 1] Training on CPU of 2 workers: 2 replicas, 2 workers" in stderr
    (evaluation,) = lines(tmp_path / "two", "evaluations.jsonl")
    assert (evaluation["step"], evaluation["examples"]) == (2, 5)
    finish(start(data, tmp_path / "two", *words, "--train-steps", 3, "--mode", "train"))
    found = lines(tmp_path / "two")
    assert [(line["step"], line["examples_fresh"], line["examples_trained"]) for line in found] == [
        (1, 2, 4),
        (2, 4, 8),
        (3, 6, 12),
    ]
    assert np.isfinite([line["loss"] for line in found]).all()
