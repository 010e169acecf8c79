"""Inception's preprocessing, as in the Cloud TPU reference: random crop, resize, flip, colour; central crop.

Every random draw is stateless and keyed, so that an image's augmentation can be reproduced.
Source of all ranges: the Cloud TPU Inception v3 reference trainer, `inception_preprocessing.py`.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

CROP_ASPECT_RATIO_RANGE = (3.0 / 4.0, 4.0 / 3.0)
CROP_AREA_RANGE = (0.05, 1.0)
CROP_MIN_OBJECT_COVERED = 0.1
CROP_MAX_ATTEMPTS = 100
MAX_BRIGHTNESS_DELTA = 32.0 / 255.0
SATURATION_RANGE = (0.5, 1.5)
EVAL_CENTRAL_FRACTION = 0.875

# The JPEG (JFIF) conversion from YCbCr to RGB.
RED_PER_CR = 1.402
GREEN_PER_CB = -0.344136
GREEN_PER_CR = -0.714136
BLUE_PER_CB = 1.772


def random_crop(image: Any, boxes: Any | None, seed: Any) -> Any:
    """Returns a random crop: 5 to 100 % of the area, aspect ratio 3/4 to 4/3, a tenth of a box or more.

    Without boxes the whole image is the box, so that a crop has at least a tenth of the area.

    Args:
        image: uint8 or float [height, width, 3].
        boxes: float32 [boxes, 4] that the crop should cover a part of, or None for the whole image.
        seed: int [2], key of the draw.

    Returns:
        [crop height, crop width, 3], the type of `image`; the whole image where no crop fits.
    """
    if boxes is None:
        boxes = tf.constant([[0.0, 0.0, 1.0, 1.0]])
    begin, size, _ = tf.image.stateless_sample_distorted_bounding_box(
        tf.shape(image),
        bounding_boxes=boxes[tf.newaxis],
        seed=seed,
        min_object_covered=CROP_MIN_OBJECT_COVERED,
        aspect_ratio_range=CROP_ASPECT_RATIO_RANGE,
        area_range=CROP_AREA_RANGE,
        max_attempts=CROP_MAX_ATTEMPTS,
        use_image_if_no_bounding_boxes=True,
    )
    crop = tf.slice(image, begin, size)
    crop.set_shape([None, None, 3])
    return crop


def resize(image: Any, height: int, width: int) -> Any:
    """Resizes bilinearly as the reference does: corners not aligned, no half-pixel centres.

    Args:
        image: uint8 [any height, any width, 3].
        height: of the result, pixels.
        width: of the result, pixels.

    Returns:
        float32 [height, width, 3], values 0 to 1. The scaling comes after the resize, on fewer pixels than
        in the reference; both orders agree to float rounding.
    """
    resized = tf.raw_ops.ResizeBilinear(
        images=image[tf.newaxis], size=[height, width], align_corners=False, half_pixel_centers=False
    )
    return resized[0] * (1.0 / 255.0)


def flip(image: Any, uniform: Any) -> Any:
    """Mirrors the image left to right where `uniform`, float32 [] in [0, 1), is below one half."""
    return tf.cond(uniform < 0.5, lambda: tf.reverse(image, axis=[1]), lambda: image)


def distort_color_fast(image: Any, brightness: Any, cb: Any, cr: Any) -> Any:
    """Shifts brightness and chroma.

    Args:
        image: float32 [height, width, 3], 0 to 1.
        brightness: float32 [], added to all channels.
        cb: float32 [], shift of blue chroma.
        cr: float32 [], shift of red chroma.

    Returns:
        The image, clipped to [0, 1].
    """
    red = RED_PER_CR * cr + brightness
    green = GREEN_PER_CB * cb + GREEN_PER_CR * cr + brightness
    blue = BLUE_PER_CB * cb + brightness
    return tf.clip_by_value(image + tf.stack([red, green, blue]), 0.0, 1.0)


def distort_color(image: Any, brightness: Any, saturation: Any) -> Any:
    """Changes brightness, then saturation: the reference without its fast colour distortion.

    The reference knows further orderings with hue and contrast, which its trainer never reaches.

    Args:
        image: float32 [height, width, 3], 0 to 1.
        brightness: float32 [], added.
        saturation: float32 [], factor.

    Returns:
        The image, clipped to [0, 1].
    """
    return tf.clip_by_value(
        tf.image.adjust_saturation(tf.image.adjust_brightness(image, brightness), saturation), 0.0, 1.0
    )


def preprocess_for_train(
    image: Any,
    boxes: Any | None,
    size: int,
    seed: Any,
    cb_distortion_range: float = 0.1,
    cr_distortion_range: float = 0.1,
    use_fast_color_distort: bool = True,
) -> Any:
    """Returns a distorted image for training.

    Args:
        image: uint8 [height, width, 3].
        boxes: float32 [boxes, 4], or None.
        size: height and width of the result, pixels.
        seed: int [2], key of every draw of this image.
        cb_distortion_range: largest shift of blue chroma.
        cr_distortion_range: largest shift of red chroma.
        use_fast_color_distort: shift brightness and chroma; False changes brightness and saturation.

    Returns:
        float32 [size, size, 3], -1 to 1.
    """
    crop_seed, value_seed = tf.unstack(tf.random.split(seed, 2))
    # One draw for all values: a random op costs more than the numbers that it gives.
    draws = tf.random.stateless_uniform([4], value_seed)
    result = flip(resize(random_crop(image, boxes, crop_seed), size, size), draws[0])
    brightness = (2.0 * draws[1] - 1.0) * MAX_BRIGHTNESS_DELTA
    if use_fast_color_distort:
        cb = (2.0 * draws[2] - 1.0) * cb_distortion_range
        cr = (2.0 * draws[3] - 1.0) * cr_distortion_range
        result = distort_color_fast(result, brightness, cb, cr)
    else:
        low, high = SATURATION_RANGE
        result = distort_color(result, brightness, low + draws[2] * (high - low))
    return _to_model_range(result, size)


def preprocess_for_eval(image: Any, size: int) -> Any:
    """Returns the central 87.5 % of each side, resized: float32 [size, size, 3], -1 to 1.

    Args:
        image: uint8 [height, width, 3]; at least one pixel of it is kept, however small it is.
        size: height and width of the result, pixels.
    """
    central = tf.image.central_crop(image, EVAL_CENTRAL_FRACTION)
    return _to_model_range(resize(central, size, size), size)


def _to_model_range(image: Any, size: int) -> Any:
    result = (image - 0.5) * 2.0
    result.set_shape([size, size, 3])
    return result
