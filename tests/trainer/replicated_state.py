"""Trains two replicas on logical CPU devices and prints what became of the state, as JSON.

A program of its own, run by `test_replicated_state.py`: logical devices must be set up before TensorFlow
starts. Its argument is an empty folder for checkpoints.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import tensorflow as tf

from trainer.learning_rate import LearningRateSchedule
from trainer.moving_average import MovingAverage
from trainer.optimizers import make_optimizer

STEPS = 4


def copies(variable: Any) -> list[Any]:
    return [copy.numpy().tolist() for copy in variable.values]


class Job:
    """Variables, optimizer and averages under two replicas, and their train step."""

    def __init__(self, name: str, zero_debias: bool) -> None:
        cpus = tf.config.list_physical_devices("CPU")
        if not tf.config.list_logical_devices("CPU")[1:]:
            raise SystemExit(f"{cpus} was not split in time")
        self.strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        schedule = LearningRateSchedule(256, 512, decay=0.5, decay_epochs=1)
        with self.strategy.scope():
            self.variable = tf.Variable([1.0, -2.0])
            self.step = tf.Variable(0, dtype=tf.int64, trainable=False)
            self.optimizer = make_optimizer(name, [self.variable])
            self.average = MovingAverage([self.variable], 0.9, self.step, zero_debias)
        self.checkpoint = tf.train.Checkpoint(
            model=[self.variable],
            step=self.step,
            optimizer=list(self.optimizer.variables),
            average=self.average,
        )

        def on_replica() -> None:
            context = tf.distribute.get_replica_context()
            # Replica 0 and 1 see the gradients w and 2 w; their mean is 1.5 w.
            gradient = self.variable * tf.cast(context.replica_id_in_sync_group + 1, tf.float32)
            gradient = context.all_reduce("mean", gradient)
            self.optimizer.apply([gradient], schedule(self.step.read_value()))
            self.step.assign_add(1)
            self.average.update()

        self.train = tf.function(lambda: self.strategy.run(on_replica), autograph=False)

    def state(self) -> dict[str, Any]:
        return {
            "variable": copies(self.variable),
            "average": copies(self.average.average(self.variable)),
            "slots": [copies(slot) for slot in self.optimizer.variables],
            "step": copies(self.step),
        }


def history(name: str, zero_debias: bool, folder: str) -> dict[str, Any]:
    job = Job(name, zero_debias)
    states = []
    for _ in range(STEPS):
        job.train()
        states.append(job.state())
    inside: list[dict[str, Any]] = []
    try:
        with job.average.swapped(job.strategy):
            inside.append(job.state())
            raise OSError("the evaluation failed")
    except OSError:
        after_failure = job.state()
    path = job.checkpoint.write(f"{folder}/{name}")
    resumed = Job(name, zero_debias)
    resumed.checkpoint.read(path).assert_consumed()
    restored = resumed.state()
    job.train()
    resumed.train()
    following, resumed_following = job.state(), resumed.state()
    job.average.update()
    updated = job.state()
    job.average.load()
    return {
        "states": states,
        "inside": inside[0],
        "after_failure": after_failure,
        "restored": restored,
        "next": following,
        "resumed_next": resumed_following,
        "updated_outside": updated,
        "loaded_outside": job.state(),
    }


def main() -> None:
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    folder = sys.argv[1]
    results = {name: history(name, name == "sgd", folder) for name in ("rmsprop", "momentum", "sgd")}
    print(json.dumps(results))


if __name__ == "__main__":
    main()
