"""Random colours in training, as in the Cloud TPU Inception v3 reference: fast distortion and full one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

# The JPEG (JFIF) conversion from YCbCr to RGB.
RED_PER_CR = 1.402
GREEN_PER_CB = -0.344136
GREEN_PER_CR = -0.714136
BLUE_PER_CB = 1.772

ORDERINGS = (
    ("brightness", "saturation", "hue", "contrast"),
    ("saturation", "brightness", "contrast", "hue"),
    ("contrast", "hue", "brightness", "saturation"),
    ("hue", "saturation", "contrast", "brightness"),
)
"""The orders of the full distortion; the number that is drawn is the place in them."""

FAST_MODE_ORDERING = ("brightness", "saturation")
"""The one order in fast mode, the only one that the reference's trainer reaches."""


def color_shift(brightness: Any, cb: Any, cr: Any) -> Any:
    """Returns what the fast distortion adds to red, green and blue, float32 [..., 3], on pixels of 0 to 1.

    Args:
        brightness: float32 [...], added to all channels.
        cb: float32 [...], shift of blue chroma.
        cr: float32 [...], shift of red chroma.
    """
    red = RED_PER_CR * cr + brightness
    green = GREEN_PER_CB * cb + GREEN_PER_CR * cr + brightness
    blue = BLUE_PER_CB * cb + brightness
    return tf.stack([red, green, blue], axis=-1)


def distort_color_fast(image: Any, brightness: Any, cb: Any, cr: Any) -> Any:
    """Returns the image with brightness and chroma shifted, clipped to [0, 1].

    Args:
        image: float32 [height, width, 3], 0 to 1.
        brightness: float32 [], as the others in `color_shift`.
        cb: float32 [].
        cr: float32 [].
    """
    return tf.clip_by_value(image + color_shift(brightness, cb, cr), 0.0, 1.0)


def distort_color(image: Any, changes: dict[str, Any], ordering: Any | None = None) -> Any:
    """Returns the image with brightness, saturation, hue and contrast changed in one of four orders.

    Values between the steps are not clipped, as in the reference.

    Args:
        image: float32 [height, width, 3], 0 to 1.
        changes: float32 [] each: `brightness` is added, `saturation` is a factor, `hue` is added in turns of
            the colour circle, `contrast` is a factor around each channel's mean. The last two only with an
            ordering.
        ordering: int32 [], place in `ORDERINGS`; None for fast mode: brightness, then saturation.

    Returns:
        float32 [height, width, 3], clipped to [0, 1].
    """
    if ordering is None:
        distorted = _in_order(image, changes, FAST_MODE_ORDERING)
    else:
        distorted = tf.switch_case(
            tf.convert_to_tensor(ordering), [_branch(image, changes, order) for order in ORDERINGS]
        )
    return tf.clip_by_value(distorted, 0.0, 1.0)


def _branch(image: Any, changes: dict[str, Any], order: tuple[str, ...]) -> Callable[[], Any]:
    return lambda: _in_order(image, changes, order)


def _in_order(image: Any, changes: dict[str, Any], order: tuple[str, ...]) -> Any:
    steps = {
        "brightness": tf.image.adjust_brightness,
        "saturation": tf.image.adjust_saturation,
        "hue": tf.image.adjust_hue,
        "contrast": tf.image.adjust_contrast,
    }
    for name in order:
        image = steps[name](image, changes[name])
    return image
