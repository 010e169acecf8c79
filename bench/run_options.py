"""What `pipebench run` was asked for, validated before anything heavy starts."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from echoing.checks import check_choice, check_integer, check_number
from echoing.errors import OptionError
from pipeline.config import ELASTIC, PipelineConfig
from trainer.emulation.presets import get_preset

TRAINERS = ("auto", "inception_v3", "emulated")
DEFAULT_ACCELERATOR = "tpu-v2-8"

DEFAULT_SECONDS = 25.0
DEFAULT_BASELINE_SECONDS = 12.0
"""Measured time of run and baseline: with start-up, probes and warm-ups the command stays under two minutes
on two cores, also the first time, when the default images are generated."""

EMULATED_BATCH_SIZE = 128
"""Batch of an emulated accelerator unless one is given: small enough that a host of a few cores gives many
steps a minute. The preset's step time is scaled to it, so the device's images/s are the preset's."""

REAL_BATCH_SIZE = 32
"""Batch of real training unless one is given."""


@dataclass(frozen=True)
class RunLimit:
    """When a phase ends; exactly one of the three is set.

    Attributes:
        seconds: measured time after the warm-up.
        steps: training steps, warm-up included.
        epochs: passes over the data.
    """

    seconds: float | None = None
    steps: int | None = None
    epochs: int | None = None

    def __post_init__(self) -> None:
        """Checks the limits.

        Raises:
            OptionError: not exactly one, or one that is not positive.
        """
        given = {name: value for name, value in asdict(self).items() if value is not None}
        if len(given) != 1:
            raise OptionError("steps, seconds, epochs", given, "exactly one of the three")
        if self.seconds is not None:
            check_number("seconds", self.seconds, minimum=0, exclusive_minimum=True)
        if self.steps is not None:
            check_integer("steps", self.steps, minimum=1)
        if self.epochs is not None:
            check_integer("epochs", self.epochs, minimum=1)


@dataclass(frozen=True)
class RunOptions:
    """Options of one run.

    Attributes:
        pipeline: the input pipeline's options; an empty data folder stands for the generated data.
        limit: when the run ends.
        trainer: `auto`, `inception_v3` or `emulated`; auto trains for real where an accelerator is visible.
        accelerator: preset of the emulated accelerator.
        step_seconds: step time in place of the preset's, for the batch size in use; or None.
        jitter: relative standard deviation of the emulated step time.
        width_multiplier: width of Inception v3's layers.
        num_classes: outputs of Inception v3, background included; None takes the data's, else 1,001.
        precision: type of real training's activations, `float32` or `bfloat16`.
        optimizer: `rmsprop`, `momentum` or `sgd`.
        learning_rate: None takes 0.165 for each 256 examples of the batch.
        steps_per_loop: the most Inception v3 steps inside one compiled function; fewer where they are long.
        jit_compile: compile the step with XLA.
        reaugment_on_device: distort the repeats of a batch that the device holds.
        baseline: measure the same pipeline without echo first, and the rates that the prediction needs.
        baseline_seconds: measured time of the baseline.
        warmup_steps: steps left out of the rates, at least one.
        warmup_seconds: time left out of the rates.
    """

    pipeline: PipelineConfig
    limit: RunLimit = field(default_factory=lambda: RunLimit(seconds=DEFAULT_SECONDS))
    trainer: str = "auto"
    accelerator: str = DEFAULT_ACCELERATOR
    step_seconds: float | None = None
    jitter: float = 0.0
    width_multiplier: float = 1.0
    num_classes: int | None = None
    precision: str = "float32"
    optimizer: str = "rmsprop"
    learning_rate: float | None = None
    steps_per_loop: int = 100
    jit_compile: bool = False
    reaugment_on_device: bool = False
    baseline: bool = True
    baseline_seconds: float = DEFAULT_BASELINE_SECONDS
    warmup_steps: int = 2
    warmup_seconds: float = 5.0

    def __post_init__(self) -> None:
        """Checks every option.

        Raises:
            OptionError: an option has a value that is not allowed.
        """
        check_choice("trainer", self.trainer, TRAINERS)
        get_preset(self.accelerator)
        if self.step_seconds is not None:
            check_number("step_time_seconds", self.step_seconds, minimum=0, exclusive_minimum=True)
        check_choice("precision", self.precision, ("float32", "bfloat16"))
        check_number("jitter", self.jitter, minimum=0, maximum=1)
        check_number("baseline_seconds", self.baseline_seconds, minimum=0, exclusive_minimum=True)
        if self.reaugment_on_device and not self.pipeline.parsed_insert_point.is_on_device:
            raise OptionError(
                "reaugment_on_device", True, "left out unless the echo stands at after_transfer"
            )
        check_integer("warmup_steps", self.warmup_steps, minimum=1)
        check_number("warmup_seconds", self.warmup_seconds, minimum=0)

    def with_pipeline(self, **changes: Any) -> RunOptions:
        """Returns the options with some of the pipeline's replaced."""
        return replace(self, pipeline=replace(self.pipeline, **changes))

    def to_dict(self) -> dict[str, Any]:
        """Returns every option, the pipeline's beside the run's own, for the result record."""
        document = asdict(self)
        document |= document.pop("pipeline")
        document |= {f"limit_{name}": value for name, value in document.pop("limit").items()}
        factor = self.pipeline.parsed_echo_factor
        number = int(factor.value) if factor.is_integer else float(factor)
        document["echo_factor"] = ELASTIC if self.pipeline.is_elastic else number
        document["insert_point"] = self.pipeline.parsed_insert_point.value
        return document
