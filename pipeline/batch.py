"""The batch stage: from examples to batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf

MIN_BLOCKS = 4
"""Blocks held ready at least, where any are: with fewer, a core waits for the other's block at times."""


@dataclass(frozen=True)
class Batch:
    """Stacks consecutive examples into batches.

    Length: n examples become n // batch_size batches, or one more where a smaller last batch is kept.
    Order stays as it is.

    Attributes:
        batch_size: examples a batch.
        drop_remainder: leave out a smaller last batch; shapes are then static, as accelerators need.
        prefetch_examples: examples held ready before the batch, so that the stages before it go on while
            a batch is copied together; 0 leaves it out.
        block_examples: examples of an element that comes in; 1 for single ones. Blocks are cut and put
            together to batches, whatever the two sizes are; the last block may be smaller.
    """

    batch_size: int
    drop_remainder: bool = True
    prefetch_examples: int = 0
    block_examples: int = 1
    name: str = "batch"

    def __call__(self, examples: tf.data.Dataset) -> tf.data.Dataset:
        """Returns the batches: every feature gains a leading axis, which those of blocks have already."""
        if self.prefetch_examples:
            blocks = -(-self.prefetch_examples // self.block_examples)
            examples = examples.prefetch(blocks if self.block_examples == 1 else max(blocks, MIN_BLOCKS))
        if self.block_examples > 1:
            return self._from_blocks(examples)
        # Copied by several threads: a batch of 1,024 float images is more than a gigabyte.
        return examples.batch(
            self.batch_size,
            drop_remainder=self.drop_remainder,
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )

    def _from_blocks(self, blocks: tf.data.Dataset) -> tf.data.Dataset:
        endless = int(blocks.cardinality()) == tf.data.INFINITE_CARDINALITY
        if not endless or self.batch_size % self.block_examples:
            return blocks.rebatch(self.batch_size, drop_remainder=self.drop_remainder)
        # All blocks are whole: they are stacked by several threads, and a change of shape copies nothing.
        stacked = blocks.batch(
            self.batch_size // self.block_examples,
            drop_remainder=True,
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )
        return stacked.map(self._join)

    def _join(self, stacked: dict[str, Any]) -> dict[str, Any]:
        return {
            name: tf.reshape(feature, [self.batch_size, *feature.shape[2:]])
            for name, feature in stacked.items()
        }
