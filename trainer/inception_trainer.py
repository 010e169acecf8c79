"""Real training of Inception v3 on one device: the visible accelerator, or else the host's CPU."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from echoing.checks import check_choice, check_integer, check_number
from echoing.errors import OptionError
from trainer.device_echo import DeviceEcho
from trainer.element_check import check_element_spec
from trainer.feed import COLOR_SHIFT
from trainer.incoming_images import prepare
from trainer.learning_rate import scaled_learning_rate
from trainer.losses import training_loss
from trainer.models.inception_v3 import InceptionV3
from trainer.models.inception_v3_architecture import MINIMUM_IMAGE_SIZE
from trainer.models.model import update_moments
from trainer.optimizers import OPTIMIZERS, make_optimizer
from trainer.reaugment import reaugment_repeat
from trainer.step import DeviceDescription, StepRecord
from trainer.training_loop import TrainingLoop
from trainer.training_run import TrainingRun

DEVICES = ("auto", "gpu", "cpu")


@dataclass(frozen=True)
class InceptionOptions:
    """What to train and how.

    Attributes:
        batch_size: examples of a full step; sets the learning rate.
        image_size: height and width of the images, pixels, >= 75.
        width_multiplier: factor on the channels of each layer, > 0.
        num_classes: labels are 0 to `num_classes - 1`, 0 being the background.
        optimizer: `rmsprop` (the reference's), `momentum` or `sgd`.
        learning_rate: constant; None for 0.165 x batch_size / 256.
        steps_per_loop: the most steps in one compiled loop; fewer where a step is long, so that a loop
            takes about a second. 100 is the reference's `iterations`.
        jit_compile: compile the step with XLA. It takes about five times as long to start on a CPU and does
            not pay there.
        compute_dtype: `float32` or `bfloat16`; variables stay float32.
        seed: of the initial weights and of dropout.
        device: `auto` (a GPU if one is visible, else the CPU), `gpu` or `cpu`.
        device_echo: re-augmentation of the batches that the device uses again. Not elastic: see the error.

    Raises:
        OptionError: a value is not allowed.
    """

    batch_size: int
    image_size: int = 299
    width_multiplier: float = 1.0
    num_classes: int = 1001
    optimizer: str = "rmsprop"
    learning_rate: float | None = None
    steps_per_loop: int = 100
    jit_compile: bool = False
    compute_dtype: str = "float32"
    seed: int = 0
    device: str = "auto"
    device_echo: DeviceEcho | None = None

    def __post_init__(self) -> None:
        check_integer("batch_size", self.batch_size, minimum=1)
        check_integer("image_size", self.image_size, minimum=MINIMUM_IMAGE_SIZE)
        check_number("width_multiplier", self.width_multiplier, minimum=0, exclusive_minimum=True)
        check_integer("num_classes", self.num_classes, minimum=2)
        check_choice("optimizer", self.optimizer, OPTIMIZERS)
        if self.learning_rate is not None:
            check_number("learning_rate", self.learning_rate, minimum=0, exclusive_minimum=True)
        check_integer("steps_per_loop", self.steps_per_loop, minimum=1)
        check_choice("compute_dtype", self.compute_dtype, ("float32", "bfloat16"))
        check_integer("seed", self.seed, minimum=0)
        check_choice("device", self.device, DEVICES)
        if self.device_echo is not None and self.device_echo.opportunistic_max_uses is not None:
            raise OptionError(
                "opportunistic_max_uses",
                self.device_echo.opportunistic_max_uses,
                "left out with real training",
                "A compiled loop cannot see whether the next batch has arrived. Use an elastic factor at an "
                "earlier insertion point, such as after_augment, or a fixed factor at after_transfer.",
            )


class InceptionTrainer:
    """Trains one network; each call of `steps` goes on with the weights that the call before left.

    Runs on one GPU or on the CPU; on the CPU training and input pipeline share the cores. A TPU needs a
    distribution strategy and is not used.

    Args:
        options: what to train and how.

    Raises:
        OptionError: the device asked for is not visible.
    """

    def __init__(self, options: InceptionOptions) -> None:
        self._options = options
        self._device, self._description = _find_device(options)
        with tf.device(self._device):
            self.model = InceptionV3(
                options.image_size,
                options.width_multiplier,
                options.num_classes,
                options.compute_dtype,
                options.seed,
            )
            self.optimizer = make_optimizer(options.optimizer, self.model.trainable_variables)
        self._learning_rate = (
            scaled_learning_rate(options.batch_size)
            if options.learning_rate is None
            else options.learning_rate
        )
        self._step_function = tf.function(
            self._step, jit_compile=options.jit_compile or None, autograph=False
        )
        self._predict = tf.function(self._logits, jit_compile=options.jit_compile or None, autograph=False)
        self._loops: dict[Any, TrainingLoop] = {}
        self._running = threading.Lock()
        self.steps_done = 0

    @property
    def device(self) -> DeviceDescription:
        """The device that trains."""
        return self._description

    def predict(self, images: Any) -> Any:
        """Returns float32 logits `[batch, num_classes]`, without dropout and with the moving averages.

        Args:
            images: as in training.
        """
        return self._predict(images)

    def steps(self, dataset: Any) -> Iterator[StepRecord]:
        """Trains on a dataset; see `trainer.step.Trainer.steps`.

        The steps run in a thread of their own, so that the caller's work between records does not hold them
        up; training may be up to two loops ahead of the records yielded. The first record comes once the loop
        is compiled, which takes about 20 CPU seconds and belongs to no step. Closing the iterator ends the
        loop after the step in work; if that step still waits for its batch, closing waits with it.

        Args:
            dataset: a `tf.data.Dataset` of batches; labels are integers.

        Yields:
            A record a step, in order; records come in groups, after each compiled loop.

        Raises:
            DataError: the elements are no such batches, or a label is out of range.
            OptionError: the images are not of the network's size.
            PipebenchError: the loss is not finite.
        """
        check_element_spec(getattr(dataset, "element_spec", None), self._options.image_size)
        return self._train(dataset)

    def _train(self, dataset: Any) -> Iterator[StepRecord]:
        if not self._running.acquire(blocking=False):
            raise RuntimeError(
                "This trainer is training already; close the iterator of its other steps first."
            )
        try:
            run = TrainingRun(self._loop_for(dataset.element_spec), dataset, self.steps_done)
            thread = threading.Thread(target=run.work, name="pipebench-trainer", daemon=True)
            thread.start()
            try:
                yield from run.records
            finally:
                run.stop()
                thread.join()
                self.steps_done = run.next_step
        finally:
            self._running.release()

    def _loop_for(self, element_spec: Mapping[str, Any]) -> TrainingLoop:
        """Returns the compiled loop for elements of a specification; building one takes 20 CPU seconds."""
        key = tuple(sorted(element_spec.items()))
        if key not in self._loops:
            image, label = element_spec["image"], element_spec["label"]
            size = self._options.image_size
            # Concrete: a tf.function that is called while another is traced is traced again each time.
            step_function = self._step_function.get_concrete_function(
                tf.TensorSpec([image.shape[0], size, size, 3], image.dtype),
                tf.TensorSpec([label.shape[0]], label.dtype),
                tf.TensorSpec([], tf.int64),
                tf.TensorSpec([], tf.int64),
                *([element_spec[COLOR_SHIFT]] if COLOR_SHIFT in element_spec else []),
            )
            self._loops[key] = TrainingLoop(
                step_function,
                element_spec,
                size,
                self._options.num_classes,
                self._device,
                self._options.steps_per_loop,
            )
        return self._loops[key]

    def _step(self, image: Any, label: Any, step: Any, repeat: Any, color_shift: Any = None) -> Any:
        echo = self._options.device_echo
        with tf.device(self._device):
            image = prepare(image, color_shift)
            if echo is not None and echo.reaugment:
                image = reaugment_repeat(image, repeat, echo.seed, step)
            variables = self.model.trainable_variables
            with tf.GradientTape() as tape:
                outputs = self.model(image, training=True, step=step)
                loss = training_loss(label, outputs.main, outputs.auxiliary, self.model.regularized_variables)
            update_moments(outputs.moments)
            self.optimizer.apply(tape.gradient(loss, variables), self._learning_rate)
            return loss

    def _logits(self, images: Any) -> Any:
        with tf.device(self._device):
            return self.model(images, training=False).main


def _find_device(options: InceptionOptions) -> tuple[str, DeviceDescription]:
    model = "Inception v3"
    if options.width_multiplier != 1 or options.image_size != 299:
        model += f" (width {options.width_multiplier:g}, {options.image_size} px)"
    gpus = tf.config.list_logical_devices("GPU") if options.device != "cpu" else []
    if gpus:
        details = tf.config.experimental.get_device_details(tf.config.list_physical_devices("GPU")[0])
        return gpus[0].name, DeviceDescription(details.get("device_name", "GPU"), "gpu", model=model)
    if options.device == "gpu":
        raise OptionError(
            "device",
            "gpu",
            "a device that TensorFlow sees, and it sees no GPU",
            "Use `cpu`, or check the driver.",
        )
    return tf.config.list_logical_devices("CPU")[0].name, DeviceDescription("CPU", "cpu", model=model)
