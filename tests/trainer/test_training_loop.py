from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from trainer.training_loop import HOST, LoopStatus, TimedStep, TrainingLoop


class Weights:
    """A step that only counts: the loss is the sum of the labels, the weight the number of steps done."""

    def __init__(self, loss: Callable[[Any, Any], Any] | None = None) -> None:
        self.count = tf.Variable(0.0)
        self._loss = loss or (lambda label, step: tf.cast(tf.reduce_sum(label), tf.float32))

    def step(self, image: Any, label: Any, step: Any) -> Any:
        self.count.assign_add(1.0)
        return self._loss(label, step)


def dataset_of(labels: list[int], batch_size: int = 2) -> tf.data.Dataset:
    features = {
        "image": tf.zeros([len(labels), 8, 8, 3]),
        "label": tf.constant(labels, tf.int32),
        "name": tf.strings.as_string(tf.range(len(labels))),
        "use": tf.zeros([len(labels), 2]),
    }
    return tf.data.Dataset.from_tensor_slices(features).batch(batch_size)


def loop_for(dataset: tf.data.Dataset, weights: Weights, device: str = HOST, most: int = 100) -> TrainingLoop:
    step = tf.function(weights.step, autograph=False)
    return TrainingLoop(step, dataset.element_spec, 8, 10, device, most)


def run(
    labels: list[int], weights: Weights | None = None, limit: int = 100
) -> tuple[LoopStatus, list[int], list[TimedStep]]:
    dataset = dataset_of(labels)
    loop = loop_for(dataset, weights or Weights())
    status, outside, _ = loop.run(iter(dataset), limit, 0)
    return status, outside, list(loop.finished_steps())


def test_every_batch_is_one_step_and_the_smaller_last_one_counts_exactly() -> None:
    weights = Weights()
    status, outside, steps = run([1, 2, 3, 4, 5], weights)
    assert (status, outside) == (LoopStatus.DATASET_ENDED, [])
    assert [step.examples for step in steps] == [2, 2, 1]
    assert [step.loss for step in steps] == [3, 7, 5]
    assert [step.tags["name"].tolist() for step in steps] == [[b"0", b"1"], [b"2", b"3"], [b"4"]]
    assert [step.tags["use"].shape for step in steps] == [(2, 2), (2, 2), (1, 2)]
    assert float(weights.count) == 3


@pytest.mark.parametrize(("limit", "calls"), [(1, [1, 1, 1, 0]), (2, [2, 1]), (3, [3, 0]), (4, [3])])
def test_loops_of_any_length_lose_and_double_no_step(limit: int, calls: list[int]) -> None:
    dataset = dataset_of([1, 2, 3, 4, 5])
    loop = loop_for(dataset, Weights())
    iterator = iter(dataset)
    counts, losses = [], []
    status = LoopStatus.LIMIT_REACHED
    while status is LoopStatus.LIMIT_REACHED:
        status, _, _ = loop.run(iterator, limit, sum(counts))
        steps = list(loop.finished_steps())
        counts.append(len(steps))
        losses += [step.loss for step in steps]
    assert counts == calls
    assert losses == [3, 7, 5]


def test_empty_dataset_ends_without_a_step() -> None:
    status, _, steps = run([])
    assert (status, steps) == (LoopStatus.DATASET_ENDED, [])


def test_time_stamps_follow_one_another() -> None:
    # Many and short steps: an order that is left to chance goes wrong in some of them.
    dataset = dataset_of([1] * 600)
    loop = loop_for(dataset, Weights(), most=300)
    _, _, began = loop.run(iter(dataset), 300, 0)
    steps = list(loop.finished_steps())
    assert len(steps) == 300
    times = [began]
    for step in steps:
        times += [step.arrived_seconds, step.started_seconds, step.ended_seconds]
    assert times == sorted(times)
    assert all(step.arrived_seconds == step.started_seconds for step in steps)  # no copy on the host


def test_waiting_for_a_batch_and_working_on_it_are_told_apart() -> None:
    def slow_next(element: dict[str, Any]) -> dict[str, Any]:
        with tf.control_dependencies([sleep(0.05)]):
            return {name: tf.identity(value) for name, value in element.items()}

    def sleep(seconds: float) -> Any:
        import time

        return tf.numpy_function(lambda: (time.sleep(seconds), np.float32(0))[1], [], tf.float32)

    # tf.data would add a prefetch of its own, which hides the second wait behind the first step.
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    dataset = dataset_of([1, 2, 3, 4]).map(slow_next).with_options(options)
    loop = loop_for(dataset, Weights(lambda label, step: sleep(0.1)))
    _, _, began = loop.run(iter(dataset), 100, 0)
    first, second = loop.finished_steps()
    assert first.arrived_seconds - began >= 0.05
    assert first.ended_seconds - first.started_seconds >= 0.1
    assert second.arrived_seconds - first.ended_seconds >= 0.05
    assert second.ended_seconds - second.started_seconds >= 0.1


