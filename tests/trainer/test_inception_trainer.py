"""Most tests put a small network into the trainer: the loop around it, which they check, is the real one."""

from __future__ import annotations

import dataclasses
import math
import threading
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import trainer.inception_trainer as module
from echoing.errors import DataError, OptionError, PipebenchError
from trainer.device_echo import DeviceEcho
from trainer.evaluation import evaluate
from trainer.inception_trainer import InceptionOptions, InceptionTrainer
from trainer.models.model import Outputs

SIZE = 75
CLASSES = 4


class SmallNetwork(tf.Module):
    """One linear layer on the mean colour, with the interface of `InceptionV3`."""

    def __init__(self, image_size: int, width: float, num_classes: int, dtype: str, seed: int) -> None:
        super().__init__()
        self.kernel = tf.Variable(tf.zeros([3, num_classes]), name="small/weights")
        self.regularized_variables = (self.kernel,)

    def __call__(self, images: Any, training: bool, step: Any = 0) -> Outputs:
        logits = tf.reduce_mean(tf.cast(images, tf.float32), [1, 2]) @ self.kernel
        return Outputs(logits, logits)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> InceptionTrainer:
    monkeypatch.setattr(module, "InceptionV3", SmallNetwork)
    return InceptionTrainer(options())


def options(**changes: Any) -> InceptionOptions:
    values = {"batch_size": 2, "image_size": SIZE, "num_classes": CLASSES, "steps_per_loop": 3}
    return InceptionOptions(**values | {"optimizer": "momentum", "learning_rate": 0.1} | changes)


def dataset_of(labels: list[int], batch_size: int = 2, **features: Any) -> tf.data.Dataset:
    image = tf.ones([len(labels), SIZE, SIZE, 3], tf.uint8)
    label = tf.constant(labels, tf.int32)
    return tf.data.Dataset.from_tensor_slices({"image": image, "label": label} | features).batch(batch_size)


def test_finite_dataset_gives_every_step_once_with_its_tags(small: InceptionTrainer) -> None:
    numbers = tf.range(15)
    steps = list(small.steps(dataset_of([1] * 15, use=numbers)))
    assert [step.index for step in steps] == list(range(8))
    assert [step.examples for step in steps] == [2] * 7 + [1]
    assert np.concatenate([step.tags["use"] for step in steps]).tolist() == list(range(15))
    assert small.steps_done == 8


def test_waiting_and_work_fill_the_span_without_overlap(small: InceptionTrainer) -> None:
    steps = list(small.steps(dataset_of([1] * 40)))
    span = steps[-1].end_seconds - (steps[0].start_seconds - steps[0].wait_seconds)
    assert sum(step.wait_seconds + step.busy_seconds for step in steps) == pytest.approx(span, abs=1e-6)
    assert all(step.wait_seconds >= 0 and step.busy_seconds > 0 for step in steps)
    assert all(step.transfer_seconds == 0 for step in steps)


def test_loss_starts_at_that_of_a_guess_and_falls(small: InceptionTrainer) -> None:
    losses = [step.loss for step in small.steps(dataset_of([2] * 40))]
    assert losses[0] == pytest.approx(1.4 * math.log(CLASSES), rel=1e-5)
    assert losses[-1] < losses[0]


def test_second_dataset_goes_on_with_the_weights_and_the_compiled_loop(small: InceptionTrainer) -> None:
    first = list(small.steps(dataset_of([2] * 20)))
    second = list(small.steps(dataset_of([2] * 20)))
    assert second[0].loss is not None and first[0].loss is not None
    assert second[0].loss < first[0].loss / 2
    assert [step.index for step in second] == list(range(10))
    assert small.steps_done == 20
    assert len(small._loops) == 1


def test_dataset_with_other_tags_is_trained_by_the_same_trainer(small: InceptionTrainer) -> None:
    assert len(list(small.steps(dataset_of([1] * 4)))) == 2
    (step, _) = small.steps(dataset_of([1] * 4, name=tf.constant(list("abcd"))))
    assert step.tags["name"].tolist() == [b"a", b"b"]


