"""Synchronous training on four replica threads: all of them in every update, or three with one as a backup.

Run it with `python examples/sync_replicas.py`. The straggler is emulated: replica 3 sleeps before each batch.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from trainer.moving_average import MovingAverage
from trainer.optimizers import GradientDescent
from trainer.sync_replicas import ReplicaPlan, ReplicaReport, SyncReplicas

REPLICAS = 4


def batches(shard: int) -> Iterator[Any]:
    """Returns the endless batches of one replica's quarter of the numbers 0 to 1, and a parabola of them."""
    dataset = tf.data.Dataset.range(1000).shard(REPLICAS, shard).repeat()
    x = dataset.shuffle(250, seed=shard).map(lambda number: tf.cast(number, tf.float32) / 1000)
    return iter(x.map(lambda x: (x, 3 * x * x - x)).batch(25))


def train(plan: ReplicaPlan, steps: int, straggler_seconds: float) -> tuple[float, ReplicaReport]:
    """Trains and returns the loss of the averaged weights, and the account of the replicas."""
    weights = tf.Variable([0.0, 0.0, 0.0])

    def loss_of(weights: Any, x: Any, y: Any) -> Any:
        return tf.reduce_mean((weights[0] + weights[1] * x + weights[2] * x * x - y) ** 2)

    # With a signature, and traced once before the threads start: else each of them would trace it.
    @tf.function(input_signature=[tf.TensorSpec([None])] * 2)
    def gradients_of(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(weights, x, y)
        # Each replica clips its own gradients, so that one odd batch cannot drown the others.
        clipped, _ = tf.clip_by_global_norm(tape.gradient(loss, [weights]), 10.0)
        return clipped

    compiled = gradients_of.get_concrete_function()

    def replica(number: int) -> Callable[[int], Any]:
        data = batches(number)

        def gradients(step: int) -> Any:
            if number == REPLICAS - 1:
                time.sleep(straggler_seconds)
            return compiled(*next(data))

        return gradients

    averages = MovingAverage([weights], decay=0.95)
    trainer = SyncReplicas(plan, [weights], GradientDescent([weights]), learning_rate=0.3, averages=averages)
    report = trainer.run([replica(number) for number in range(REPLICAS)], steps)
    x = tf.linspace(0.0, 1.0, 100)
    return float(loss_of(averages.average(weights), x, 3 * x * x - x)), report


def main() -> None:
    """Trains twice beside a straggler."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300, help="updates of each training")
    parser.add_argument("--straggler-milliseconds", type=float, default=10.0, help="emulated, a batch")
    arguments = parser.parse_args()
    for aggregate in (REPLICAS, REPLICAS - 1):
        begun = time.monotonic()
        loss, report = train(
            ReplicaPlan(aggregate, REPLICAS), arguments.steps, arguments.straggler_milliseconds / 1e3
        )
        seconds = time.monotonic() - begun
        print(f"{aggregate} of {REPLICAS}, emulated straggler: loss {loss:.4f}, {seconds:.1f} s")
        print(f"  {report}")


if __name__ == "__main__":
    main()
