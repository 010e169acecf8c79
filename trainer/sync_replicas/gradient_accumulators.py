"""Averages the gradients of several batches, and drops those that were computed for an earlier step."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from echoing.errors import OptionError


class Accumulated(NamedTuple):
    """What came of a push.

    Attributes:
        accepted: whether the gradients count; otherwise they were stale.
        waiting: batches whose gradients wait to be taken.
    """

    accepted: bool
    waiting: int


class GradientAccumulators:
    """One `ResourceConditionalAccumulator` for each variable, filled and emptied together.

    The accumulators hold the number of the step that they gather for, and drop what was computed for an
    earlier one. They keep a running sum, so that memory is one copy of the gradients however many come.

    Not for several threads at once: hold a lock around `push`, and around the taking. TensorFlow's optimizer
    does not: there, one variable may be moved by other batches than the next one. Here the gradients of a
    batch count for all variables or for none.

    Args:
        variables: the variables that the gradients are for.
        step: the global step to begin with.
    """

    def __init__(self, variables: Sequence[Any], step: int) -> None:
        self._variables = list(variables)
        self._handles = []
        # On the host: TensorFlow 2.21 has no kernel for another device.
        with tf.device("CPU:0"):
            for variable in self._variables:
                # An eager kernel is made once for equal arguments: without a name all would be the same one.
                handle = tf.raw_ops.ResourceConditionalAccumulator(
                    dtype=variable.dtype,
                    shape=variable.shape,
                    shared_name=f"gradients-{uuid.uuid4().hex}",
                    reduction_type="MEAN",
                )
                tf.raw_ops.ResourceAccumulatorSetGlobalStep(
                    handle=handle, new_global_step=tf.constant(step, tf.int64)
                )
                self._handles.append(handle)
        self._push = tf.function(
            self._push_all,
            input_signature=[
                tf.TensorSpec([], tf.int64),
                [tf.TensorSpec(variable.shape, variable.dtype) for variable in self._variables],
            ],
            autograph=False,
        )

    def push(self, gradients: Sequence[Any], local_step: int) -> Accumulated:
        """Adds the gradients of one batch, unless they are stale.

        Args:
            gradients: one a variable, of its shape and dtype. `tf.IndexedSlices` are made dense.
            local_step: the global step for which they were computed.

        Raises:
            OptionError: gradients are missing, or do not fit the variables.
        """
        before, after = self._push(tf.constant(local_step, tf.int64), self._checked(gradients))
        return Accumulated(accepted=int(after) > int(before), waiting=int(after))

    def take(self, count: int) -> list[Any]:
        """Returns the averages, empties the accumulators and moves them on to the next step.

        Waits until there are `count` batches; call it when there are. Works inside a `tf.function`.
        """
        return [
            tf.raw_ops.ResourceAccumulatorTakeGradient(
                handle=handle, num_required=count, dtype=variable.dtype
            )
            for handle, variable in zip(self._handles, self._variables, strict=True)
        ]

    def release(self) -> None:
        """Gives the memory back; the object is of no further use."""
        for handle in self._handles:
            tf.raw_ops.DestroyResourceOp(resource=handle, ignore_lookup_error=True)

    def _push_all(self, local_step: Any, gradients: Sequence[Any]) -> tuple[Any, Any]:
        before = tf.raw_ops.ResourceAccumulatorNumAccumulated(handle=self._handles[0])
        for handle, gradient in zip(self._handles, gradients, strict=True):
            tf.raw_ops.ResourceAccumulatorApplyGradient(
                handle=handle, local_step=local_step, gradient=gradient
            )
        return before, tf.raw_ops.ResourceAccumulatorNumAccumulated(handle=self._handles[0])

    def _checked(self, gradients: Sequence[Any]) -> list[Any]:
        if len(gradients) != len(self._variables):
            raise OptionError(
                "The number of gradients", len(gradients), f"{len(self._variables)}: one for each variable"
            )
        tensors = []
        for variable, gradient in zip(self._variables, gradients, strict=True):
            if gradient is None:
                raise OptionError(
                    f"The gradient of {variable.name}",
                    None,
                    "a tensor",
                    "Train only variables that the loss depends on, or ask the tape for "
                    "unconnected_gradients=tf.UnconnectedGradients.ZERO.",
                )
            tensor = tf.convert_to_tensor(gradient)
            if tensor.dtype != variable.dtype or tensor.shape != variable.shape:
                raise OptionError(
                    f"The gradient of {variable.name}",
                    f"{tensor.dtype.name} {tensor.shape}",
                    f"{variable.dtype.name} {variable.shape}, as the variable is",
                )
            tensors.append(tensor)
        return tensors
