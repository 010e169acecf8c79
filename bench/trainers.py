"""From the run's options to a trainer: the visible accelerator, the processor, or an emulated device."""

from __future__ import annotations

import random
from dataclasses import replace

from bench.elastic_echo import MAX_STEPS_PER_LOOP
from bench.run_options import EMULATED_BATCH_SIZE, REAL_BATCH_SIZE, RunOptions
from echoing.errors import OptionError
from pipeline.config import ELASTIC
from pipeline.data_source import DataSource
from trainer.device_echo import DeviceEcho
from trainer.step import Trainer

DEFAULT_NUM_CLASSES = 1001
"""ImageNet's classes and the background: outputs of the reference's model."""


def complete_options(options: RunOptions, batch_size_given: bool) -> RunOptions:
    """Returns the options with the trainer chosen, the trainer's batch size, and a seed.

    Args:
        options: the run's options; the trainer `auto` trains for real where a GPU is visible.
        batch_size_given: whether the user chose the batch size.
    """
    kind = options.trainer
    if kind == "auto":
        import tensorflow as tf

        # A TPU needs a distribution strategy, which the trainer does not have yet.
        kind = "inception_v3" if tf.config.list_physical_devices("GPU") else "emulated"
    options = replace(options, trainer=kind)
    if not batch_size_given:
        options = options.with_pipeline(
            batch_size=EMULATED_BATCH_SIZE if kind == "emulated" else REAL_BATCH_SIZE
        )
    # One seed for all phases, drawn here if none was given, so that the record can name it.
    seed = options.pipeline.seed
    return options.with_pipeline(seed=random.randrange(2**31) if seed is None else seed)


def steps_per_loop(options: RunOptions) -> int:
    """Returns the most steps whose records come together: short loops under an elastic echo, 0 if emulated.

    Args:
        options: the run's options, completed.
    """
    if options.trainer == "emulated":
        return 0
    most = options.steps_per_loop
    return min(most, MAX_STEPS_PER_LOOP) if options.pipeline.is_elastic else most


def make_trainer(options: RunOptions, source: DataSource) -> Trainer:
    """Returns a new trainer, so that each phase starts from the same state.

    Args:
        options: the run's options, completed.
        source: the data, for the number of classes.

    Raises:
        OptionError: an option that the trainer refuses.
    """
    batch_size = options.pipeline.batch_size
    seed = options.pipeline.seed or 0
    device_echo = _device_echo(options)
    if options.trainer == "emulated":
        from trainer.emulation.accelerator import EmulatedAccelerator
        from trainer.emulation.presets import get_preset

        return EmulatedAccelerator(
            get_preset(options.accelerator),
            batch_size=batch_size,
            step_seconds=options.step_seconds,
            jitter=options.jitter,
            seed=seed,
            device_echo=device_echo,
        )
    if options.step_seconds is not None:
        raise OptionError("step_time_seconds", options.step_seconds, "left out with real training")
    from trainer.inception_trainer import InceptionOptions, InceptionTrainer

    return InceptionTrainer(
        InceptionOptions(
            image_size=options.pipeline.image_size,
            width_multiplier=options.width_multiplier,
            num_classes=options.num_classes or source.num_classes or DEFAULT_NUM_CLASSES,
            batch_size=batch_size,
            optimizer=options.optimizer,
            learning_rate=options.learning_rate,
            steps_per_loop=steps_per_loop(options),
            compute_dtype=options.precision,
            jit_compile=options.jit_compile,
            seed=seed,
            device_echo=device_echo,
        )
    )


def _device_echo(options: RunOptions) -> DeviceEcho | None:
    pipeline = options.pipeline
    if not (pipeline.is_echoed and pipeline.parsed_insert_point.is_on_device):
        return None
    if pipeline.is_elastic and options.trainer != "emulated":
        raise OptionError(
            "echo_factor",
            ELASTIC,
            "a number where real training echoes at after_transfer",
            "An elastic factor works at every earlier point.",
        )
    if pipeline.is_elastic and pipeline.max_echo_factor != int(pipeline.max_echo_factor):
        raise OptionError(
            "max_echo_factor", pipeline.max_echo_factor, "a whole number where the device repeats batches"
        )
    return DeviceEcho(
        reaugment=options.reaugment_on_device,
        opportunistic_max_uses=int(pipeline.max_echo_factor) if pipeline.is_elastic else None,
        seed=pipeline.seed or 0,
    )
