"""The batch stage: from examples to batches."""

from __future__ import annotations

from dataclasses import dataclass

import tensorflow as tf


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
            examples = examples.prefetch(-(-self.prefetch_examples // self.block_examples))
        if self.block_examples > 1:
            return examples.rebatch(self.batch_size, drop_remainder=self.drop_remainder)
        # Copied by several threads: a batch of 1,024 float images is more than a gigabyte.
        return examples.batch(
            self.batch_size,
            drop_remainder=self.drop_remainder,
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )
