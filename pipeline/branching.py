"""A choice between two computations inside a graph that costs next to nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf


def either(condition: Any, data: Any, if_true: Callable[[Any], Any], if_false: Callable[[Any], Any]) -> Any:
    """Returns `if_true(data)` or `if_false(data)`; the other one is not computed.

    `tf.cond` would be a call of a function: 20 microseconds for an image instead of 7 (measured).

    Args:
        condition: bool [].
        data: what everything in the two functions is computed from.
        if_true: of `data`; without side effects, `tf.debugging.Assert` among them: the function around would
            wait for those of the branch that is never run.
        if_false: the same, with a result of the same type.
    """
    if tf.executing_eagerly():
        return if_true(data) if condition else if_false(data)
    # What follows from the output that is not taken is never run.
    data_if_false, data_if_true = tf.raw_ops.Switch(data=data, pred=condition)
    return tf.raw_ops.Merge(inputs=[if_false(data_if_false), if_true(data_if_true)])[0]


def rare_operation(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Returns the function of a string [] as one operation, for a branch that is hardly ever taken.

    Its many operations would be passed over one by one in every element, and be prepared again in every place
    where it stands: 70 microseconds an image, and 4 seconds before the first of blocks of 16 (measured).

    Args:
        function: without side effects.
    """
    operation: Callable[[Any], Any] = tf.function(
        function,
        input_signature=[tf.TensorSpec([], tf.string)],
        autograph=False,
        experimental_attributes={"_noinline": True},
    )
    return operation
