"""What `pipebench train` trains and how, validated before anything heavy starts. Imports no TensorFlow."""

from __future__ import annotations

from dataclasses import dataclass

from echoing.checks import check_choice, check_integer, check_number
from echoing.errors import OptionError
from trainer.device_echo import DeviceEcho
from trainer.learning_rate import LEARNING_RATE_PER_256, LearningRateSchedule
from trainer.models.registry import MODEL_NAMES, minimum_image_size

OPTIMIZER_NAMES = ("rmsprop", "momentum", "sgd")
"""`trainer.optimizers.OPTIMIZERS`, which cannot be imported without TensorFlow."""
COMPUTE_DTYPES = ("float32", "bfloat16")
LAYOUTS = ("nhwc", "hwcn")
EXAMPLES_PER_EPOCH = 1_281_167
"""Training images of ImageNet 2012; the reference trainer's _NUM_TRAIN_IMAGES."""


@dataclass(frozen=True)
class TrainOptions:
    """What to train and how; the defaults are the reference trainer's.

    Attributes:
        model: one of `trainer.models.registry.MODEL_NAMES`.
        image_size: height and width of the images, pixels.
        width_multiplier: factor on the channels of each layer, > 0.
        num_classes: labels are 0 to `num_classes - 1`, 0 being the background.
        compute_dtype: `float32` or `bfloat16`; variables stay float32.
        batch_size: examples of a training step over all replicas of all workers.
        eval_batch_size: the same in evaluation; None for `batch_size`.
        train_steps: steps of the whole run, counted from the beginning of the training, not from a resume.
        steps_per_loop: the most steps in one compiled loop; fewer where a step is long, so that a loop takes
            about a second. 100 is the reference's `iterations`.
        jit_compile: compile the step with XLA; for one replica only. A TPU does so in any case.
        optimizer: `rmsprop`, `momentum` or `sgd`.
        learning_rate: for 256 examples; it is scaled in proportion to `batch_size`.
        learning_rate_decay: factor of one stair of the rate, > 0 and <= 1.
        learning_rate_decay_epochs: length of a stair, epochs.
        use_learning_rate_warmup: whether the rate begins with cold and warm-up epochs.
        cold_epochs: epochs at a tenth of the rate.
        warmup_epochs: epochs in which it climbs.
        reference_warmup: whether the last epoch of the climb overshoots, as the reference's does.
        examples_per_epoch: examples of the training set: what an epoch is.
        label_smoothing: probability mass spread evenly over all classes, 0 to 1.
        auxiliary_weight: weight of the auxiliary head's cross-entropy, where the model has one.
        weight_decay: factor on half the sum of squares of all kernels.
        batch_norm_decay: of the moving averages of batch normalisation, 0 to 1.
        batch_norm_epsilon: added to the variance, > 0.
        batch_norm_decay_per_replica: use `batch_norm_decay ** replicas`, for statistics that each replica
            takes of its own part of the batch.
        moving_average: keep moving averages of all variables for the evaluation.
        moving_average_decay: their decay, 0 to 1; less in the first steps.
        layout: of the images that come: `nhwc`, or `hwcn`, which the model turns back on the device.
        seed: of the initial weights and of dropout.
        deterministic: make TensorFlow's kernels deterministic; the same run then gives the same numbers, on a
            CPU to the last bit. It costs speed.
        device_echo: re-augmentation of the batches that the device uses again. Not elastic: see the error.

    Raises:
        OptionError: a value is not allowed.
    """

    batch_size: int
    train_steps: int
    model: str = MODEL_NAMES[0]
    image_size: int = 299
    width_multiplier: float = 1.0
    num_classes: int = 1001
    compute_dtype: str = "float32"
    eval_batch_size: int | None = None
    steps_per_loop: int = 100
    jit_compile: bool = False
    optimizer: str = "rmsprop"
    learning_rate: float = LEARNING_RATE_PER_256
    learning_rate_decay: float = 0.94
    learning_rate_decay_epochs: float = 3
    use_learning_rate_warmup: bool = False
    cold_epochs: int = 2
    warmup_epochs: int = 7
    reference_warmup: bool = True
    examples_per_epoch: int = EXAMPLES_PER_EPOCH
    label_smoothing: float = 0.1
    auxiliary_weight: float = 0.4
    weight_decay: float = 4e-5
    batch_norm_decay: float = 0.996
    batch_norm_epsilon: float = 1e-3
    batch_norm_decay_per_replica: bool = False
    moving_average: bool = True
    moving_average_decay: float = 0.995
    layout: str = "nhwc"
    seed: int = 0
    deterministic: bool = False
    device_echo: DeviceEcho | None = None

    def __post_init__(self) -> None:
        check_integer("batch_size", self.batch_size, minimum=1)
        if self.eval_batch_size is not None:
            check_integer("eval_batch_size", self.eval_batch_size, minimum=1)
        check_integer("train_steps", self.train_steps, minimum=1)
        check_integer("image_size", self.image_size, minimum=minimum_image_size(self.model))
        check_number("width_multiplier", self.width_multiplier, minimum=0, exclusive_minimum=True)
        check_integer("num_classes", self.num_classes, minimum=2)
        check_choice("compute_dtype", self.compute_dtype, COMPUTE_DTYPES)
        check_integer("steps_per_loop", self.steps_per_loop, minimum=1)
        check_choice("optimizer", self.optimizer, OPTIMIZER_NAMES)
        check_number("label_smoothing", self.label_smoothing, minimum=0, maximum=1)
        check_number("auxiliary_weight", self.auxiliary_weight, minimum=0)
        check_number("weight_decay", self.weight_decay, minimum=0)
        check_number("batch_norm_decay", self.batch_norm_decay, minimum=0, maximum=1)
        check_number("batch_norm_epsilon", self.batch_norm_epsilon, minimum=0, exclusive_minimum=True)
        check_number("moving_average_decay", self.moving_average_decay, minimum=0, maximum=1)
        check_choice("layout", self.layout, LAYOUTS)
        check_integer("seed", self.seed, minimum=0)
        for name in _SWITCHES:
            if not isinstance(getattr(self, name), bool):
                raise OptionError(name, getattr(self, name), "True or False")
        _ = self.schedule  # which checks the options of the learning rate
        if self.device_echo is not None and self.device_echo.opportunistic_max_uses is not None:
            raise OptionError(
                "opportunistic_max_uses",
                self.device_echo.opportunistic_max_uses,
                "left out with real training",
                "A compiled loop cannot see whether the next batch has arrived. Use an elastic factor at an "
                "earlier insertion point, such as after_augment, or a fixed factor at after_transfer.",
            )

    @property
    def schedule(self) -> LearningRateSchedule:
        """The learning rate of every step."""
        return LearningRateSchedule(
            batch_size=self.batch_size,
            examples_per_epoch=self.examples_per_epoch,
            rate_per_256=self.learning_rate,
            decay=self.learning_rate_decay,
            decay_epochs=self.learning_rate_decay_epochs,
            warm_up=self.use_learning_rate_warmup,
            cold_epochs=self.cold_epochs,
            warm_up_epochs=self.warmup_epochs,
            overshoot=self.reference_warmup,
            train_steps=self.train_steps,
        )


_SWITCHES = (
    "jit_compile",
    "use_learning_rate_warmup",
    "reference_warmup",
    "batch_norm_decay_per_replica",
    "moving_average",
    "deterministic",
)
