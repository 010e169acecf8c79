"""Going on in the middle: from the number of a batch back to the record that storage has to begin with."""

from __future__ import annotations

from dataclasses import replace

import tensorflow as tf

from echoing.checks import check_integer
from echoing.echo_factor import EchoFactor
from echoing.errors import OptionError
from pipeline.batch import Batch
from pipeline.echo_stage import Echo, EchoOnDevice
from pipeline.stage import Pipeline, Stage
from pipeline.storage import Storage


def started_at(
    stages: Pipeline, shards: tf.data.Dataset, start_batch: int = 0, start_example: int | None = None
) -> Pipeline:
    """Returns the stages so that their first batch is batch `start_batch` of the whole run.

    Walks from the last stage to the first: what a stage has to be given first is what the one before has to
    deliver first. Stages that keep length and order pass the number on.

    Args:
        stages: a whole pipeline, from storage to transfer.
        shards: the dataset of shards, to learn the size of the elements before a shuffle in bytes.
        start_batch: batches that come before. Batches that a device uses several times count once.
        start_example: for an echo of examples by a variable factor, in place of `start_batch`: fresh examples
            that this host has read before. What lay in the shuffle after the echo is lost, and a repeat that
            was under way is not finished.

    Raises:
        OptionError: a number is negative, or does not go with the echo.
    """
    check_integer("start_batch", start_batch, minimum=0)
    if start_example is not None:
        check_integer("start_example", start_example, minimum=0)
    is_elastic = any(isinstance(stage, Echo) and _is_variable(stage) for stage in stages.stages)
    if is_elastic and start_batch:
        raise OptionError(
            "start_batch",
            start_batch,
            "0 with an elastic echo of examples",
            "Earlier factors decide how many examples these batches took. Give start_example, the number of "
            "fresh examples, which the tag example_id tells.",
        )
    if start_example is not None and not is_elastic:
        raise OptionError(
            "start_example",
            start_example,
            "left out unless an echo of examples is elastic",
            "Give start_batch, which is exact.",
        )

    position = start_batch
    started: list[Stage] = []
    for number, stage in reversed(list(enumerate(stages.stages))):
        if isinstance(stage, Echo) and _is_variable(stage):
            position = start_example or 0
        elif isinstance(stage, Echo):
            stage = replace(stage, start=position)
            in_bytes = stage.shuffle_buffer_bytes is not None and position > 0
            before = Pipeline(stages.stages[:number])
            position = stage.first_input(before(shards).element_spec if in_bytes else None)
        elif isinstance(stage, EchoOnDevice | Storage):
            stage = replace(stage, start=position)
        elif isinstance(stage, Batch):
            position *= stage.batch_size
        started.insert(0, stage)
    return Pipeline(tuple(started))


def _is_variable(stage: Echo) -> bool:
    return not isinstance(stage.factor, EchoFactor)
