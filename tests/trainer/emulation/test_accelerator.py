from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from echoing.errors import DataError, OptionError
from trainer.emulation.accelerator import EmulatedAccelerator
from trainer.emulation.presets import get_preset


class FakeClock:
    """A clock that stands still until a batch arrives or the device has to wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = 0.0

    def __call__(self) -> float:
        return self._now

    def advance_to(self, seconds: float) -> None:
        with self._lock:
            self._now = max(self._now, seconds)

    def wait_until(self, deadline_seconds: float, stopped: threading.Event) -> None:
        self.advance_to(deadline_seconds)


def batch(examples: int = 4, number: int = 0, dtype: Any = np.float32) -> dict[str, np.ndarray[Any, Any]]:
    image = np.full((examples, 2, 2, 3), number % 2, dtype)
    label = np.full(examples, number, np.int32)
    return {"image": image, "label": label, "use": np.arange(examples) + 10 * number}


def arriving(clock: FakeClock, at_seconds: list[float]) -> Iterator[dict[str, Any]]:
    for number, seconds in enumerate(at_seconds):
        clock.advance_to(seconds)
        yield batch(number=number)


def accelerator(clock: FakeClock | None = None, **options: Any) -> EmulatedAccelerator:
    options = {"batch_size": 4, "step_seconds": 1.0} | options
    if clock is not None:
        options |= {"clock": clock, "wait_until": clock.wait_until}
    return EmulatedAccelerator(**options)


def dataset_of(examples: int, batch_size: int, dtype: Any = tf.float32) -> tf.data.Dataset:
    features = {"image": tf.zeros([examples, 2, 2, 3], dtype), "label": tf.range(examples)}
    return tf.data.Dataset.from_tensor_slices(features).batch(batch_size)


def test_slow_host_makes_the_device_wait_for_each_batch() -> None:
    clock = FakeClock()
    steps = list(accelerator(clock).steps(arriving(clock, [3, 6, 9])))
    assert [step.start_seconds for step in steps] == [3, 6, 9]
    assert [step.end_seconds for step in steps] == [4, 7, 10]
    assert [step.wait_seconds for step in steps] == [3, 2, 2]
    assert [step.index for step in steps] == [0, 1, 2]


def test_fast_host_keeps_the_device_busy_without_a_gap() -> None:
    clock = FakeClock()
    steps = list(accelerator(clock).steps(batch(number=n) for n in range(20)))
    assert [step.wait_seconds for step in steps] == [0.0] * 20
    assert [step.end_seconds for step in steps] == [n + 1.0 for n in range(20)]


def test_smaller_last_batch_takes_a_proportional_time() -> None:
    clock = FakeClock()
    steps = list(accelerator(clock, step_seconds=2.0).steps([batch(4), batch(4), batch(1)]))
    assert [step.examples for step in steps] == [4, 4, 1]
    assert [step.busy_seconds for step in steps] == [2.0, 2.0, 0.5]


def test_copy_counts_as_transfer_and_the_batch_arrives_after_it() -> None:
    readings = iter([0.0, 5.0, 7.5])  # start of the run, before the copy, after it
    trainer = EmulatedAccelerator(
        batch_size=4, step_seconds=1.0, clock=lambda: next(readings), wait_until=lambda *_: None
    )
    (step,) = trainer.steps([batch()])
    assert (step.transfer_seconds, step.start_seconds, step.wait_seconds) == (2.5, 7.5, 7.5)


def test_infeed_runs_ahead_by_the_queue_depth_and_no_further() -> None:
    taken = threading.Semaphore(0)
    release = threading.Event()

    def source() -> Iterator[dict[str, Any]]:
        for number in range(10):
            taken.release()
            yield batch(number=number)

    trainer = EmulatedAccelerator(
        batch_size=4, step_seconds=1.0, queue_depth=2, wait_until=lambda *_: release.wait()
    )
    steps = trainer.steps(source())
    consumer = threading.Thread(target=lambda: list(steps))
    consumer.start()
    # One in work, two queued, one in the infeed's hands: asked for four, and not for a fifth.
    assert all(taken.acquire(timeout=60) for _ in range(4))
    assert not taken.acquire(timeout=0.2)
    release.set()
    consumer.join()


def test_tags_are_handed_on_and_stay_with_their_batch() -> None:
    clock = FakeClock()
    steps = list(accelerator(clock).steps(batch(2, number) for number in range(8)))
    assert [step.tags["use"].tolist() for step in steps] == [[10 * n, 10 * n + 1] for n in range(8)]
    assert all(set(step.tags) == {"use"} and step.loss is None for step in steps)


@pytest.mark.parametrize("dtype", [tf.uint8, tf.bfloat16, tf.float32])
def test_dataset_of_every_image_dtype_is_counted_exactly(dtype: Any) -> None:
    clock = FakeClock()
    steps = list(accelerator(clock).steps(dataset_of(10, 4, dtype)))
    assert [step.examples for step in steps] == [4, 4, 2]


def test_bfloat16_arrays_and_changing_image_sizes_are_copied() -> None:
    clock = FakeClock()
    big = {"image": np.zeros((4, 9, 9, 3), ml_dtypes.bfloat16), "label": np.zeros(4, np.int32)}
    steps = accelerator(clock).steps([batch(4, dtype=ml_dtypes.bfloat16), big, batch(4)])
    assert [step.examples for step in steps] == [4, 4, 4]


def test_dataset_without_elements_yields_nothing() -> None:
    assert list(accelerator(FakeClock()).steps(dataset_of(4, 4).take(0))) == []


def test_pipeline_error_comes_unchanged_after_the_steps_before_it() -> None:
    clock = FakeClock()
    error = ValueError("bad record")

    def source() -> Iterator[dict[str, Any]]:
        yield batch(number=0)
        yield batch(number=1)
        raise error

    seen = []
    with pytest.raises(ValueError) as raised:
        for step in accelerator(clock).steps(source()):
            seen.append(step.index)
    assert seen == [0, 1]
    assert raised.value is error


def test_error_inside_tensorflow_comes_after_the_steps_before_it() -> None:
    def check(element: dict[str, Any]) -> dict[str, Any]:
        with tf.control_dependencies([tf.debugging.assert_less(element["label"], 8, "label too large")]):
            return {name: tf.identity(value) for name, value in element.items()}

    seen = []
    with pytest.raises(tf.errors.InvalidArgumentError, match="label too large"):
        for step in accelerator(FakeClock()).steps(dataset_of(12, 4).map(check)):
            seen.append(step.index)
    assert seen == [0, 1]


def blocked_source(asked: threading.Event) -> tf.data.Dataset:
    """One batch, then an endless search inside TensorFlow for a second one."""

    def signal(label: Any) -> Any:
        if label[0] > 0:
            asked.set()
        return label[0] == 0

    dataset = dataset_of(4, 4).map(lambda e: e | {"label": e["label"] * 0})
    later = dataset.map(lambda e: e | {"label": e["label"] + 1}).repeat()
    return dataset.concatenate(later.filter(lambda e: tf.numpy_function(signal, [e["label"]], tf.bool)))


@pytest.mark.parametrize("how", ["close", "interrupt", "drop"])
def test_ending_the_iterator_stops_the_threads_while_the_pipeline_works(how: str) -> None:
    asked = threading.Event()
    steps = accelerator(FakeClock()).steps(blocked_source(asked))
    assert next(steps).index == 0
    assert asked.wait(60)
    if how == "close":
        steps.close()  # type: ignore[attr-defined]
    elif how == "interrupt":
        with pytest.raises(KeyboardInterrupt):
            steps.throw(KeyboardInterrupt)  # type: ignore[attr-defined]
    del steps
    # The fixture checks that no thread is left.


def test_ending_the_iterator_does_not_wait_for_the_step_in_work() -> None:
    started = time.monotonic()
    trainer = EmulatedAccelerator(batch_size=4, step_seconds=0.01)
    steps = trainer.steps([batch(4), batch(4 * 100_000)])  # the second step takes 1000 s
    next(steps)
    steps.close()  # type: ignore[attr-defined]
    assert time.monotonic() - started < 900


def test_iterator_that_was_never_used_starts_no_thread() -> None:
    before = threading.active_count()
    steps = accelerator().steps([batch()])
    assert threading.active_count() == before
    del steps


def test_real_clock_holds_the_device_for_the_step_time() -> None:
    steps = list(EmulatedAccelerator(batch_size=4, step_seconds=0.02).steps([batch()] * 5))
    assert [step.busy_seconds for step in steps] == pytest.approx([0.02] * 5, abs=1e-9)
    assert time.monotonic() >= steps[-1].end_seconds
    span = steps[-1].end_seconds - (steps[0].start_seconds - steps[0].wait_seconds)
    assert sum(step.wait_seconds + step.busy_seconds for step in steps) == pytest.approx(span, abs=1e-9)


def test_holding_the_device_uses_no_processor_time() -> None:
    before = time.process_time()
    list(EmulatedAccelerator(batch_size=4, step_seconds=0.5).steps([batch()] * 2))
    assert time.process_time() - before < 0.5  # half of the second that a busy wait would burn


def durations(jitter: float, seed: int, steps: int) -> list[float]:
    trainer = accelerator(FakeClock(), jitter=jitter, seed=seed)
    return [step.busy_seconds for step in trainer.steps([batch()] * steps)]


def test_jitter_has_the_mean_and_spread_asked_for() -> None:
    seconds = durations(jitter=0.2, seed=1, steps=4000)
    assert np.mean(seconds) == pytest.approx(1.0, abs=0.02)
    assert np.std(seconds) == pytest.approx(0.2, abs=0.02)
    assert min(seconds) > 0


def test_jitter_repeats_with_its_seed_only() -> None:
    first = durations(jitter=0.2, seed=1, steps=20)
    assert durations(jitter=0.2, seed=1, steps=20) == pytest.approx(first)
    assert durations(jitter=0.2, seed=2, steps=20) != pytest.approx(first)


def test_no_jitter_gives_equal_steps() -> None:
    assert durations(jitter=0.0, seed=1, steps=5) == [1.0] * 5


def test_preset_scaled_to_the_batch_is_described() -> None:
    device = EmulatedAccelerator("tpu-v2-8", batch_size=128).device
    assert (device.name, device.kind, device.model, device.emulated) == (
        "tpu-v2-8",
        "emulated",
        "Inception v3",
        True,
    )
    assert device.step_seconds == pytest.approx(0.101875)
    assert "scaled linearly from batch 1024 to 128" in device.provenance


def test_step_time_overrides_the_preset_and_says_so() -> None:
    device = EmulatedAccelerator(get_preset("a100"), batch_size=400, step_seconds=0.25).device
    assert (device.name, device.step_seconds, device.provenance) == (
        "a100",
        0.25,
        "step time given by the user",
    )


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("batch_size", 0),
        ("step_seconds", 0),
        ("step_seconds", float("nan")),
        ("jitter", -0.1),
        ("queue_depth", 0),
        ("seed", -1),
    ],
)
def test_option_out_of_range_is_refused_by_name(option: str, value: float) -> None:
    with pytest.raises(OptionError, match=option):
        accelerator(**{option: value})


def test_neither_preset_nor_step_time_is_refused() -> None:
    with pytest.raises(OptionError, match="step_seconds"):
        EmulatedAccelerator(batch_size=4)


def broken(change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    element = batch()
    change(element)
    return element


@pytest.mark.parametrize(
    ("element", "message"),
    [
        (broken(lambda e: e.pop("label")), "lack label"),
        (broken(lambda e: e.update(label=np.zeros(3))), r"labels of shape \(3,\)"),
        (broken(lambda e: e.update(label=np.int32(1))), r"labels of shape \(\)"),
    ],
)
def test_element_that_is_no_batch_is_refused(element: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(accelerator(FakeClock()).steps([element]))
