"""The flags that say where to train and to evaluate, and what is evaluated."""

from __future__ import annotations

from typing import Any

import click

from bench.option_types import NON_EMPTY, POSITIVE_FLOAT
from bench.train_flags import NATURAL, POSITIVE, apply_options


def placement_options(function: Any) -> Any:
    """Adds the devices, the hosts and the TPU."""
    options = [
        click.option("--device", type=click.Choice(["auto", "cpu", "gpu", "mirrored", "tpu"]),
                     default="auto", show_default=True,
                     help="Auto takes all GPUs that are visible, else the CPU."),
        click.option("--logical-devices", type=POSITIVE,
                     help="Split the CPU into so many replicas, to try several; it gets no faster."),
        click.option("--replicas", type=POSITIVE,
                     help="Replicas expected: another number is refused, and --dry-run plans for them."),
        click.option("--cluster", type=NON_EMPTY, metavar="HOST:PORT,...",
                     help="All workers, the same list on each [default: TF_CONFIG's]."),
        click.option("--task-index", type=NATURAL, help="This host's place in the cluster, from 0."),
        click.option("--tpu", type=NON_EMPTY, help="Name of a TPU, its grpc:// address, or local."),
        click.option("--tpu-zone", "--zone", "tpu_zone", type=NON_EMPTY,
                     help="Its zone [default: this machine's]."),
        click.option("--gcp-project", "--project", "tpu_project", type=NON_EMPTY,
                     help="Its project [default: this machine's]."),
    ]  # fmt: skip
    return apply_options(function, options)


def evaluation_options(function: Any) -> Any:
    """Adds the size of an evaluation and what it prints."""
    options = [
        click.option("--eval-batch-size", type=POSITIVE,
                     help="Examples of its batch over all replicas [default: training's, or 128]."),
        click.option("--eval-total-size", type=NATURAL, default=0, show_default=True,
                     help="Evaluate the first so many examples; 0 for all, the last batch included."),
        click.option("--eval-timeout", type=POSITIVE_FLOAT, metavar="SECONDS",
                     help="How long to wait for a new checkpoint [default: for ever]."),
        click.option("--display-tensors", is_flag=True,
                     help="Print predictions and labels of an evaluation's first examples."),
    ]  # fmt: skip
    return apply_options(function, options)
