"""The way of a batch from the host to the device, inside a compiled loop, and its times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from trainer.time_stamp import time_stamp

HOST = "/device:CPU:0"


class Transfer(NamedTuple):
    """When a batch was there, in wall-clock seconds (float64 [] of `tf.timestamp`).

    Attributes:
        arrived: on the host.
        started: on the device; the step can begin.
        probe: float32 [], a value read back from the device. It must be used, or the time is not true.
    """

    arrived: Any
    started: Any
    probe: Any

    @classmethod
    def at(cls, seconds: Any) -> Transfer:
        """Returns that of a batch which was there at one time, without a copy."""
        return cls(seconds, seconds, tf.constant(0.0))

    def after_dependencies(self) -> Transfer:
        """Returns the same values, to be had only after the control dependencies in force."""
        return Transfer(*(tf.identity(value) for value in self))


def transfer_to(device: str, batch: Mapping[str, Any], arrived: Any) -> tuple[dict[str, Any], Transfer]:
    """Copies image and label to the device, unless it is the host.

    Args:
        device: TensorFlow's name of the device.
        batch: the features of the batch.
        arrived: when it arrived on the host, float64 [].

    Returns:
        The batch with image and label on the device, and the times.
    """
    if device == HOST:
        return dict(batch), Transfer.at(arrived)
    with tf.device(device):
        image, label = tf.identity(batch["image"]), tf.identity(batch["label"])
        corner = tf.reduce_sum(tf.cast(image[:1, :1, :1, :1], tf.float32))
    # Read on the host and reported, because what nobody reads is optimised away.
    probe = tf.math.abs(corner)
    with tf.control_dependencies([probe]):
        started = time_stamp()
    return {**batch, "image": image, "label": label}, Transfer(arrived, started, probe)
