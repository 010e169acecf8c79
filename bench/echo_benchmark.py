"""What the echo costs, measured in pairs: the claims of `docs/performance.md` about echoing."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import tensorflow as tf

from echoing.echo_operator import count_uses, echo
from echoing.freshness import FreshnessTracker
from trainer.emulation.accelerator import EmulatedAccelerator

IMAGE_SHAPE = (299, 299, 3)
BATCH_SIZE = 32
MIN_PAIRS = 5
SIGNIFICANCE = 0.05

STEP_SECONDS = 0.010
"""The step against which the overhead of an echo of batches is held."""


@dataclass(frozen=True)
class Comparison:
    """Two variants measured in turn, round by round.

    Attributes:
        name: what is compared.
        unit: of the figures.
        ours: one figure a round.
        other: the figure of the other variant in the same round.
        limit: the largest ratio that the project promises.
    """

    name: str
    unit: str
    ours: list[float]
    other: list[float]
    limit: float

    @property
    def ratios(self) -> list[float]:
        """Ours / other, pair by pair."""
        return [ours / other for ours, other in zip(self.ours, self.other, strict=True)]

    @property
    def ratio(self) -> float:
        """Median of the ratios."""
        return statistics.median(self.ratios)

    @property
    def keeps_promise(self) -> bool:
        """Whether the ratio is within the limit, or above it by no more than noise explains.

        One-sided sign test over the pairs: were the true ratio at the limit, each pair would be above it
        with a chance of one half. With fewer than five pairs nothing is significant, and the median decides.
        """
        if self.ratio <= self.limit:
            return True
        pairs = len(self.ratios)
        above = sum(ratio > self.limit for ratio in self.ratios)
        chance = sum(math.comb(pairs, count) for count in range(above, pairs + 1)) / 2**pairs
        return pairs >= MIN_PAIRS and chance > SIGNIFICANCE


def two_line_echo(factor: int) -> Callable[[tf.data.Dataset], tf.data.Dataset]:
    """Returns the echo of the literature: Choi et al. (2019), section 2."""
    return lambda dataset: dataset.flat_map(lambda x: tf.data.Dataset.from_tensors(x).repeat(factor))


def compare_operators(rounds: int, elements: int) -> list[Comparison]:
    """Compares the operator with the two-line form, in microseconds an output element, at e = 2.

    Args:
        rounds: pairs to measure.
        elements: outputs a measurement.
    """
    # TensorFlow places a constant once: all elements share it, so that copying is no part of the measurement.
    image = tf.zeros(IMAGE_SHAPE, tf.uint8)
    sources = {
        "scalar int64": tf.data.Dataset.range(elements // 2),
        "image uint8 299 x 299 x 3": tf.data.Dataset.range(elements // 2).map(lambda _: image),
    }
    return [
        Comparison(
            f"example echo, {name}: echo(2) / flat_map(from_tensors(x).repeat(2))",
            "us an element",
            *_in_turn(
                rounds,
                partial(_element_microseconds, source.apply(echo(2)), elements),
                partial(_element_microseconds, source.apply(two_line_echo(2)), elements),
            ),
            limit=1.0,
        )
        for name, source in sources.items()
    ]


def compare_on_device(rounds: int, steps: int) -> list[Comparison]:
    """Compares runs on an emulated device that is the limit, with and without echo, in milliseconds a step.

    Args:
        rounds: pairs to measure.
        steps: steps a measurement.
    """
    images = tf.data.Dataset.range(256).map(_numbered_image).cache().repeat()
    plain_examples = _batched(images)
    echoed_examples = _batched(images.apply(echo(2, shuffle_buffer_size=256, seed=1)))
    batch = next(iter(plain_examples))
    batches = tf.data.Dataset.from_tensors(batch).repeat()
    on_device = batches.apply(count_uses(4)).map(lambda uses, batch: {**batch, "device_uses": uses})
    pairs: list[tuple[str, tf.data.Dataset, tf.data.Dataset, float, float]] = [
        ("example echo e = 2, device-bound", echoed_examples, plain_examples, 0.04, 1.05),
        ("batch echo e = 4, 10 ms step", batches.apply(echo(4)), batches, STEP_SECONDS, 1.01),
        ("after_transfer echo e = 4, 10 ms step", on_device, batches, STEP_SECONDS, 1.01),
    ]
    accounts = Comparison(
        "freshness accounts, 10 ms step: with / without",
        "ms a step",
        *_in_turn(
            rounds,
            partial(_step_milliseconds, batches, steps, STEP_SECONDS, FreshnessTracker()),
            partial(_step_milliseconds, batches, steps, STEP_SECONDS),
        ),
        limit=1.01,
    )
    return [
        accounts,
        *(
            Comparison(
                f"{name}: with / without",
                "ms a step",
                *_in_turn(
                    rounds,
                    partial(_step_milliseconds, ours, steps, seconds),
                    partial(_step_milliseconds, plain, steps, seconds),
                ),
                limit=limit,
            )
            for name, ours, plain, seconds, limit in pairs
        ),
    ]


def _numbered_image(index: Any) -> dict[str, Any]:
    return {"image": tf.fill(IMAGE_SHAPE, tf.cast(index % 256, tf.uint8)), "label": tf.cast(index, tf.int32)}


def _batched(examples: tf.data.Dataset) -> tf.data.Dataset:
    return examples.batch(BATCH_SIZE, drop_remainder=True, num_parallel_calls=2).prefetch(2)


def _element_microseconds(dataset: tf.data.Dataset, elements: int) -> float:
    counting = dataset.reduce
    begun = time.perf_counter()
    count = int(counting(np.int64(0), lambda count, _: count + 1))
    seconds = time.perf_counter() - begun
    assert count == elements, f"{count} elements instead of {elements}"
    return seconds / elements * 1e6


def _step_milliseconds(
    dataset: tf.data.Dataset, steps: int, step_seconds: float, tracker: FreshnessTracker | None = None
) -> float:
    device = EmulatedAccelerator(batch_size=BATCH_SIZE, step_seconds=step_seconds)
    records: Iterator[Any] = device.steps(dataset)
    try:
        # The first steps hold start-up; what is measured runs from the end of one to the end of another.
        warm = [record.end_seconds for record in islice(records, 5)][-1]
        end = warm
        for record in islice(records, steps):
            end = record.end_seconds
            if tracker is not None:
                ids = np.arange(record.index * BATCH_SIZE, (record.index + 1) * BATCH_SIZE)
                tracker.update(ids, np.zeros(BATCH_SIZE, np.int64))
    finally:
        records.close()  # type: ignore[attr-defined]
    return (end - warm) / steps * 1e3


def _in_turn(
    rounds: int, ours: Callable[[], float], other: Callable[[], float]
) -> tuple[list[float], list[float]]:
    """Measures the two in turn, after a warm-up of each, and begins each round with the other one."""
    ours(), other()
    figures: tuple[list[float], list[float]] = ([], [])
    for index in range(rounds):
        order = [(0, ours), (1, other)] if index % 2 == 0 else [(1, other), (0, ours)]
        for place, measure in order:
            figures[place].append(measure())
    return figures