def test_empty_dataset_yields_nothing(small: InceptionTrainer) -> None:
    assert list(small.steps(dataset_of([1, 1]).take(0))) == []


def test_labels_outside_the_range_stop_training_and_are_named(small: InceptionTrainer) -> None:
    seen = []
    with pytest.raises(DataError) as raised:
        for step in small.steps(dataset_of([0, 3, 4, -1])):
            seen.append(step.index)
    assert seen == [0]
    assert "step 1 has labels outside 0 to 3 (num_classes is 4): -1, 4" in str(raised.value)


def test_loss_that_is_not_finite_stops_with_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "InceptionV3", SmallNetwork)
    seen = []
    with pytest.raises(PipebenchError, match=r"loss of step [1-9] is (nan|inf): training stopped"):
        for step in InceptionTrainer(options(learning_rate=1e30)).steps(dataset_of([1] * 20)):
            assert step.loss is not None and math.isfinite(step.loss)
            seen.append(step.index)
    assert seen == list(range(len(seen))) and seen


def test_error_of_the_pipeline_comes_after_the_steps_before_it(small: InceptionTrainer) -> None:
    def check(element: dict[str, Any]) -> dict[str, Any]:
        with tf.control_dependencies([tf.debugging.assert_less(element["label"], 3, "unreadable")]):
            return {name: tf.identity(value) for name, value in element.items()}

    seen = []
    with pytest.raises(tf.errors.InvalidArgumentError, match="unreadable"):
        for step in small.steps(dataset_of([1] * 10 + [3, 3]).map(check)):
            seen.append(step.index)
    assert seen == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("how", ["close", "interrupt", "drop"])
def test_ending_the_iterator_stops_the_thread_and_the_trainer_can_go_on(
    small: InceptionTrainer, how: str
) -> None:
    endless = dataset_of([1] * 4).repeat()
    steps = small.steps(endless)
    next(steps)
    if how == "close":
        steps.close()  # type: ignore[attr-defined]
    elif how == "interrupt":
        with pytest.raises(KeyboardInterrupt):
            steps.throw(KeyboardInterrupt)  # type: ignore[attr-defined]
    del steps
    assert not [t for t in threading.enumerate() if "pipebench" in t.name]
    assert [step.index for step in small.steps(endless.take(4))] == [0, 1, 2, 3]


def test_two_iterators_at_once_are_refused(small: InceptionTrainer) -> None:
    endless = dataset_of([1] * 4).repeat()
    steps = small.steps(endless)
    next(steps)
    with pytest.raises(RuntimeError, match="training already"):
        next(small.steps(endless))
    steps.close()  # type: ignore[attr-defined]


def test_images_of_another_size_are_refused_at_once(small: InceptionTrainer) -> None:
    dataset = dataset_of([1, 1]).map(lambda e: e | {"image": e["image"][:, :74]})
    with pytest.raises(OptionError, match="image_size is 75"):
        small.steps(dataset)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda e: {"image": e["image"]}, "lack label"),
        (lambda e: e | {"label": tf.cast(e["label"], tf.float32)}, "float32, but must be an integer"),
        (lambda e: e | {"use": tf.RaggedTensor.from_row_lengths([1, 2], [1, 1])}, "dense tensors only"),
    ],
)
def test_elements_that_are_no_batches_are_refused_at_once(
    small: InceptionTrainer, change: Any, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        small.steps(dataset_of([1, 1]).map(change))


def test_device_is_named_honestly(small: InceptionTrainer) -> None:
    visible = tf.config.list_logical_devices("GPU")
    assert small.device.kind == ("gpu" if visible else "cpu")
    assert not small.device.emulated


@pytest.mark.skipif(bool(tf.config.list_physical_devices("GPU")), reason="a GPU is visible")
def test_gpu_that_is_not_there_is_refused_and_not_replaced() -> None:
    with pytest.raises(OptionError, match="device is 'gpu'"):
        InceptionTrainer(options(device="gpu"))


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("batch_size", 0),
        ("image_size", 74),
        ("width_multiplier", -1.0),
        ("num_classes", 1),
        ("optimizer", "adam"),
        ("learning_rate", 0.0),
        ("steps_per_loop", 0),
        ("compute_dtype", "float64"),
        ("seed", 1.5),
        ("device", "tpu"),
    ],
)
def test_option_that_is_not_allowed_is_refused_by_name(option: str, value: Any) -> None:
    with pytest.raises(OptionError, match=option):
        options(**{option: value})


