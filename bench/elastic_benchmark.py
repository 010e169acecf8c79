"""How well an elastic echo follows a supply that changes its speed, on an emulated device."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any

import tensorflow as tf

from bench.elastic_echo import INFEED_BATCHES
from echoing.echo_operator import echo
from echoing.elastic import ElasticController, ElasticOptions
from echoing.freshness import count_fresh
from trainer.emulation.accelerator import EmulatedAccelerator

BATCH_SIZE = 32

MIN_BUSY = 0.98
MAX_EXCESS = 0.05
MAX_STEPS_TO_ONE = 60
"""What an elastic echo promises; 60 steps of 0.1 s are "a few seconds"."""

MAX_LATE_SECONDS = 0.05
"""How far the emulated slow store may catch up after it slept too long."""


@dataclass(frozen=True)
class ElasticTrace:
    """An elastic echo on an emulated device whose supply changes its speed once.

    Attributes:
        end_seconds: end of each step.
        factors: factor in force after each step.
        used_factors: trained / fresh of each step's batch, or 0 where none was fresh.
        busy: AU over the second half of the slow supply.
        mean_factor: trained / fresh over the same steps.
        smallest_factor: device rate / supply rate over the same steps: the factor that just fills the device.
        steps_to_one: steps after the supply had sped up until the factor was 1 again; None if it never was.
        seconds_to_one: the same in seconds.
    """

    end_seconds: list[float]
    factors: list[float]
    used_factors: list[float]
    busy: float
    mean_factor: float
    smallest_factor: float
    steps_to_one: int | None
    seconds_to_one: float | None

    @property
    def promises(self) -> list[tuple[str, bool]]:
        """What the project promises of an elastic echo, and whether this trace keeps it."""
        excess = self.mean_factor / self.smallest_factor - 1
        back = "never" if self.steps_to_one is None else f"after {self.steps_to_one} steps"
        return [
            (f"R = 3: device busy {self.busy:.1%}, promised 98 %", self.busy >= MIN_BUSY),
            (
                f"R = 3: factor {self.mean_factor:.3f} on average, {excess:+.1%} of the "
                f"{self.smallest_factor:.3f} that would just do, promised 5 %",
                abs(excess) <= MAX_EXCESS,
            ),
            (
                f"R = 1: factor 1 again {back}, promised {MAX_STEPS_TO_ONE}",
                self.steps_to_one is not None and self.steps_to_one <= MAX_STEPS_TO_ONE,
            ),
        ]


def trace_elastic(
    slow_steps: int, fast_steps: int, step_seconds: float = 0.1, ratio: float = 3.0
) -> ElasticTrace:
    """Runs an elastic echo of examples while the supply is slow (R = `ratio`), then fast (R = 1).

    The supply sleeps for every 16 examples, in TensorFlow's own sleep dataset: an emulated slow store.

    Args:
        slow_steps: steps with the slow supply.
        fast_steps: steps with the fast one.
        step_seconds: step time of the emulated device for a batch of 32.
        ratio: R of the slow supply.
    """
    device_rate = BATCH_SIZE / step_seconds
    factor = tf.Variable(1.0, trainable=False)
    is_fast = tf.Variable(False, trainable=False)
    controller = ElasticController(ElasticOptions(max_factor=8, settle_steps=2 + INFEED_BATCHES + 1))
    # A supply of exactly the device's rate could never fill the buffers again: "R = 1" is a little faster.
    supply = _paced(device_rate / ratio, device_rate * 1.05, is_fast)
    dataset = (
        supply.apply(echo(factor, with_repeat_index=True))
        .map(lambda repeat, _: {"image": tf.zeros([8, 8, 3]), "label": 0, "repeat_index": repeat})
        .batch(BATCH_SIZE, drop_remainder=True)
        .prefetch(2)
    )
    device = EmulatedAccelerator(batch_size=BATCH_SIZE, step_seconds=step_seconds)
    ends: list[float] = []
    factors: list[float] = []
    fresh_counts: list[int] = []
    waits: list[float] = []
    records = device.steps(dataset)
    try:
        for record in islice(records, slow_steps + fast_steps):
            fresh = count_fresh(record.tags["repeat_index"])
            factor.assign(
                controller.observe(record.wait_seconds, record.busy_seconds, fresh, record.examples)
            )
            ends.append(record.end_seconds)
            factors.append(controller.factor)
            fresh_counts.append(fresh)
            waits.append(record.wait_seconds)
            if record.index + 1 == slow_steps:
                is_fast.assign(True)
    finally:
        records.close()  # type: ignore[attr-defined]
    settled = slice(slow_steps // 2, slow_steps)
    steps = slow_steps - slow_steps // 2
    span = ends[slow_steps - 1] - ends[slow_steps // 2 - 1]
    back = next((i for i in range(slow_steps, len(factors)) if factors[i] == 1.0), None)
    return ElasticTrace(
        end_seconds=[end - ends[0] for end in ends],
        factors=factors,
        used_factors=[BATCH_SIZE / fresh if fresh else 0.0 for fresh in fresh_counts],
        busy=1.0 - sum(waits[settled]) / span,
        mean_factor=steps * BATCH_SIZE / sum(fresh_counts[settled]),
        smallest_factor=device_rate / (sum(fresh_counts[settled]) / span),
        steps_to_one=None if back is None else back - slow_steps + 1,
        seconds_to_one=None if back is None else ends[back] - ends[slow_steps - 1],
    )


def _paced(slow_rate: float, fast_rate: float, is_fast: tf.Variable) -> tf.data.Dataset:
    """Returns an endless supply of numbers at one of two rates, in examples a second."""
    block = 16

    def schedule(last_due: Any, number: Any) -> tuple[Any, Any]:
        rate = tf.where(is_fast.read_value(), fast_rate, slow_rate)
        # From the last block's due time, so that oversleeping does not add up; but what a busy consumer did
        # not take is lost, as with a real store.
        due = tf.maximum(last_due, tf.timestamp() - MAX_LATE_SECONDS) + tf.cast(block / rate, tf.float64)
        return due, (due, number)

    def blocks(due: Any, number: Any) -> tf.data.Dataset:
        sleeping = _sleep(tf.data.Dataset.from_tensors(0).repeat(), 1000)
        over = sleeping.map(lambda _: tf.timestamp()).take_while(lambda now: now < due)
        nothing = over.filter(lambda _: False).map(lambda _: number)
        return nothing.concatenate(tf.data.Dataset.range(block).map(lambda i: number * block + i))

    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    numbers = tf.data.Dataset.range(2**40)
    return numbers.scan(tf.zeros([], tf.float64), schedule).flat_map(blocks).with_options(options)


def _sleep(dataset: tf.data.Dataset, microseconds: int) -> tf.data.Dataset:
    from tensorflow.python.data.experimental.ops import testing

    return dataset.apply(testing.sleep(microseconds))
