"""Which part of an image is used: a random window in training, the central one in evaluation.

Windows are int32 [4]: top, left, height, width in pixels, as TensorFlow's `decode_and_crop_jpeg` takes them.
Source of all ranges: the Cloud TPU Inception v3 reference trainer.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from pipeline.branching import either

ASPECT_RATIO_RANGE = (3.0 / 4.0, 4.0 / 3.0)
AREA_RANGE = (0.05, 1.0)
MIN_OBJECT_COVERED = 0.1
MAX_ATTEMPTS = 100
EVAL_CENTRAL_FRACTION = 0.875


def crop_window(size: Any, boxes: Any | None, seed: Any) -> Any:
    """Returns a random window: 5 to 100 % of the area, aspect ratio 3/4 to 4/3, a tenth of a box or more.

    Without boxes the whole image is the box, so that a crop has at least a tenth of the area.

    Args:
        size: int32 [2], height and width of the image, pixels.
        boxes: float32 [boxes, 4] that the crop should cover a part of; None, or none of them, for the whole
            image.
        seed: int64 [2], key of the draw.

    Returns:
        int32 [4]: top, left, height, width; the whole image where no crop fits in 100 attempts.
    """
    if boxes is None:
        boxes = tf.constant([[0.0, 0.0, 1.0, 1.0]])
    begin, extent, _ = tf.image.stateless_sample_distorted_bounding_box(
        tf.concat([size, [3]], axis=0),
        bounding_boxes=boxes[tf.newaxis],
        seed=seed,
        min_object_covered=MIN_OBJECT_COVERED,
        aspect_ratio_range=ASPECT_RATIO_RANGE,
        area_range=AREA_RANGE,
        max_attempts=MAX_ATTEMPTS,
        use_image_if_no_bounding_boxes=True,
    )
    return tf.concat([begin[:2], extent[:2]], axis=0)


def central_window(size: Any, fraction: float = EVAL_CENTRAL_FRACTION) -> Any:
    """Returns the window that keeps the middle of both sides, to the pixel as `tf.image.central_crop` does.

    Args:
        size: int32 [..., 2], heights and widths, pixels.
        fraction: of each side that stays, above 0 and up to 1.

    Returns:
        int32 [..., 4]: top, left, height, width. No side becomes 0: what goes at each end is rounded down.
    """
    sides = tf.cast(size, tf.float64)
    begin = tf.cast((sides - sides * fraction) / 2.0, tf.int32)
    return tf.concat([begin, tf.cast(size, tf.int32) - 2 * begin], axis=-1)


def cut(image: Any, window: Any) -> Any:
    """Returns the window of the image.

    Args:
        image: [height, width, 3].
        window: int32 [4]: top, left, height, width, inside the image.

    Returns:
        [window height, window width, 3], the type of `image`.
    """
    top, left, height, width = tf.unstack(window)
    part = tf.slice(image, tf.stack([top, left, 0]), tf.stack([height, width, 3]))
    part.set_shape([None, None, 3])
    return part


def flip(image: Any, is_flipped: Any) -> Any:
    """Returns the image [height, width, 3], mirrored left to right where `is_flipped`, bool [], is true."""
    flipped = either(is_flipped, image, lambda part: tf.reverse(part, axis=[1]), tf.identity)
    flipped.set_shape(image.shape)
    return flipped
