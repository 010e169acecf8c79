from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from trainer.loop_report import LoopStatus, TimedStep
from trainer.training_loop import TrainingLoop
from trainer.transfer import HOST


class Weights:
    """A step that only counts: the loss is the sum of the labels, the weight the number of steps done."""

    def __init__(self, loss: Callable[[Any, Any], Any] | None = None) -> None:
        self.count = tf.Variable(0.0)
        self._loss = loss or (lambda label, step: tf.cast(tf.reduce_sum(label), tf.float32))

    def step(self, image: Any, label: Any, step: Any, repeat: Any) -> Any:
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
import sys
import tensorflow as tf
from tensorflow.python.eager import context
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from trainer.reaugment import reaugment_repeat
from trainer.training_loop import TrainingLoop
jit, uses, reaugment = (int(argument) for argument in sys.argv[1:])
device = "/device:CPU:1"
with tf.device(device):
    count = tf.Variable(0.0)
def step(image, label, step, repeat):
    with tf.device(device):
        if reaugment:
            image = reaugment_repeat(image, repeat, 0, step)
        count.assign_add(tf.reduce_sum(tf.cast(image, tf.float32)))
        return count.read_value()
data = {"image": tf.ones([5, 8, 8, 3], tf.uint8), "label": tf.range(5), "name": tf.constant(list("abcde"))}
dataset = tf.data.Dataset.from_tensor_slices(data).batch(2)
if uses:
    dataset = dataset.map(lambda element: element | {"device_uses": tf.constant(uses, tf.int64)})
number = tf.TensorSpec([], tf.int64)
step = tf.function(step, autograph=False, jit_compile=bool(jit) or None).get_concrete_function(
    dataset.element_spec["image"], dataset.element_spec["label"], number, number
)
loop = TrainingLoop(step, dataset.element_spec, 8, 10, device, 100)
context.enable_run_metadata()
loop.run(iter(dataset), 100, 0)
graphs = context.export_run_metadata().function_graphs
copies = [
    (node.attr["send_device"].s[-5:], node.attr["recv_device"].s[-5:])
    for graph in graphs for part in graph.partition_graphs for node in part.node
    if node.op == "_Send" and node.attr["T"].type == tf.uint8.as_datatype_enum
]
assert copies == [(b"CPU:0", b"CPU:1")], copies
steps = list(loop.finished_steps())
if not reaugment:
    total, losses = 0, []
    for image in (384, 384, 192):
        for _ in range(uses or 1):
            total += image
            losses.append(total)
    assert [step.loss for step in steps] == losses, steps
