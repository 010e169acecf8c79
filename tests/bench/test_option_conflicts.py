"""Options without effect are refused."""

from __future__ import annotations

import click
import pytest

from bench.option_conflicts import refuse_conflicts
from bench.run_options import RunOptions
from pipeline.config import PipelineConfig


def refuse(given, trainer="emulated", **pipeline):
    options = RunOptions(PipelineConfig("data", keep_tags=True, **pipeline), trainer=trainer)
    refuse_conflicts(options, lambda name: name in given, lambda name: "--" + name.replace("_", "-"))


@pytest.mark.parametrize(
    "given, trainer, pipeline",
    [
        (["optimizer"], "emulated", {}),
        (["width_multiplier"], "emulated", {}),
        (["reaugment_on_device"], "emulated", {}),
        (["jitter"], "inception_v3", {}),
        (["step_seconds"], "inception_v3", {}),
        (["max_echo_factor"], "emulated", {"echo_factor": 2}),
        (["batch_shuffle_buffer_size"], "emulated", {"echo_factor": 2, "insert_point": "after_augment"}),
        (
            ["batch_shuffle_buffer_bytes"],
            "emulated",
            {"echo_factor": "elastic", "insert_point": "after_batch"},
        ),
        (["batch_shuffle_buffer_size"], "emulated", {"insert_point": "after_batch"}),
        (["shuffle_buffer_bytes", "shuffle_buffer_size"], "emulated", {}),
    ],
)
def test_option_without_effect_is_refused_by_its_flag(given, trainer, pipeline):
    flag = "--" + given[-1].replace("_", "-")
    with pytest.raises(click.UsageError, match=f"{flag} would have no effect"):
        refuse(given, trainer, **pipeline)


@pytest.mark.parametrize(
    "given, trainer, pipeline",
    [
        ([], "emulated", {}),
        (["jitter", "accelerator", "step_seconds"], "emulated", {}),
        (["optimizer", "width_multiplier"], "inception_v3", {}),
        (["max_echo_factor"], "emulated", {"echo_factor": "elastic"}),
        (["batch_shuffle_buffer_size"], "emulated", {"echo_factor": 2, "insert_point": "after_batch"}),
        (["shuffle_buffer_bytes"], "emulated", {}),
    ],
)
def test_option_with_effect_passes(given, trainer, pipeline):
    refuse(given, trainer, **pipeline)