def test_options_default_to_the_references_optimizer_and_rate() -> None:
    assert dataclasses.asdict(InceptionOptions(batch_size=1024)) | {} == {
        "batch_size": 1024,
        "image_size": 299,
        "width_multiplier": 1.0,
        "num_classes": 1001,
        "optimizer": "rmsprop",
        "learning_rate": None,
        "steps_per_loop": 100,
        "jit_compile": False,
        "compute_dtype": "float32",
        "seed": 0,
        "device": "auto",
        "device_echo": None,
    }


def test_elastic_echo_on_the_device_is_refused_and_says_what_works() -> None:
    with pytest.raises(OptionError, match=r"opportunistic_max_uses is 4.*fixed factor at after_transfer"):
        options(device_echo=DeviceEcho(opportunistic_max_uses=4))


def with_uses(dataset: tf.data.Dataset, uses: list[int]) -> tf.data.Dataset:
    together = tf.data.Dataset.zip(dataset, tf.data.Dataset.from_tensor_slices(tf.constant(uses, tf.int64)))
    return together.map(lambda element, count: element | {"device_uses": count})


def test_batches_are_used_again_and_every_step_is_counted_once(small: InceptionTrainer) -> None:
    dataset = with_uses(dataset_of([1] * 7, use=tf.range(7)), [1, 4, 2, 3])
    steps = list(small.steps(dataset))
    assert [step.device_repeat for step in steps] == [0, 0, 1, 2, 3, 0, 1, 0, 1, 2]
    assert [step.tags["use"][0] for step in steps] == [0, 2, 2, 2, 2, 4, 4, 6, 6, 6]
    assert [step.examples for step in steps] == [2] * 7 + [1] * 3
    assert [step.index for step in steps] == list(range(10))
    assert all(set(step.tags) == {"use"} for step in steps)
    assert small.steps_done == 10


def test_waiting_and_work_fill_the_span_with_repeats_too(small: InceptionTrainer) -> None:
    steps = list(small.steps(with_uses(dataset_of([1] * 20), [3] * 10)))
    span = steps[-1].end_seconds - (steps[0].start_seconds - steps[0].wait_seconds)
    assert sum(step.wait_seconds + step.busy_seconds for step in steps) == pytest.approx(span, abs=1e-6)
    assert all(step.wait_seconds >= 0 and step.transfer_seconds == 0 for step in steps)


@pytest.mark.parametrize("taken", [1, 2, 5])
def test_iterator_closed_between_the_uses_of_a_batch_frees_it_and_the_next_run_starts_anew(
    small: InceptionTrainer, taken: int
) -> None:
    dataset = with_uses(dataset_of([1] * 4, use=tf.range(4)), [1000, 1])
    steps = small.steps(dataset)
    assert [next(steps).device_repeat for _ in range(taken)] == list(range(taken))
    steps.close()  # type: ignore[attr-defined]
    (loop,) = small._loops.values()
    assert loop._held is not None and bool(loop._held.is_used_up())
    assert loop._held._features["image"].read_value().shape[0] == 0
    done = small.steps_done
    again = small.steps(with_uses(dataset_of([1] * 4, use=tf.range(4)), [2, 1]))
    assert [(step.tags["use"][0], step.device_repeat) for step in again] == [(0, 0), (0, 1), (2, 0)]
    assert small.steps_done == done + 3


def test_uses_below_one_stop_training_and_are_named(small: InceptionTrainer) -> None:
    seen = []
    with pytest.raises(DataError, match="device_uses 0, but must be used at least once"):
        for step in small.steps(with_uses(dataset_of([1] * 4), [2, 0])):
            seen.append(step.index)
    assert seen == [0, 1]