@pytest.mark.parametrize("bad", [-1, 10, 2**31 - 1])
@pytest.mark.parametrize("place", [0, 2, 4])
def test_label_outside_the_range_stops_before_its_batch_is_trained(bad: int, place: int) -> None:
    labels = [1, 2, 3, 4, 5]
    labels[place] = bad
    weights = Weights()
    status, outside, steps = run(labels, weights)
    assert (status, outside) == (LoopStatus.LABELS_OUTSIDE, [bad])
    assert len(steps) == float(weights.count) == place // 2


def test_first_and_last_label_of_the_range_are_trained() -> None:
    status, _, steps = run([0, 9])
    assert (status, len(steps)) == (LoopStatus.DATASET_ENDED, 1)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_loss_that_is_not_finite_stops_after_its_step(bad: float) -> None:
    weights = Weights(lambda label, step: tf.where(step == 1, bad, 0.5))
    status, _, steps = run([1, 2, 3, 4, 5, 6], weights)
    assert status is LoopStatus.LOSS_NOT_FINITE
    np.testing.assert_equal([step.loss for step in steps], [0.5, bad])
    assert float(weights.count) == 2


def test_steps_before_an_error_of_the_pipeline_are_kept() -> None:
    def check(element: dict[str, Any]) -> dict[str, Any]:
        with tf.control_dependencies([tf.debugging.assert_less(element["label"], 5, "unreadable")]):
            return {name: tf.identity(value) for name, value in element.items()}

    dataset = dataset_of([1, 2, 3, 4, 5, 6]).map(check)
    loop = loop_for(dataset, Weights())
    with pytest.raises(tf.errors.InvalidArgumentError, match="unreadable"):
        loop.run(iter(dataset), 100, 0)
    assert [step.loss for step in loop.finished_steps()] == [3, 7]
    assert list(loop.finished_steps()) == []


def test_number_of_the_step_goes_on_from_the_first() -> None:
    dataset = dataset_of([1, 2, 3, 4])
    loop = loop_for(dataset, Weights(lambda label, step: tf.cast(step, tf.float32)))
    loop.run(iter(dataset), 100, 40)
    assert [step.loss for step in loop.finished_steps()] == [40, 41]


def test_stopped_loop_does_no_step_until_it_is_reset() -> None:
    dataset = dataset_of([1, 2, 3, 4])
    loop = loop_for(dataset, Weights())
    iterator = iter(dataset)
    loop.stop()
    loop.run(iterator, 100, 0)
    assert list(loop.finished_steps()) == []
    loop.reset()
    loop.run(iterator, 100, 0)
    assert len(list(loop.finished_steps())) == 2


def test_image_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError):
        loop_for(dataset_of([1, 2]).map(lambda e: e | {"image": tf.zeros([2, 9, 9, 3])}), Weights())


SECOND_DEVICE = """
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from trainer.training_loop import TrainingLoop
device = "/device:CPU:1"
with tf.device(device):
    count = tf.Variable(0.0)
def step(image, label, step):
    with tf.device(device):
        count.assign_add(tf.reduce_sum(tf.cast(image, tf.float32)))
        return count.read_value()
data = {"image": tf.ones([5, 8, 8, 3], tf.uint8), "label": tf.range(5), "name": tf.constant(list("abcde"))}
dataset = tf.data.Dataset.from_tensor_slices(data).batch(2)
loop = TrainingLoop(tf.function(step, autograph=False), dataset.element_spec, 8, 10, device, 100)
loop.run(iter(dataset), 100, 0)
steps = list(loop.finished_steps())
assert [step.loss for step in steps] == [384, 768, 960], steps
assert [step.examples for step in steps] == [2, 2, 1], steps
assert all(s.arrived_seconds <= s.started_seconds <= s.ended_seconds for s in steps), steps
"""


@pytest.mark.slow
def test_batches_are_copied_to_a_device_other_than_the_host() -> None:
    done = subprocess.run([sys.executable, "-c", SECOND_DEVICE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
