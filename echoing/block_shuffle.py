"""A shuffle whose state is a number: the stream is cut into blocks, and each block is permuted by a key.

tf.data's shuffle draws from a buffer that is refilled element by element. What the buffer holds after a
million elements depends on every draw before, so going on in the middle takes the buffer itself, which a
checkpoint would have to hold. Here the order of a block depends on its key and number alone, so that going on
re-reads one block at most.

The price: an element never leaves its block, while a refilled buffer carries some far. Within a block of L
the mean way is L / 3 places. And a block is served only when it is whole, so that a consumer which is faster
than the input receives it in bursts, at the same mean rate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

BLOCKS_HELD = 2
"""One is served while the next one fills."""

_LAST_BLOCK = 2**62


def block_size_for(buffer_size: int) -> int:
    """Returns the elements of a block for a buffer of `buffer_size` elements, which holds two blocks.

    A buffer of 2 or 3 still gives blocks of 2; one of 0 or 1 shuffles nothing.
    """
    return min(buffer_size, max(2, buffer_size // BLOCKS_HELD))


def shuffle_seed(key: Any) -> Any:
    """Returns one number for a key, int64 [], as tf.data's shuffle takes it.

    Not a part of the key: what `tf.random.fold_in` returns holds the number folded in as it is.
    """
    return tf.random.stateless_uniform([], key, minval=None, maxval=None, dtype=tf.int64)


@tf.autograph.experimental.do_not_convert
def shuffle_by_key(dataset: tf.data.Dataset, buffer_size: Any, key: Any) -> tf.data.Dataset:
    """Returns the dataset through tf.data's shuffle, in an order of its own for every key.

    Inside a function of tf.data `tf.random.set_seed` has no say: with a global seed of 0, TensorFlow (2.21)
    would compare the key with 0 in Python, which fails on a tensor of a graph.

    Args:
        dataset: the input.
        buffer_size: elements of the buffer, int or int64 [].
        key: int64 [2].
    """
    seed = shuffle_seed(key)
    if tf.executing_eagerly():
        return dataset.shuffle(buffer_size, seed=seed, reshuffle_each_iteration=False)
    graph = tf.compat.v1.get_default_graph()
    global_seed, graph.seed = graph.seed, None
    try:
        return dataset.shuffle(buffer_size, seed=seed, reshuffle_each_iteration=False)
    finally:
        graph.seed = global_seed


def shuffle_in_blocks(
    block_size: Any, key: Any, first_block: Any = 0
) -> Callable[[tf.data.Dataset], tf.data.Dataset]:
    """Returns a transformation that permutes each block of consecutive elements.

    Length: as the input's, but tf.data does not know it; the last block may be smaller.

    Order: a uniform permutation in every block, the same in every iteration.

    Memory: `BLOCKS_HELD` blocks; elements that share memory, such as the uses of one echoed element, go on
    sharing it.

    Checkpoints of the iterator: tf.data takes the shuffle of a block for stateful, which it is not; the
    policy is set to WARN. Blocks that are held are part of such a checkpoint: it is large, and not needed.

    Args:
        block_size: elements of a block, int or int64 [], >= 1.
        key: int64 [2]; same key, same permutations.
        first_block: number of the block that the input begins with, int or int64 []. To go on from
            element n, give n // block_size, an input that begins at the first element of this block, and
            drop the first n % block_size elements of the result.
    """

    def transform(dataset: tf.data.Dataset) -> tf.data.Dataset:
        def permute(number: Any, block: Any) -> tf.data.Dataset:
            return shuffle_by_key(tf.data.Dataset.zip(block), block_size, tf.random.fold_in(key, number))

        numbers = tf.data.Dataset.range(first_block, _LAST_BLOCK)
        # Held ready: without it the input would stand still while a block is served.
        blocks = tf.data.Dataset.zip((numbers, dataset.window(block_size))).prefetch(BLOCKS_HELD - 1)
        options = tf.data.Options()
        options.experimental_external_state_policy = tf.data.experimental.ExternalStatePolicy.WARN
        return blocks.flat_map(permute).with_options(options)

    return transform
