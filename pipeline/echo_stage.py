"""The echo as a stage of the pipeline, and the time stamp that marks where upstream ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from echoing.echo_factor import EchoFactor
from echoing.echo_operator import count_uses, echo
from pipeline.element import DEVICE_USES, READY_SECONDS, REPEAT_INDEX


@dataclass(frozen=True)
class Echo:
    """Uses each element `factor` times and writes into `repeat_index` which use it is.

    Length: n elements become floor(n e). Order: see `echoing.echo`.

    Attributes:
        factor: how often each element is used, e >= 1; or a variable, which is read while iterating.
        prefetch_elements: elements held ready before the echo, so that upstream goes on while the repeats of
            one element are served; 0 leaves it out.
        shuffle_buffer_size: elements in the shuffle buffer after the echo; 0 leaves it out.
        shuffle_buffer_bytes: memory of that buffer, in place of its size; or None.
        seed: seed of the shuffle; None draws one.
    """

    factor: EchoFactor | tf.Variable
    prefetch_elements: int = 0
    shuffle_buffer_size: int = 0
    shuffle_buffer_bytes: int | None = None
    seed: int | None = None
    name: str = "echo"

    def __call__(self, elements: tf.data.Dataset) -> tf.data.Dataset:
        """Returns the echoed elements, single examples or batches alike."""
        if self.prefetch_elements:
            elements = elements.prefetch(self.prefetch_elements)
        echoed = elements.apply(
            echo(
                self.factor,
                shuffle_buffer_size=self.shuffle_buffer_size,
                shuffle_buffer_bytes=self.shuffle_buffer_bytes,
                seed=self.seed,
                with_repeat_index=True,
            )
        )
        return echoed.map(_note_repeat_index)


@dataclass(frozen=True)
class EchoOnDevice:
    """Writes into `device_uses` on how many steps the device is to use each batch.

    Length and order stay as they are: the device holds the batch and serves it again, without a copy.

    Attributes:
        factor: how often each batch is used, e >= 1.
    """

    factor: EchoFactor
    name: str = "echo"

    def __call__(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        """Returns the batches with their number of uses."""
        return batches.apply(count_uses(self.factor)).map(_note_device_uses)


@dataclass(frozen=True)
class StampUpstream:
    """Writes into `upstream_ready_seconds` when each element passes, for the timeline of the report.

    Length and order stay as they are. The clock is the wall clock (`tf.timestamp`), the only one that
    TensorFlow has as an op; it makes the iterator impossible to checkpoint, so it is for measuring runs only.
    """

    name: str = "stamp_upstream"

    def __call__(self, elements: tf.data.Dataset) -> tf.data.Dataset:
        """Returns the stamped elements."""
        return elements.map(_stamp)


def _note_repeat_index(index: Any, element: dict[str, Any]) -> dict[str, Any]:
    return {**element, REPEAT_INDEX: tf.zeros_like(element[REPEAT_INDEX]) + index}


def _note_device_uses(uses: Any, batch: dict[str, Any]) -> dict[str, Any]:
    return {**batch, DEVICE_USES: uses}


def _stamp(element: dict[str, Any]) -> dict[str, Any]:
    # One stamp an example, also where whole batches pass.
    return {**element, READY_SECONDS: tf.zeros_like(element[REPEAT_INDEX], tf.float64) + tf.timestamp()}
