"""Skipping bad records without losing count of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

NO_USABLE_RECORD = "none of the records is usable"
"""Part of the error's message where a pipeline gives up because it skips all that it reads."""


class SkipCounter:
    """Counts the records that a pipeline leaves out because they cannot be read or decoded.

    The count is exact for what the pipeline has looked at so far, which may be ahead of what was trained. It
    lives in a variable of this process: a pipeline that counts cannot be shipped to the tf.data service.

    Args:
        give_up_after: skipped records after which, if none was good, `tf.errors.InvalidArgumentError` is
            raised; else a pipeline that repeats bad records for ever would look for
            a good one for ever. None never gives up.
    """

    def __init__(self, give_up_after: int | None = None) -> None:
        self._give_up_after = give_up_after
        self._tried = tf.Variable(0, dtype=tf.int64, trainable=False, name="unusable_records_tried")
        self._any_good = tf.Variable(False, trainable=False, name="any_usable_record")
        self._count = tf.Variable(0, dtype=tf.int64, trainable=False, name="skipped_records")

    @property
    def count(self) -> int:
        """Records skipped so far."""
        return int(self._count.numpy())

    def count_missing(self, records: tf.data.Dataset, expected: Any) -> tf.data.Dataset:
        """Counts the records that a shard should have had after the last one that it gave.

        Args:
            records: `(position, serialized)` pairs of one shard, positions from 0 without gaps.
            expected: int64 [], number of records in the shard, or -1 where it is not known.

        Returns:
            The same pairs.
        """
        end = tf.data.Dataset.from_tensors((expected, "", True))
        marked = records.map(lambda position, serialized: (position, serialized, False)).concatenate(end)

        def note(given: Any, element: Any) -> tuple[Any, Any]:
            position, serialized, is_end = element
            missing = tf.where(is_end & (expected >= 0), expected - given, 0)
            return given + 1, (missing, position, serialized, is_end)

        noted = marked.scan(tf.zeros([], tf.int64), note).map(self._add_missing)
        return noted.filter(_is_record).map(_without_mark)

    def map(
        self,
        dataset: tf.data.Dataset,
        function: Callable[[Any], Any],
        is_fresh: Callable[[Any], Any],
        parallel_calls: int,
    ) -> tf.data.Dataset:
        """Maps `function` over the dataset, leaving out and counting the elements that it raises on.

        Order is kept. Slower than `dataset.map` by some tens of microseconds an element, because each one
        becomes a dataset of its own: the only way in tf.data to learn that, and which, element failed.

        Args:
            dataset: the input.
            function: from element to element.
            is_fresh: whether an element counts, bool []; its repeats are left out without counting.
            parallel_calls: elements worked on at the same time.
        """

        def try_one(element: Any) -> tf.data.Dataset:
            good = tf.data.Dataset.from_tensors(element).map(lambda x: (True, False, function(x)))
            nothing = tf.nest.map_structure(
                lambda spec: tf.zeros([size or 0 for size in spec.shape], spec.dtype), good.element_spec[2]
            )
            bad = tf.data.Dataset.from_tensors((False, is_fresh(element), nothing))
            return good.ignore_errors(log_warning=True).concatenate(bad).take(1)

        tried = dataset.interleave(
            try_one, cycle_length=parallel_calls, num_parallel_calls=parallel_calls, deterministic=True
        )
        counted = tried.map(self._add_failed)
        return counted.filter(_is_valid).map(_value)

    def _add_missing(self, missing: Any, *rest: Any) -> Any:
        with tf.control_dependencies([self._count.assign_add(missing)]):
            return tf.nest.map_structure(tf.identity, rest)

    def _add_failed(self, valid: Any, counts: Any, value: Any) -> Any:
        failed = tf.cast(~valid & counts, tf.int64)
        checks = [self._count.assign_add(failed)]
        if self._give_up_after is not None:
            # Not the count itself, which runs ahead by the records that are missing in shards.
            tried = self._tried.assign_add(failed)
            any_good = self._any_good.assign(self._any_good | valid)
            going_on = any_good | (tried < self._give_up_after)
            checks.append(tf.debugging.Assert(going_on, [NO_USABLE_RECORD, tried]))
        with tf.control_dependencies(checks):
            return tf.identity(valid), value


# Named, because autograph cannot tell two lambdas on one line apart.
def _is_record(position: Any, serialized: Any, is_end: Any) -> Any:
    return ~is_end


def _without_mark(position: Any, serialized: Any, is_end: Any) -> Any:
    return position, serialized


def _is_valid(valid: Any, value: Any) -> Any:
    return valid


def _value(valid: Any, value: Any) -> Any:
    return value