@pytest.mark.parametrize(
    ("uses", "message"),
    [(tf.ones([2], tf.int64), r"the shape \[2\]"), (tf.constant(1.0), "the dtype float32")],
)
def test_uses_that_are_no_count_are_refused_at_once(small: InceptionTrainer, uses: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        small.steps(dataset_of([1, 1]).map(lambda element: element | {"device_uses": uses}))


class SeeingNetwork(SmallNetwork):
    """Starts with weights other than zero, so that the loss depends on the images."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.kernel.assign(tf.reshape(tf.range(3.0 * CLASSES), self.kernel.shape))


def losses_of(seed: int, uses: list[int], **changes: Any) -> list[float]:
    """Losses of one noise picture, used again and again with weights that stand still."""
    image = np.random.default_rng(0).uniform(-1, 1, (1, SIZE, SIZE, 3)).astype(np.float32)
    dataset = tf.data.Dataset.from_tensors({"image": image, "label": [1]}).repeat(len(uses))
    echo = DeviceEcho(reaugment=True, seed=seed)
    trainer = InceptionTrainer(options(learning_rate=1e-30, device_echo=echo, **changes))
    return [step.loss or math.nan for step in trainer.steps(with_uses(dataset, uses))]


def test_repeats_are_augmented_anew_and_first_uses_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "InceptionV3", SeeingNetwork)
    losses = losses_of(3, [3, 2, 1])
    assert losses[0] == losses[3] == losses[5]
    assert len({losses[0], losses[1], losses[2], losses[4]}) == 4
    assert losses_of(3, [3, 2, 1]) == losses
    other = losses_of(4, [3, 2, 1])
    assert other[0] == losses[0] and other[1] != losses[1]


@pytest.mark.slow
def test_step_compiled_with_xla_gives_the_same_losses_and_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "InceptionV3", SeeingNetwork)
    compiled = losses_of(3, [3, 1, 2], jit_compile=True)
    assert compiled == pytest.approx(losses_of(3, [3, 1, 2]), rel=1e-4)


def pictures(seed: int = 0) -> tf.data.Dataset:
    """16 fixed noise images, four of each class."""
    generator = np.random.default_rng(seed)
    images = generator.uniform(-1, 1, (16, SIZE, SIZE, 3)).astype(np.float32)
    labels = np.arange(16, dtype=np.int32) % CLASSES
    return tf.data.Dataset.from_tensors({"image": images, "label": labels})


@pytest.mark.slow
def test_inception_counts_a_finite_dataset_exactly(inception_trainer: InceptionTrainer) -> None:
    steps = list(inception_trainer.steps(dataset_of([0, 1, 2, 3, 1], use=tf.range(5))))
    assert [step.examples for step in steps] == [2, 2, 1]
    assert all(step.loss is not None and math.isfinite(step.loss) for step in steps)


@pytest.mark.slow
def test_inception_predicts_and_is_evaluated_on_every_example(inception_trainer: InceptionTrainer) -> None:
    result = evaluate(inception_trainer.predict, dataset_of([0, 1, 2, 3, 1]))
    assert result.examples == 5
    assert 0 <= result.accuracy <= 1


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["momentum", "rmsprop"])
def test_inception_learns_sixteen_pictures(optimizer: str) -> None:
    trainer = InceptionTrainer(
        options(batch_size=16, width_multiplier=0.125, optimizer=optimizer, learning_rate=0.01)
    )
    losses = [step.loss or math.nan for step in trainer.steps(pictures().repeat(30))]
    assert len(losses) == 30
    assert np.mean(losses[-3:]) < 0.75 * np.mean(losses[:3])


@pytest.mark.slow
def test_inception_repeats_its_losses_with_the_seed() -> None:
    def losses() -> list[float | None]:
        trainer = InceptionTrainer(options(batch_size=16, width_multiplier=0.01, learning_rate=1e-3, seed=5))
        return [step.loss for step in trainer.steps(pictures().repeat(3))]

    np.testing.assert_allclose(np.array(losses(), float), np.array(losses(), float), rtol=1e-3)
