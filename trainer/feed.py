"""How batches reach what trains: the words that the compiled loop uses, and the case of one device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import tensorflow as tf

from trainer.transfer import Transfer, transfer_to

COLOR_SHIFT = "color_shift"
"""float32 [batch, 3]: what the device adds to the colours of uint8 images. It is no tag."""


class Room(Protocol):
    """Room for the images of one batch in the memory of what trains."""

    def assign(self, images: Any) -> Any:
        """Takes images in, as `Feed.load` gave them, in place of those before. Returns an operation."""

    def use(self) -> Any:
        """Returns the images held, with the shape known beforehand."""

    def clear(self) -> Any:
        """Gives the images up, and their memory where that is possible. Returns an operation."""


class Feed(Protocol):
    """Brings batches to what trains, and says when it has finished."""

    @property
    def parts(self) -> int:
        """Into how many equal parts a batch of this host is split."""

    def load(self, batch: Mapping[str, Any], arrived: Any) -> tuple[dict[str, Any], Transfer]:
        """Returns the batch with its images where they are trained on, and the times of the way there.

        Args:
            batch: the features of the batch, on the host.
            arrived: when it arrived there, float64 [].
        """

    def room(self, shape: Any, dtype: Any, batch_axis: int) -> Room:
        """Returns room for images of a shape, whose size along `batch_axis` may be unknown or change."""

    def place(self) -> Any:
        """Returns the context in which the step function is called."""

    def done(self, loss: Any) -> Any:
        """Returns the loss, float32 [any], to be had once everything before it is done."""


class DeviceRoom:
    """Room on one device: a variable, so that images outlive the compiled loop that took them.

    Assigning a tensor to a variable and reading it costs no copy: both share one buffer.

    Args:
        shape: of the images.
        dtype: theirs.
        batch_axis: axis whose size may change.
        device: TensorFlow's name of the device.
    """

    def __init__(self, shape: Any, dtype: Any, batch_axis: int, device: str) -> None:
        self._shape, self._axis, self.device = shape, batch_axis, device
        with tf.device(device):
            empty = self._empty(dtype)
            self._images = tf.Variable(empty, trainable=False, shape=any_size(shape, batch_axis))

    def assign(self, images: Any) -> Any:
        """See `Room.assign`."""
        return self._images.assign(images)

    def read_value(self) -> Any:
        """Returns the images held."""
        # There, and not where the caller is: a read ends in an identity, whose device gets a copy.
        with tf.device(self.device):
            return self._images.read_value()

    def use(self) -> Any:
        """See `Room.use`."""
        images = self.read_value()
        images.set_shape(self._shape)
        return images

    def clear(self) -> Any:
        """See `Room.clear`."""
        with tf.device(self.device):
            return self._images.assign(self._empty(self._images.dtype))

    def _empty(self, dtype: Any) -> Any:
        if not self._shape.rank:
            return tf.zeros([], dtype)
        sizes = enumerate(self._shape)
        return tf.zeros([0 if axis == self._axis else size or 0 for axis, size in sizes], dtype)


class DeviceFeed:
    """Brings whole batches to one device.

    Args:
        device: TensorFlow's name of the device.
    """

    parts = 1

    def __init__(self, device: str) -> None:
        self._device = device

    def load(self, batch: Mapping[str, Any], arrived: Any) -> tuple[dict[str, Any], Transfer]:
        """See `Feed.load`."""
        return transfer_to(self._device, batch, arrived)

    def room(self, shape: Any, dtype: Any, batch_axis: int) -> DeviceRoom:
        """See `Feed.room`."""
        return DeviceRoom(shape, dtype, batch_axis, self._device)

    def place(self) -> Any:
        """See `Feed.place`."""
        return tf.device(self._device)

    def done(self, loss: Any) -> Any:
        """See `Feed.done`."""
        # An accelerator's kernels are only queued when their ops return. A value computed on it after all
        # updates were queued, and read on the host, is there when the device has done them. The pair is a
        # real operation; a mere copy would be optimised away.
        with tf.device(self._device):
            return tf.stack([loss, loss])


def as_feed(device: str | Feed) -> Feed:
    """Returns the feed of a device that is given by TensorFlow's name, and a feed as it is."""
    return DeviceFeed(device) if isinstance(device, str) else device


def any_size(shape: Any, axis: int) -> Any:
    """Returns a shape with the size along one axis left open; a scalar's as it is."""
    if not shape.rank:
        return shape
    return tf.TensorShape([None if place == axis else size for place, size in enumerate(shape)])


def batch_axis(layout: str) -> int:
    """Returns the axis of the examples in images of a layout: `nhwc` or `hwcn`."""
    return layout.index("n")


def images_shape(image_size: int, layout: str) -> Any:
    """Returns the shape of a batch of images, its number of examples left open.

    Args:
        image_size: height and width, pixels.
        layout: `nhwc` or `hwcn`.
    """
    sizes = {"n": None, "h": image_size, "w": image_size, "c": 3}
    return tf.TensorShape([sizes[letter] for letter in layout])
