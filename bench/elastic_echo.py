"""Drives the elastic echo of a run: a variable factor for examples, opportunistic repeats for batches."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from echoing.elastic import ElasticController, ElasticOptions
from echoing.opportunistic import OpportunisticEcho
from pipeline.config import PipelineConfig
from pipeline.element import REPEAT_INDEX
from pipeline.input_pipeline import InputPipeline
from trainer.batch_source import BatchSource

INFEED_BATCHES = 3
"""Batches between the pipeline and the device: the infeed queue's two and the one being copied."""

PATIENCE_SECONDS = 0.001
"""How long a fresh batch may be late before another is repeated: a thread switch, not a batch's making."""


MAX_STEPS_PER_LOOP = 4
"""Steps of a compiled loop under an elastic echo: its records come in a burst after it, and the next loop is
under way by then, so that a change takes two loops to show."""


def settle_steps(config: PipelineConfig, steps_per_loop: int = 0) -> int:
    """Returns how many steps a new factor of examples needs to show at the device.

    The batches held ready, those of the infeed, and the examples held ready before the batch. The shuffle
    buffer is left out: it delays which examples come, not how many fresh ones each step takes.

    Args:
        config: the pipeline's options.
        steps_per_loop: steps whose records come together; 0 where each comes as it ends.
    """
    examples = math.ceil(config.prefetch_examples / config.batch_size)
    return config.prefetch_batches + INFEED_BATCHES + examples + 2 * steps_per_loop


class ElasticEcho:
    """The elastic echo of one phase.

    Echo of examples: a controller sets the pipeline's variable after every step. Echo of batches: a batch is
    used again only while the next one is not ready; nothing has to be controlled. On the device itself the
    trainer does that.

    Args:
        pipeline: a pipeline whose factor is elastic.
        takes_iterables: whether the trainer takes any iterable of batches; otherwise repeated batches are
            wrapped into a `tf.data.Dataset`, which copies each of them.
        steps_per_loop: steps whose records come together; 0 where each comes as it ends.
    """

    def __init__(self, pipeline: InputPipeline, takes_iterables: bool, steps_per_loop: int = 0) -> None:
        self._pipeline = pipeline
        self._takes_iterables = takes_iterables
        config = pipeline.config
        self.controller: ElasticController | None = None
        if pipeline.echo_variable is not None:
            self.controller = ElasticController(
                ElasticOptions(
                    max_factor=config.max_echo_factor, settle_steps=settle_steps(config, steps_per_loop)
                )
            )

    def dataset(self) -> Any:
        """Returns what feeds the trainer."""
        dataset = self._pipeline()
        config = self._pipeline.config
        if config.echoes_examples or config.parsed_insert_point.is_on_device:
            return dataset
        if self._takes_iterables:
            return RepeatedBatches(dataset, config.max_echo_factor)
        import tensorflow as tf

        options = tf.data.Options()
        # A prefetch of tf.data's own would ask too soon, and be given repeats that nobody needs.
        options.experimental_optimization.inject_prefetch = False
        return tf.data.Dataset.from_generator(
            lambda: iter(RepeatedBatches(dataset, config.max_echo_factor)),
            output_signature=dataset.element_spec,
        ).with_options(options)

    def observe(self, wait_seconds: float, busy_seconds: float, fresh: int, trained: int) -> None:
        """Takes in a training step and sets the factor for the elements to come."""
        if self.controller is not None and self._pipeline.echo_variable is not None:
            factor = self.controller.observe(wait_seconds, busy_seconds, fresh, trained)
            if factor != self._pipeline.echo_variable.numpy():
                self._pipeline.echo_variable.assign(factor)

    def trace(self) -> list[tuple[int, float]]:
        """Returns the changes of the factor, `(step, factor)`; empty where nothing controls it."""
        if self.controller is None:
            return []
        return [(change.step, change.factor) for change in self.controller.trace]


class RepeatedBatches:
    """Batches of which each is used again while the next one is not ready.

    Args:
        dataset: a `tf.data.Dataset` of batches with their tags.
        max_factor: how often a batch is used on average at most.
    """

    def __init__(self, dataset: Any, max_factor: float) -> None:
        self._source = BatchSource(dataset)
        self._max_factor = max_factor

    def cancel(self) -> None:
        """Ends a wait for the next batch, from another thread."""
        self._source.cancel()

    def __iter__(self) -> Iterator[Any]:
        """Yields fresh batches in order and repeats, which say so in `repeat_index`."""
        echoed = OpportunisticEcho(
            self._source, self._max_factor, patience_seconds=PATIENCE_SECONDS, cancel=self._source.cancel
        )
        with closing(echoed) as batches:
            for repeat_index, batch in batches:
                yield {**batch, REPEAT_INDEX: batch[REPEAT_INDEX] + repeat_index}
