"""Trainings in this process on a network of two layers; everything but the network is real."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

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


def read_lines(folder: Any, name: str = "metrics.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (Path(folder) / name).read_text().splitlines()]


@pytest.fixture
def lines() -> Callable[..., list[dict[str, Any]]]:
    """Returns a function that reads the lines of a log in a model folder."""
    return read_lines


@pytest.fixture
def column() -> Callable[..., list[Any]]:
    """Returns a function that reads one value of each line of a log."""
    return lambda folder, name, file="metrics.jsonl": [line[name] for line in read_lines(folder, file)]


@pytest.fixture
def kill_at_checkpoint(monkeypatch):
    """Returns a function that lets the process end right after a checkpoint; what it returns undoes it."""
    from trainer.checkpoints import CheckpointKeeper

    def prepare(step, method="save"):
        original = getattr(CheckpointKeeper, method)

        def killed(self, *arguments, **keywords):
            result = original(self, *arguments, **keywords)
            if step in arguments:
                raise KeyboardInterrupt
            return result

        monkeypatch.setattr(CheckpointKeeper, method, killed)
        return lambda: monkeypatch.setattr(CheckpointKeeper, method, original)

    return prepare
