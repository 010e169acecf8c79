"""The flags of `pipebench run` that belong to the input pipeline and to the trainers."""

from __future__ import annotations

from typing import Any

import click

from bench.option_types import NON_EMPTY, POSITIVE_FLOAT


def pipeline_options(function: Any) -> Any:
    """Adds the options of the input pipeline to a command."""
    positive = click.IntRange(min=1)
    natural = click.IntRange(min=0)
    options = [
        click.option("--data-dir", type=NON_EMPTY, help="Folder of the shards [default: generated ones]."),
        click.option("--split", type=NON_EMPTY, default="train", show_default=True, help="Name prefix."),
        click.option("--file-pattern", type=NON_EMPTY, help="Shell pattern for shard names in the folder."),
        click.option("--batch-size", type=positive, help="Examples a batch [default: 128 or, real, 32]."),
        click.option("--image-size", type=positive, default=299, show_default=True, help="Pixels a side."),
        click.option(
            "--precision", type=click.Choice(["float32", "bfloat16"]), default="float32", show_default=True,
            help="Type of the images that go to the device, and of real training's activations.",
        ),
        click.option(
            "--shuffle-buffer-size", type=natural, default=1000, show_default=True,
            help="Examples in the shuffle buffer, which stands after an echo of examples. 0 leaves it out.",
        ),
        click.option(
            "--shuffle-buffer-bytes", type=positive,
            help="Memory of that buffer, in place of its size; repeats of one example share it.",
        ),
        click.option(
            "--batch-shuffle-buffer-size", type=natural, default=0, show_default=True,
            help="Batches in a shuffle buffer after an echo of batches.",
        ),
        click.option(
            "--batch-shuffle-buffer-bytes", type=positive, help="Memory of that buffer, in place of size.",
        ),
        click.option(
            "--cycle-length", type=positive, default=8, show_default=True, help="Shards read at a time."
        ),
        click.option(
            "--read-buffer-bytes", type=natural, default=8 * 1024 * 1024, show_default=True,
            help="Read buffer of each shard.",
        ),
        click.option(
            "--num-parallel-calls", type=positive,
            help="Parallel decode and augment calls [default: tf.data chooses].",
        ),
        click.option(
            "--prefetch-examples", type=natural, default=64, show_default=True,
            help="Examples held ready before the batch and before an echo of examples.",
        ),
        click.option(
            "--prefetch-batches", type=natural, default=2, show_default=True,
            help="Batches held ready for the device.",
        ),
        click.option(
            "--cache", type=click.Choice(["none", "records"]), default="none", show_default=True,
            help="Keep the compressed records in memory after the first pass.",
        ),
        click.option("--deterministic", is_flag=True, help="Reproducible order (see --seed)."),
        click.option("--use-annotated-boxes", is_flag=True, help="Crop around the records' boxes."),
        click.option(
            "--cb-distortion-range", type=click.FloatRange(min=0), default=0.1, show_default=True,
            help="Largest shift of blue chroma.",
        ),
        click.option(
            "--cr-distortion-range", type=click.FloatRange(min=0), default=0.1, show_default=True,
            help="Largest shift of red chroma.",
        ),
        click.option(
            "--fast-color-distort/--no-fast-color-distort", default=True, show_default=True,
            help="Shift brightness and chroma, or change brightness and saturation.",
        ),
        click.option(
            "--on-bad-record", type=click.Choice(["fail", "skip"]), default="fail", show_default=True,
            help="What to do with a record that cannot be read or decoded; skipped ones are counted.",
        ),
    ]  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


def trainer_options(function: Any) -> Any:
    """Adds the options of the trainers to a command."""
    positive = click.IntRange(min=1)
    options = [
        click.option(
            "--trainer", type=click.Choice(["auto", "inception_v3", "emulated"]), default="auto",
            show_default=True,
            help="Auto trains Inception v3 where an accelerator is visible, else emulates one.",
        ),
        click.option(
            "--accelerator", type=NON_EMPTY, default="tpu-v2-8", show_default=True,
            help="Preset of the emulated accelerator: tpu-v2-8, a100, h100 or v100.",
        ),
        click.option(
            "--step-time-seconds", "step_seconds", type=POSITIVE_FLOAT,
            help="Step time of the emulated accelerator, in place of the preset's.",
        ),
        click.option(
            "--jitter", type=click.FloatRange(0, 1), default=0.0, show_default=True,
            help="Relative standard deviation of the emulated step time.",
        ),
        click.option(
            "--width-multiplier", type=POSITIVE_FLOAT, default=1.0, show_default=True,
            help="Width of Inception v3's layers.",
        ),
        click.option("--num-classes", type=click.IntRange(min=2), help="Outputs, background included."),
        click.option(
            "--optimizer", type=click.Choice(["momentum", "rmsprop"]), default="rmsprop", show_default=True,
            help="Optimizer of Inception v3.",
        ),
        click.option("--learning-rate", type=POSITIVE_FLOAT, help="[default: 0.165 for each 256 of a batch]"),
        click.option(
            "--steps-per-loop", type=positive, default=100, show_default=True,
            help="The most Inception v3 steps inside one compiled function; fewer where they are long.",
        ),
        click.option("--xla", "jit_compile", is_flag=True, help="Compile the training step with XLA."),
    ]  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function
