"""The echo as a stage of the pipeline, and the time stamp that marks where upstream ends."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from echoing.block_shuffle import block_size_for, shuffle_in_blocks
from echoing.cardinality import declare_length
from echoing.echo_factor import EchoFactor
from echoing.echo_operator import count_uses, echo
from echoing.errors import OptionError
from echoing.shuffle_budget import element_bytes_of, elements_for_budget
from pipeline.element import DEVICE_USES, READY_SECONDS, REPEAT_INDEX

_SHUFFLE = 4
"""Part of the key of the shuffle, beside the seed: no other draw of the pipeline has it."""


@dataclass(frozen=True)
class Echo:
    """Uses each element `factor` times and writes into `repeat_index` which use it is.

    Length: n elements become floor(n e).

    Order: see `echoing.echo`; with `deterministic` the shuffle is one in blocks, `echoing.block_shuffle`, so
    that the echo can go on in the middle.

    Attributes:
        factor: how often each element is used, e >= 1; or a variable, which is read while iterating.
        prefetch_elements: elements held ready before the echo, so that upstream goes on while the repeats of
            one element are served; 0 leaves it out.
        shuffle_buffer_size: elements in the shuffle buffer after the echo; 0 leaves it out.
        shuffle_buffer_bytes: memory of that buffer, in place of its size; or None.
        seed: seed of the shuffle; None draws one.
        deterministic: shuffle in blocks of half the buffer, permuted by keys.
        start: outputs that come before the first one, not with a variable factor. The stage then has to be
            given the elements from `first_input` on. With `deterministic` the outputs are those of the whole
            run; otherwise only the elements are, and their order is another.
    """

    factor: EchoFactor | tf.Variable
    prefetch_elements: int = 0
    shuffle_buffer_size: int = 0
    shuffle_buffer_bytes: int | None = None
    seed: int | None = None
    deterministic: bool = False
    start: int = 0
    name: str = "echo"

    def first_input(self, element_spec: Any = None) -> int:
        """Returns the number of the element that the stage has to be given first.

        Args:
            element_spec: specification of the elements; only for a buffer in bytes.

        Raises:
            OptionError: a start with a variable factor.
        """
        if self.start == 0:
            return 0
        if not isinstance(self.factor, EchoFactor):
            raise OptionError("start", self.start, "0 with a variable factor")
        block = self._block_size(element_spec)
        return self.factor.element_of(self.start // block * block if block else self.start)

    def __call__(self, elements: tf.data.Dataset) -> tf.data.Dataset:
        """Returns the echoed elements, single examples or batches alike."""
        if self.prefetch_elements:
            elements = elements.prefetch(self.prefetch_elements)
        block = self._block_size(elements.element_spec)
        if block:
            served = self.start % block
            echoed = elements.apply(echo(self.factor, with_repeat_index=True, start=self.start - served))
            seed = random.randrange(2**31) if self.seed is None else self.seed
            key = tf.constant([seed, _SHUFFLE], tf.int64)
            length = int(echoed.cardinality())
            echoed = echoed.apply(shuffle_in_blocks(block, key, self.start // block))
            echoed = declare_length(echoed, length)
            # Of the block in which the start lies: made once more, for the rest of it.
            echoed = echoed.skip(served) if served else echoed
        else:
            echoed = elements.apply(
                echo(
                    self.factor,
                    shuffle_buffer_size=self.shuffle_buffer_size,
                    shuffle_buffer_bytes=self.shuffle_buffer_bytes,
                    seed=self.seed,
                    with_repeat_index=True,
                    start=self.start,
                )
            )
        return echoed.map(_note_repeat_index)

    def _block_size(self, element_spec: Any) -> int:
        """Returns the outputs of a block, or 0 where the shuffle is none in blocks."""
        if not self.deterministic:
            return 0
        buffer = self.shuffle_buffer_size
        if self.shuffle_buffer_bytes is not None:
            factor = self.factor if isinstance(self.factor, EchoFactor) else 1
            buffer = elements_for_budget(self.shuffle_buffer_bytes, element_bytes_of(element_spec), factor)
        block = block_size_for(buffer)
        return block if block > 1 else 0


@dataclass(frozen=True)
class EchoOnDevice:
    """Writes into `device_uses` on how many steps the device is to use each batch.

    Length and order stay as they are: the device holds the batch and serves it again, without a copy.

    Attributes:
        factor: how often each batch is used, e >= 1.
        start: batches that come before the first one.
    """

    factor: EchoFactor
    start: int = 0
    name: str = "echo"

    def __call__(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        """Returns the batches with their number of uses."""
        return batches.apply(count_uses(self.factor, self.start)).map(_note_device_uses)


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
