"""Trains a tiny network under one strategy and prints what came of it as JSON; the tests compare the runs.

Logical devices and workers need a process of their own: `python session_job.py HOW RUNS`, where HOW is one of
`cpu`, `mirrored N` and `worker I HOSTS`.
"""

from __future__ import annotations

import contextlib
import json
import sys
from typing import Any, ClassVar
from unittest import mock

import numpy as np
import tensorflow as tf

from trainer.device_echo import DeviceEcho
from trainer.evaluation import Evaluation
from trainer.models.batch_norm import BatchNorm
from trainer.models.model import Outputs
from trainer.placement import Placement
from trainer.session import TrainEnd, TrainSession
from trainer.step import StepRecord
from trainer.strategies import StrategyOptions, make_strategy
from trainer.train_options import TrainOptions

SIZE, CLASSES, BATCH_SIZE, BATCHES, USES = 32, 7, 16, 6, (1, 3, 2, 1, 2, 1)


class TinyNetwork(tf.Module):
    """A convolution, batch normalisation if asked for, and a linear layer on the mean."""

    replicas_seen: ClassVar[list[Any]] = []

    def __init__(self, num_classes: int, seed: int, normalised: bool = False) -> None:
        super().__init__(name="TinyNetwork")
        draw = np.random.default_rng(seed).normal
        self.kernel = tf.Variable(draw(size=(3, 3, 3, 4)).astype(np.float32), name="conv/weights")
        self.dense = tf.Variable(draw(size=(4, num_classes)).astype(np.float32), name="dense/weights")
        self.bias = tf.Variable(np.zeros(num_classes, np.float32), name="dense/biases")
        self.norm = BatchNorm(4, "conv") if normalised else None
        self.moving_variables: tuple[Any, ...] = ()
        if self.norm is not None:
            self.moving_variables = (self.norm.moving_mean, self.norm.moving_variance)

    @property
    def regularized_variables(self) -> tuple[Any, ...]:
        return (self.kernel, self.dense)

    def __call__(self, images: Any, training: bool, step: Any = 0, replica: Any = 0) -> Outputs:
        if training:
            TinyNetwork.replicas_seen.append(tf.get_static_value(tf.convert_to_tensor(replica)))
        if images.dtype == tf.uint8:
            images = tf.cast(images, tf.float32) / 127.5 - 1.0
        features = tf.nn.conv2d(images, self.kernel, 2, "SAME")
        moments: list[Any] = []
        if self.norm is not None:
            features = self.norm(features, moments if training else None)
        features = tf.nn.relu(features)
        logits = tf.reduce_mean(features, [1, 2]) @ self.dense + self.bias
        return Outputs(logits, 0.5 * logits if training else None, tuple(moments))


def tiny_network(normalised: bool = False) -> Any:
    """Returns a context in which sessions train a `TinyNetwork`, whatever the name of their model."""

    def make(name: str, **keywords: Any) -> TinyNetwork:
        return TinyNetwork(keywords["num_classes"], keywords["seed"], normalised)

    return mock.patch("trainer.session.make_model", make)


def options(**changes: Any) -> TrainOptions:
    values = {
        "batch_size": BATCH_SIZE,
        "train_steps": 100,
        "model": "resnet18",
        "image_size": SIZE,
        "num_classes": CLASSES,
        "examples_per_epoch": 10 * BATCH_SIZE,
        "learning_rate": 8.0,
        "optimizer": "momentum",
        "steps_per_loop": 4,
        "seed": 3,
    }
    return TrainOptions(**values | changes)  # type: ignore[arg-type]


def examples(count: int, seed: int = 0) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, CLASSES, count).astype(np.int32)
    images = generator.uniform(-1, 1, (count, SIZE, SIZE, 3)).astype(np.float32)
    return {"image": images * np.float32(1 + labels[:, None, None, None] / CLASSES), "label": labels}


def share(placement: Placement, batch: dict[str, Any]) -> dict[str, Any]:
    """Returns this worker's part of each batch."""
    size = BATCH_SIZE // placement.worker_count
    first = placement.worker_index * size
    return {name: value[first : first + size] for name, value in batch.items()}


def batches(placement: Placement, uses: tuple[int, ...] = (), first: int = 0, layout: str = "nhwc") -> Any:
    dataset = tf.data.Dataset.from_tensor_slices(examples(BATCH_SIZE * BATCHES))
    dataset = dataset.batch(BATCH_SIZE, drop_remainder=True).map(lambda batch: share(placement, batch))
    if layout == "hwcn":
        dataset = dataset.map(lambda batch: batch | {"image": tf.transpose(batch["image"], [1, 2, 3, 0])})
    if uses:
        counts = tf.data.Dataset.from_tensor_slices(np.array(uses, np.int64))
        dataset = tf.data.Dataset.zip(dataset, counts).map(lambda batch, use: batch | {"device_uses": use})
    return dataset.skip(first).repeat()


def evaluation_data(placement: Placement, count: int, batch_size: int, layout: str = "nhwc") -> Any:
    dataset = tf.data.Dataset.from_tensor_slices(examples(count, seed=1))
    dataset = dataset.shard(placement.worker_count, placement.worker_index).batch(batch_size)
    if layout == "hwcn":
        dataset = dataset.map(lambda batch: batch | {"image": tf.transpose(batch["image"], [1, 2, 3, 0])})
    return dataset


