"""Options that would have no effect are refused, not ignored."""

from __future__ import annotations

from collections.abc import Callable

import click

from bench.pipeline_flags import PARITY_DECIDES
from bench.run_options import RunOptions
from pipeline.config import PipelineConfig

REAL_ONLY = ("optimizer", "learning_rate", "jit_compile", "width_multiplier", "num_classes", "steps_per_loop",
             "reaugment_on_device")  # fmt: skip
EMULATED_ONLY = ("accelerator", "jitter", "step_seconds")
INCEPTION_ONLY = ("use_annotated_boxes", "cb_distortion_range", "cr_distortion_range", "fast_color_distort",
                  "fast_mode")  # fmt: skip
REAL_DATA_ONLY = ("data_dir", "split", "file_pattern", "cache", "preprocess", "parity", "use_annotated_boxes",
                  "on_bad_record", "cycle_length", "read_buffer_bytes")  # fmt: skip
BATCH_SHUFFLES = ("batch_shuffle_buffer_size", "batch_shuffle_buffer_bytes")


IsGiven = Callable[[str], bool]
FlagOf = Callable[[str], str]


class Refusal:
    """Refuses options that were given but would have no effect.

    Args:
        is_given: whether the user gave the option of this name.
        flag_of: the flag of an option, for messages.
    """

    def __init__(self, is_given: IsGiven, flag_of: FlagOf) -> None:
        self.is_given = is_given
        self._flag_of = flag_of

    def __call__(self, names: tuple[str, ...], reason: str) -> None:
        """Refuses those of the options that were given.

        Raises:
            click.UsageError: one was given.
        """
        for name in names:
            if self.is_given(name):
                raise click.UsageError(f"{self._flag_of(name)} would have no effect: {reason}")


def refuse_conflicts(options: RunOptions, is_given: IsGiven, flag_of: FlagOf) -> None:
    """Refuses options of `pipebench run` that were given but would have no effect.

    Args:
        options: the completed options.
        is_given: whether the user gave the option of this name.
        flag_of: the flag of an option, for messages.

    Raises:
        click.UsageError: such an option was given.
    """
    refuse = Refusal(is_given, flag_of)
    if options.trainer == "emulated":
        refuse(REAL_ONLY, "the accelerator is emulated and trains nothing. Give --trainer inception_v3.")
    else:
        refuse(EMULATED_ONLY, "the training is real. Give --trainer emulated.")
    refuse_pipeline_conflicts(options.pipeline, refuse)


def refuse_pipeline_conflicts(pipeline: PipelineConfig, refuse: Refusal) -> None:
    """Refuses options of the input pipeline that were given but would have no effect.

    Args:
        pipeline: the completed options.
        refuse: what the user gave.

    Raises:
        click.UsageError: such an option was given.
    """
    is_given = refuse.is_given
    if not pipeline.is_elastic:
        refuse(("max_echo_factor",), "it bounds an elastic factor. Give --echo-factor elastic.")
    if pipeline.is_elastic or not pipeline.is_echoed or pipeline.parsed_insert_point.value != "after_batch":
        refuse(BATCH_SHUFFLES, "it shuffles batches that are echoed by a number at after_batch.")
    if pipeline.use_data == "fake":
        refuse(REAL_DATA_ONLY, "fake data is neither read nor preprocessed.")
    if is_given("parity"):
        refuse(PARITY_DECIDES, "--parity decides it.")
    if pipeline.preprocess == "vgg":
        refuse(INCEPTION_ONLY, "vgg has no such distortions and takes no boxes.")
    else:
        refuse(("vgg_reference_scaling",), "it is of vgg. Give --preprocess vgg.")
    if not pipeline.decodes_crops:
        refuse(("parse_after_batch",), "whole images are decoded, one by one.")
    if pipeline.cache == "none":
        refuse(("cache_dir",), "there is no cache. Give --cache records or --cache images.")
    if is_given("shuffle_buffer_bytes"):
        refuse(("shuffle_buffer_size",), "--shuffle-buffer-bytes takes its place.")
    if is_given("batch_shuffle_buffer_bytes"):
        refuse(("batch_shuffle_buffer_size",), "--batch-shuffle-buffer-bytes takes its place.")
