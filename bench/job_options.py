"""What `pipebench train` was asked for, validated before anything heavy starts. Imports no TensorFlow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from echoing.checks import check_choice, check_integer, check_number
from echoing.errors import OptionError
from pipeline.config import ELASTIC, PipelineConfig
from trainer.device_echo import DeviceEcho
from trainer.profile_window import ProfileSteps
from trainer.strategies import StrategyOptions
from trainer.train_options import TrainOptions

if TYPE_CHECKING:
    from pipeline.data_source import DataSource
    from trainer.placement import Placement

MODES = ("train", "eval", "train_and_eval")
LOG_STEPS_REMOTE = 100
"""Steps between lines of a log in a remote folder, where every line may upload the file anew."""


@dataclass(frozen=True)
class JobOptions:
    """Everything about a training that is to run for long.

    Attributes:
        model_dir: folder of checkpoints and logs, local or remote.
        pipeline: the input of the training; its `batch_size` is the global one.
        train: model, optimizer and loop. `num_classes`, `examples_per_epoch`, `use_learning_rate_warmup` and
            `seed` are completed by `with_data` and `with_seed`.
        strategy: where to train.
        mode: one of `MODES`; None for `train_and_eval` where there are evaluation data, else `train`.
        num_classes: as given; None for that of the data.
        examples_per_epoch: as given; None for the records of the data.
        use_learning_rate_warmup: as given; whether the training is long enough for it is known with the data.
        seed: as given; None for that of the checkpoint, else one that is drawn.
        image_dtype_given: whether the type of the images that go to the device was chosen by the user.
        eval_file_pattern: shell pattern for the shards of the evaluation, in place of the split's names.
        eval_total_size: examples of an evaluation; 0 for all.
        eval_timeout_seconds: how long `eval` waits for a new checkpoint; None for ever.
        display_tensors: print predictions and labels of an evaluation's first examples.
        train_steps_per_eval: steps between evaluations.
        save_seconds: time between checkpoints; 0 leaves these out.
        save_steps: steps between checkpoints, beside those; None leaves these out.
        keep: how many of the newest checkpoints are kept.
        log_steps: steps between lines of the log; None for 1, or 100 in a remote folder.
        summaries: write TensorBoard's event files.
        summary_steps: steps between their points.
        profile_steps: the steps to profile; None for none.
        export_dir: where to write a SavedModel at the end; None for nowhere.
        log_device_placement: let TensorFlow log where each operation runs.
        replicas: number of replicas expected; None for whatever there are.

    Raises:
        OptionError: a value is not allowed.
    """

    model_dir: str
    pipeline: PipelineConfig
    train: TrainOptions
    strategy: StrategyOptions
    mode: str | None = None
    num_classes: int | None = None
    examples_per_epoch: int | None = None
    use_learning_rate_warmup: bool = False
    seed: int | None = None
    image_dtype_given: bool = False
    eval_file_pattern: str | None = None
    eval_total_size: int = 0
    eval_timeout_seconds: float | None = None
    display_tensors: bool = False
    train_steps_per_eval: int = 2000
    save_seconds: float = 1000.0
    save_steps: int | None = None
    keep: int = 5
    log_steps: int | None = None
    summaries: bool = True
    summary_steps: int = 100
    profile_steps: ProfileSteps | None = None
    export_dir: str | None = None
    log_device_placement: bool = False
    replicas: int | None = None

    def __post_init__(self) -> None:
        if not self.model_dir.strip():
            raise OptionError("model_dir", self.model_dir, "the folder of checkpoints and logs")
        if self.mode is not None:
            check_choice("mode", self.mode, MODES)
        for name in ("train_steps_per_eval", "keep", "summary_steps"):
            check_integer(name, getattr(self, name), minimum=1)
        for name in ("save_steps", "log_steps", "replicas"):
            if getattr(self, name) is not None:
                check_integer(name, getattr(self, name), minimum=1)
        check_integer("eval_total_size", self.eval_total_size, minimum=0)
        check_number("save_seconds", self.save_seconds, minimum=0)
        if self.pipeline.is_elastic and not self.pipeline.echoes_examples:
            raise OptionError(
                "echo_factor",
                ELASTIC,
                f"a number at {self.pipeline.parsed_insert_point.value} in a training",
                "An elastic factor works at after_read, after_decode and after_augment.",
            )

    @property
    def lines_every(self) -> int:
        """Steps between lines of the log."""
        if self.log_steps is not None:
            return self.log_steps
        return LOG_STEPS_REMOTE if "://" in self.model_dir else 1

    @property
    def eval_batch_size(self) -> int:
        """Examples of an evaluation's batch over all replicas."""
        return self.train.eval_batch_size or self.train.batch_size

    @property
    def eval_config(self) -> PipelineConfig:
        """The pipeline of the evaluation: the same preprocessing, every example once, in order."""
        return replace(
            self.pipeline, file_pattern=self.eval_file_pattern, echo_factor=1, cache="none", cache_dir=""
        )

    @property
    def facts(self) -> dict[str, Any]:
        """What a checkpoint must agree with, so that its values mean the same."""
        train = self.train
        return {
            "num_classes": train.num_classes,
            "model": train.model,
            "image_size": train.image_size,
            "width_multiplier": train.width_multiplier,
            "optimizer": train.optimizer,
            "moving_average": train.moving_average,
            "preprocess": "vgg" if self.pipeline.preprocess == "vgg" else "inception",
        }

    def with_data(self, source: DataSource) -> JobOptions:
        """Returns the options with classes and epochs completed from the training data.

        Raises:
            OptionError: the training is too short for the epochs of its learning rate.
        """
        train = replace(
            self.train,
            num_classes=self.num_classes or source.num_classes or self.train.num_classes,
            examples_per_epoch=self.examples_per_epoch or source.records or self.train.examples_per_epoch,
            use_learning_rate_warmup=self.use_learning_rate_warmup,
        )
        return replace(self, train=train)

    def with_seed(self, seed: int) -> JobOptions:
        """Returns the options with a seed for weights, dropout, shuffles and augmentation."""
        echo = self.train.device_echo
        train = replace(self.train, seed=seed, device_echo=echo and replace(echo, seed=seed))
        return replace(self, train=train, pipeline=replace(self.pipeline, seed=seed))

    def for_placement(self, placement: Placement) -> JobOptions:
        """Returns the options with what the devices decide.

        Raises:
            OptionError: an option does not work on these devices, or other replicas were expected.
        """
        if self.replicas is not None and placement.replicas != self.replicas:
            raise OptionError(
                "replicas",
                self.replicas,
                f"the number that there are, {placement.replicas} ({placement.device.name})",
            )
        return self.for_devices(placement.kind, placement.worker_count)

    def for_devices(self, kind: str, workers: int) -> JobOptions:
        """Returns the options with what a kind of devices decides; see `for_placement`."""
        if self.pipeline.is_elastic and workers > 1:
            raise OptionError(
                "echo_factor", ELASTIC, "a number with several workers", "They would come out of step."
            )
        if kind != "tpu" or self.pipeline.dtype != "uint8":
            return self
        if self.image_dtype_given:
            raise OptionError("image_dtype", "uint8", "float32 or bfloat16 on a TPU")
        return replace(self, pipeline=replace(self.pipeline, dtype=self.train.compute_dtype))


def device_echo(pipeline: PipelineConfig, reaugment: bool) -> DeviceEcho | None:
    """Returns what the device does with batches that it uses again; None where it uses each once.

    Raises:
        OptionError: re-augmentation was asked for where nothing is repeated on the device.
    """
    if pipeline.is_echoed and pipeline.parsed_insert_point.is_on_device:
        return DeviceEcho(reaugment=reaugment)
    if reaugment:
        raise OptionError("reaugment_on_device", True, "left out unless the echo stands at after_transfer")
    return None