assert [step.examples for step in steps] == [n for n in (2, 2, 1) for _ in range(uses or 1)], steps
assert [step.device_repeat for step in steps] == list(range(uses or 1)) * 3, steps
assert all(s.arrived_seconds <= s.started_seconds <= s.ended_seconds for s in steps), steps
assert all(s.arrived_seconds == s.started_seconds for s in steps if s.device_repeat), steps
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("jit", "uses", "reaugment"), [(0, 0, 0), (0, 3, 0), (0, 2, 1), (1, 0, 0), (1, 2, 1)]
)
def test_image_is_copied_to_a_device_other_than_the_host_once_and_never_back(
    jit: int, uses: int, reaugment: int
) -> None:
    command = [sys.executable, "-c", SECOND_DEVICE, str(jit), str(uses), str(reaugment)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def repeated(labels: list[int], uses: list[int], batch_size: int = 2) -> tf.data.Dataset:
    """Batches with the uses given."""
    batches = tf.data.Dataset.zip(dataset_of(labels, batch_size), tf.data.Dataset.from_tensor_slices(uses))
    return batches.map(lambda element, use: element | {"device_uses": tf.cast(use, tf.int64)})


def run_in_loops(
    dataset: tf.data.Dataset, weights: Weights, limit: int
) -> tuple[list[int], list[TimedStep], LoopStatus, list[int]]:
    """Returns the steps done by each call, all steps, and how the last call ended."""
    loop = loop_for(dataset, weights)
    iterator, calls, steps = iter(dataset), [], []
    status = LoopStatus.LIMIT_REACHED
    while status is LoopStatus.LIMIT_REACHED:
        status, refused, _ = loop.run(iterator, limit, len(steps))
        done = list(loop.finished_steps())
        calls.append(len(done))
        steps += done
    return calls, steps, status, refused


def step_number(label: Any, step: Any) -> Any:
    return tf.cast(step, tf.float32)


@pytest.mark.parametrize(
    ("limit", "calls"),
    [(1, [1] * 6 + [0]), (2, [2, 2, 2, 0]), (3, [3, 3, 0]), (4, [4, 2]), (5, [5, 1]), (6, [6, 0]), (7, [6])],
)
def test_limit_may_fall_anywhere_inside_the_uses_of_a_batch(limit: int, calls: list[int]) -> None:
    weights = Weights(step_number)
    found, steps, status, _ = run_in_loops(repeated([1, 2, 3, 4, 5], [3, 1, 2]), weights, limit)
    assert (found, status) == (calls, LoopStatus.DATASET_ENDED)
    assert [step.tags["name"].tolist() for step in steps] == [[b"0", b"1"]] * 3 + [[b"2", b"3"]] + [
        [b"4"]
    ] * 2
    assert [step.device_repeat for step in steps] == [0, 1, 2, 0, 0, 1]
    assert [step.examples for step in steps] == [2, 2, 2, 2, 1, 1]
    assert [step.loss for step in steps] == [0, 1, 2, 3, 4, 5]  # the number of the step
    assert float(weights.count) == 6
    assert all(set(step.tags) == {"name", "use"} for step in steps)


def test_step_without_uses_is_never_a_repeat() -> None:
    _, _, steps = run([1, 2, 3, 4])
    assert [step.device_repeat for step in steps] == [0, 0]


def test_time_stamps_of_repeats_follow_one_another_and_show_no_transfer() -> None:
    dataset = repeated([1] * 200, [3] * 100)
    loop = loop_for(dataset, Weights(), most=300)
    _, _, began = loop.run(iter(dataset), 300, 0)
    steps = list(loop.finished_steps())
    assert len(steps) == 300
    times = [began]
    for step in steps:
        times += [step.arrived_seconds, step.started_seconds, step.ended_seconds]
    assert times == sorted(times)
    assert all(step.arrived_seconds == step.started_seconds for step in steps)


@pytest.mark.parametrize(("uses", "place"), [(0, 0), (-2, 1), (0, 2)])
def test_uses_below_one_stop_before_their_batch_is_trained(uses: int, place: int) -> None:
    all_uses = [2, 2, 2]
    all_uses[place] = uses
    weights = Weights()
    _, steps, status, refused = run_in_loops(repeated([1, 2, 3, 4, 5], all_uses), weights, 100)
    assert (status, refused) == (LoopStatus.USES_BELOW_ONE, [uses])
    assert len(steps) == float(weights.count) == 2 * place


def test_label_outside_the_range_stops_before_its_batch_is_trained_and_repeated() -> None:
    weights = Weights()
    _, steps, status, refused = run_in_loops(repeated([1, 2, 3, 10], [2, 2]), weights, 100)
    assert (status, refused) == (LoopStatus.LABELS_OUTSIDE, [10])
    assert len(steps) == float(weights.count) == 2


def test_loss_that_is_not_finite_stops_between_the_uses_of_a_batch() -> None:
    weights = Weights(lambda label, step: tf.where(step == 1, np.nan, 0.5))
    _, steps, status, _ = run_in_loops(repeated([1, 2], [5]), weights, 100)
    assert status is LoopStatus.LOSS_NOT_FINITE
    assert len(steps) == float(weights.count) == 2


def test_repeats_before_an_error_of_the_pipeline_are_kept() -> None:
    def check(element: dict[str, Any]) -> dict[str, Any]:
        with tf.control_dependencies([tf.debugging.assert_less(element["label"], 5, "unreadable")]):
            return {name: tf.identity(value) for name, value in element.items()}

    dataset = repeated([1, 2, 5, 6], [3, 3]).map(check)
    loop = loop_for(dataset, Weights())
    with pytest.raises(tf.errors.InvalidArgumentError, match="unreadable"):
        loop.run(iter(dataset), 100, 0)
    assert [step.device_repeat for step in loop.finished_steps()] == [0, 1, 2]


def test_reset_gives_up_the_batch_held_so_that_the_next_run_starts_with_its_own() -> None:
    dataset = repeated([1, 2, 3, 4], [4, 4])
    loop = loop_for(dataset, Weights())
    loop.run(iter(dataset), 2, 0)
    loop.reset()
    loop.run(iter(dataset), 100, 0)
    assert [step.device_repeat for step in loop.finished_steps()] == [0, 1, 2, 3] * 2


def test_loop_stopped_between_the_uses_of_a_batch_does_no_further_step() -> None:
    loops: list[TrainingLoop] = []

    def stop(number: Any) -> Any:
        if number == 3:
            loops[0].stop()
        return np.float32(0)

    dataset = repeated([1, 2], [1000])
    weights = Weights(lambda label, step: tf.numpy_function(stop, [step], tf.float32))
    loops.append(loop_for(dataset, weights, most=1000))
    loops[0].run(iter(dataset), 1000, 0)
    assert [step.device_repeat for step in loops[0].finished_steps()] == [0, 1, 2, 3]
