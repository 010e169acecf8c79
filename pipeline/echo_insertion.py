"""Where the echo goes in a pipeline, and which echo stage it is."""

from __future__ import annotations

import tensorflow as tf

from echoing.echo_factor import EchoFactor
from echoing.insertion_point import InsertionPoint
from pipeline.config import PipelineConfig
from pipeline.echo_stage import Echo, EchoOnDevice, StampUpstream
from pipeline.fake_data import FakeData
from pipeline.fused import DecodeAndAugment
from pipeline.stage import Pipeline, Stage
from pipeline.storage import Storage


def last_stage_before(point: InsertionPoint, stages: Pipeline) -> str:
    """Returns the name of the stage that ends at an insertion point.

    Args:
        point: the point.
        stages: the pipeline, in which one stage may do the work of several.
    """
    # Fake data stands in for all three; images that are cached are decoded within the storage stage.
    for name in (point.stage_name, FakeData.name, DecodeAndAugment.name):
        if name in stages.names:
            return name
    return Storage.name


def insert_echo(
    stages: Pipeline, config: PipelineConfig, factor: EchoFactor | tf.Variable, shuffle_size: int, seed: int
) -> Pipeline:
    """Returns the stages with the echo, and the time stamp before it, at the configuration's point.

    Args:
        stages: from storage to transfer.
        config: the pipeline's options.
        factor: the echo factor; a variable for an elastic echo of examples.
        shuffle_size: examples in the shuffle after an echo of examples; 0 leaves it out.
        seed: of the shuffle.
    """
    position = last_stage_before(config.parsed_insert_point, stages)
    echo = _echo_stage(config, factor, shuffle_size, seed)
    if echo is not None:
        stages = stages.with_stage_after(position, echo)
    if config.stamp_upstream:
        stages = stages.with_stage_after(position, StampUpstream())
    return stages


def _echo_stage(
    config: PipelineConfig, factor: EchoFactor | tf.Variable, shuffle_size: int, seed: int
) -> Stage | None:
    if config.echoes_examples:
        return Echo(
            factor,
            prefetch_elements=config.prefetch_examples,
            shuffle_buffer_size=shuffle_size,
            seed=seed,
            deterministic=config.deterministic,
        )
    fixed = config.parsed_echo_factor
    if fixed.is_one:
        return None
    if config.parsed_insert_point.is_on_device:
        return EchoOnDevice(fixed)
    # One batch held ready, so that upstream makes the next while the repeats of one are served.
    in_bytes = config.batch_shuffle_buffer_bytes
    return Echo(
        fixed,
        prefetch_elements=1,
        shuffle_buffer_size=config.batch_shuffle_buffer_size if in_bytes is None else 0,
        shuffle_buffer_bytes=in_bytes,
        seed=seed,
        deterministic=config.deterministic,
    )