def values_of(variables: Any) -> list[list[float]]:
    return [np.asarray(variable.numpy(), np.float64).ravel().tolist() for variable in variables]


def copies_are_equal(session: TrainSession) -> bool:
    """Returns whether every replica of this process has the same bits in all of its variables."""
    assert session.average is not None
    everything = (
        *session.model.trainable_variables,
        *session.model.moving_variables,
        *session.optimizer.variables,
        *session.average.variables,
    )
    return all(
        np.array_equal(copies[0].numpy(), copy.numpy())
        for copies in map(session.placement.strategy.experimental_local_results, everything)
        for copy in copies
    )


def train(
    session: TrainSession, dataset: Any, until: int, batch: int = 0, uses: int = 0
) -> tuple[list[StepRecord], dict[str, int]]:
    records: list[StepRecord] = []
    batches_in = session.open(dataset, batch, uses)
    assert session.train(batches_in, until, records.extend) is TrainEnd.STEP_REACHED
    return records, batches_in.position


def evaluation_of(result: Evaluation) -> list[Any]:
    return [result.examples, result.correct, result.correct_top_5, result.mean_loss, result.weights]


def run_plain(placement: Placement) -> dict[str, Any]:
    session = TrainSession(options(), placement)
    records, position = train(session, batches(placement), 9)
    weights = values_of(session.model.trainable_variables)
    data = evaluation_data(placement, 45, 8)
    raw, averaged = session.evaluate(data), session.evaluate(data, average=True)
    again = session.evaluate(evaluation_data(placement, 45, 7))
    assert weights == values_of(session.model.trainable_variables)
    return {
        "losses": [record.loss for record in records],
        "indices": [record.index for record in records],
        "examples": [record.examples for record in records],
        "position": position,
        "weights": weights,
        "averages": values_of(session.average.variables) if session.average else [],
        "raw": evaluation_of(raw),
        "raw_again": evaluation_of(again),
        "average": evaluation_of(averaged),
        "copies_are_equal": copies_are_equal(session),
        "replicas_seen": sorted(
            {int(replica) for replica in TinyNetwork.replicas_seen if replica is not None}
        ),
    }


def run_echoed(placement: Placement) -> dict[str, Any]:
    """Batches held on the devices and changed there; stopped in the middle of a batch and gone on with."""
    changed = options(device_echo=DeviceEcho(reaugment=True, seed=5))
    session = TrainSession(changed, placement)
    records, _ = train(session, batches(placement, USES), 10)
    first = TrainSession(changed, placement)
    before, position = train(first, batches(placement, USES), 3)
    after, end = train(
        first, batches(placement, USES, first=position["batch"]), 10, position["batch"], position["uses"]
    )
    return {
        "losses": [record.loss for record in records],
        "repeats": [record.device_repeat for record in records],
        "resumed_losses": [record.loss for record in before + after],
        "resumed_repeats": [record.device_repeat for record in before + after],
        "positions": [position, end],
    }


def run_transposed(placement: Placement) -> dict[str, Any]:
    """As `run_plain`, with images that come transposed."""
    session = TrainSession(options(layout="hwcn"), placement)
    records, _ = train(session, batches(placement, layout="hwcn"), 9)
    return {
        "losses": [record.loss for record in records],
        "raw": evaluation_of(session.evaluate(evaluation_data(placement, 45, 8, "hwcn"))),
    }


def run_batch_norm(placement: Placement) -> dict[str, Any]:
    """One step with batch normalisation, whose statistics each replica takes of its own part."""
    session = TrainSession(options(), placement)
    train(session, batches(placement), 1)
    mean, variance = values_of(session.model.moving_variables)
    return {"mean": mean, "variance": variance, "copies_are_equal": copies_are_equal(session)}


def run_bitwise(placement: Placement) -> dict[str, Any]:
    """Deterministic kernels, a real network and repeats that are changed on the device."""
    echo = DeviceEcho(reaugment=True, seed=5)
    changes = options(width_multiplier=0.05, learning_rate=0.1, deterministic=True, device_echo=echo)
    session = TrainSession(changes, placement)
    records, _ = train(session, batches(placement, USES), 6)
    weights = (*session.model.trainable_variables, *session.model.moving_variables)
    return {"losses": [record.loss for record in records], "weights": values_of(weights)}


RUNS = {
    "plain": run_plain,
    "echoed": run_echoed,
    "transposed": run_transposed,
    "batch_norm": run_batch_norm,
    "bitwise": run_bitwise,
}


def results_of(placement: Placement, names: list[str]) -> dict[str, Any]:
    results: dict[str, Any] = {"replicas": placement.replicas, "device": placement.device.name}
    for name in names:
        with contextlib.nullcontext() if name == "bitwise" else tiny_network(name == "batch_norm"):
            results[name] = RUNS[name](placement)
    return results


def main(kind: str, *arguments: str) -> None:
    names = arguments[-1].split(",")
    if kind == "mirrored":
        strategy = StrategyOptions("mirrored", logical_devices=int(arguments[0]))
    elif kind == "worker":
        strategy = StrategyOptions(cluster=arguments[1], task_index=int(arguments[0]))
    else:
        strategy = StrategyOptions(kind)
    print("RESULT " + json.dumps(results_of(make_strategy(strategy), names)))


if __name__ == "__main__":
    main(*sys.argv[1:])
