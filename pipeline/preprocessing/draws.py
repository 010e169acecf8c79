"""Random numbers that depend on the seed, the example and the repeat alone, for one example or for many.

A hash of counters in plain integer arithmetic: TensorFlow's stateless generators take one key a call, so a
block of examples with keys of its own would cost many calls each. Same key, same numbers: in any order, with
any parallelism, on every machine, after a resume.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

_GOLDEN = 0x9E3779B97F4A7C15
_MIX_1 = 0xBF58476D1CE4E5B9
_MIX_2 = 0x94D049BB133111EB
"""Constants of SplitMix64 (Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators")."""


def example_bits(seed: int, example_id: Any, repeat_index: Any, count: int) -> Any:
    """Returns `count` independent random words for every example.

    Args:
        seed: of the run, 0 to 2**63 - 1.
        example_id: int64 [...], running numbers of the examples.
        repeat_index: int64 [...], which use of the example it is.
        count: words an example.

    Returns:
        uint64 [..., count].
    """
    # The part that all examples share, in Python: one operation less in ten for every image.
    key = _mix(tf.constant(np.uint64(_mix_integer(seed))) ^ tf.cast(example_id, tf.uint64))
    key = _mix(key ^ tf.cast(repeat_index, tf.uint64))
    # Through NumPy: of a list, graphs take numbers above 2**63 by way of floats, and lose their lowest bits.
    counters = np.array([(_GOLDEN * number) % 2**64 for number in range(1, count + 1)], np.uint64)
    return _mix(key[..., tf.newaxis] + tf.constant(counters))


def to_uniform(bits: Any) -> Any:
    """Returns float32 numbers in [0, 1) made of the upper 24 bits of uint64 words, shape as given."""
    return tf.cast(tf.bitwise.right_shift(bits, tf.constant(40, tf.uint64)), tf.float32) * 2.0**-24


def to_seed(bits: Any) -> Any:
    """Returns int64 keys for TensorFlow's stateless operations; shape as given, such as [..., 2]."""
    return tf.bitcast(bits, tf.int64)


def _mix(word: Any) -> Any:
    """The output function of SplitMix64: every bit of the result depends on every bit of `word`."""

    def xorshift(value: Any, places: int) -> Any:
        return value ^ tf.bitwise.right_shift(value, tf.constant(places, tf.uint64))

    word = word + tf.constant(_GOLDEN, tf.uint64)
    word = xorshift(word, 30) * tf.constant(_MIX_1, tf.uint64)
    word = xorshift(word, 27) * tf.constant(_MIX_2, tf.uint64)
    return xorshift(word, 31)


def _mix_integer(word: int) -> int:
    """The same as `_mix`, of one Python integer."""
    word = (word + _GOLDEN) % 2**64
    word = (word ^ (word >> 30)) * _MIX_1 % 2**64
    word = (word ^ (word >> 27)) * _MIX_2 % 2**64
    return word ^ (word >> 31)
