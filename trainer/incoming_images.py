"""What becomes of images between the feed and the network, on the device."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from trainer.device_color import scale_and_shift


def prepare(images: Any, color_shift: Any = None, layout: str = "nhwc") -> Any:
    """Returns images as the network takes them, `[batch, height, width, 3]`.

    Args:
        images: of the layout.
        color_shift: see `trainer.feed.COLOR_SHIFT`; None without.
        layout: `nhwc`, or `hwcn`, which the host has transposed to, because a TPU's infeed takes it faster.
    """
    if layout == "hwcn":
        images = tf.transpose(images, [3, 0, 1, 2])
    if color_shift is None:
        return images
    return scale_and_shift(images, color_shift)
