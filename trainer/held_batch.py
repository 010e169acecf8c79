"""A batch that stays in the device's memory for several steps of a compiled loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from trainer.device_echo import DEVICE_USES
from trainer.transfer import HOST


class HeldBatch:
    """Room for one batch, and the count of its uses.

    Variables, so that a batch outlives the compiled loop that took it. Assigning a tensor to a variable and
    reading it costs no copy: both share one buffer. The image lies on the device; labels and tags, some
    bytes an example, on the host, where TensorFlow keeps int32 and strings in any case.

    Args:
        element_spec: specification of the dataset's elements, with `device_uses`.
        device: TensorFlow's name of the device.
    """

    def __init__(self, element_spec: Mapping[str, Any], device: str) -> None:
        self._shapes = {name: spec.shape for name, spec in element_spec.items() if name != DEVICE_USES}
        self._features = {}
        for name, shape in self._shapes.items():
            with tf.device(device if name == "image" else HOST):
                empty = _empty(shape, element_spec[name].dtype)
                self._features[name] = tf.Variable(empty, trainable=False, shape=_any_batch_size(shape))
        with tf.device(HOST):
            self._uses = tf.Variable(0, trainable=False, dtype=tf.int64)
            self._used = tf.Variable(0, trainable=False, dtype=tf.int64)

    def is_used_up(self) -> Any:
        """Returns whether no use is left, or no batch is held: bool []."""
        return self._used >= self._uses

    def hold(self, batch: Mapping[str, Any]) -> Any:
        """Takes a batch in, in place of the one before. Returns an operation."""
        assigned = [variable.assign(batch[name]) for name, variable in self._features.items()]
        uses = self._uses.assign(tf.cast(batch[DEVICE_USES], tf.int64))
        return tf.group(*assigned, uses, self._used.assign(0))

    def use(self) -> tuple[dict[str, Any], Any]:
        """Counts one use; returns the features of the batch and how often it was used before, int64 []."""
        used = self._used.assign_add(1)
        batch = {}
        for name, variable in self._features.items():
            # There, and not where the caller is: a read ends in an identity, whose device gets a copy.
            with tf.device(variable.device):
                batch[name] = variable.read_value()
            batch[name].set_shape(self._shapes[name])
        return batch, used - 1

    def release(self) -> Any:
        """Gives the batch up, and the device's memory with it. Returns an operation."""
        image = self._features["image"]
        with tf.device(image.device):
            empty = image.assign(_empty(self._shapes["image"], image.dtype))
        return tf.group(empty, self._uses.assign(0), self._used.assign(0))


def _any_batch_size(shape: Any) -> Any:
    return tf.TensorShape([None, *shape[1:]]) if shape.rank else shape


def _empty(shape: Any, dtype: Any) -> Any:
    if not shape.rank:
        return tf.zeros([], dtype)
    return tf.zeros([0, *(size or 0 for size in shape[1:])], dtype)
