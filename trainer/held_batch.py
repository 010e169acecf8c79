"""A batch that stays in the device's memory for several steps of a compiled loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from trainer.device_echo import DEVICE_USES
from trainer.feed import DeviceRoom, Feed, as_feed, batch_axis
from trainer.transfer import HOST


class HeldBatch:
    """Room for one batch, and the count of its uses.

    Variables, so that a batch outlives the compiled loop that took it. The image lies where it is trained on
    (see `Feed.room`); labels and tags, some bytes an example, on the host, where TensorFlow keeps int32 and
    strings in any case.

    Args:
        element_spec: specification of the dataset's elements, with `device_uses`.
        device: TensorFlow's name of the device, or a feed.
        layout: of the images, `nhwc` or `hwcn`.

    Attributes:
        skipped: int64 [], uses of the next batch that count as done, because the run that this one goes on
            with did them. Zero again once that batch is there.
    """

    def __init__(self, element_spec: Mapping[str, Any], device: str | Feed, layout: str = "nhwc") -> None:
        self._features: dict[str, Any] = {}
        for name, spec in element_spec.items():
            if name == "image":
                room = as_feed(device).room(spec.shape, spec.dtype, batch_axis(layout))
                self._features[name] = room
            elif name != DEVICE_USES:
                self._features[name] = DeviceRoom(spec.shape, spec.dtype, 0, HOST)
        with tf.device(HOST):
            self._uses = tf.Variable(0, trainable=False, dtype=tf.int64)
            self._used = tf.Variable(0, trainable=False, dtype=tf.int64)
            self.skipped = tf.Variable(0, trainable=False, dtype=tf.int64)

    def is_used_up(self) -> Any:
        """Returns whether no use is left, or no batch is held: bool []."""
        return self._used >= self._uses

    def uses_done(self) -> int:
        """Returns how often the batch held was used, 0 if none is held or no use is left."""
        return 0 if bool(self.is_used_up()) else int(self._used)

    def hold(self, batch: Mapping[str, Any]) -> Any:
        """Takes a batch in, in place of the one before. Returns an operation."""
        assigned = [room.assign(batch[name]) for name, room in self._features.items()]
        uses = self._uses.assign(tf.cast(batch[DEVICE_USES], tf.int64))
        used = self._used.assign(self.skipped)
        with tf.control_dependencies([used]):
            skipped = self.skipped.assign(0)
        return tf.group(*assigned, uses, used, skipped)

    def use(self) -> tuple[dict[str, Any], Any]:
        """Counts one use; returns the features of the batch and how often it was used before, int64 []."""
        used = self._used.assign_add(1)
        return {name: room.use() for name, room in self._features.items()}, used - 1

    def release(self) -> Any:
        """Gives the batch up, and the device's memory with it. Returns an operation."""
        return tf.group(self._features["image"].clear(), self._uses.assign(0), self._used.assign(0))
