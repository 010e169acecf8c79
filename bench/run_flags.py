"""The flags of `pipebench run` that belong to the trainers."""

from __future__ import annotations

from typing import Any

import click

from bench.option_types import NON_EMPTY, POSITIVE_FLOAT


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
            "--optimizer", type=click.Choice(["rmsprop", "momentum", "sgd"]), default="rmsprop",
            show_default=True, help="Optimizer of Inception v3.",
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
