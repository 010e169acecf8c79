"""The reference's other preprocessing, as for VGG: sides of random length, random crop, flip, means off.

Source of the constants: the Cloud TPU Inception v3 reference trainer, `vgg_preprocessing.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from pipeline.preprocessing import image_draws
from pipeline.preprocessing.crop import flip
from pipeline.preprocessing.resize import resize_bilinear_part

MEANS = (123.68, 116.78, 103.94)
"""Of red, green and blue, on pixels of 0 to 255."""

SCALE = 1.0 / 128.0
SIDE_RANGE = (300, 600)
"""Shorter side after the resize in training, pixels, both ends drawn; evaluation takes the first."""

REFERENCE_IMAGE_SIZE = 299
"""Image size that the sides above belong to; for others they are scaled along."""


@dataclass(frozen=True)
class Vgg:
    """Prepares images for training and evaluation.

    The image is resized so that its shorter side has the length drawn (in evaluation the shortest one), and
    a square is cut at a random place (in evaluation the middle), so that no image is too small for the crop.
    Of long images only the square is computed: whole, 1 x 2,000 pixels would become 600 x 1,200,000.

    Attributes:
        image_size: height and width of the results, pixels.
        reference_scaling: reproduce the reference's fault: it takes the means from pixels of 0 to 1, so that
            all results are nearly constant (red -0.966 to -0.958).
        half_pixel_centers: resize on TensorFlow 2's grid.
    """

    image_size: int = 299
    reference_scaling: bool = False
    half_pixel_centers: bool = False

    def for_training(self, image: Any, boxes: Any | None, words: Any) -> Any:
        """Returns a random square, float32 [size, size, 3], about -0.97 to 1.18.

        Args:
            image: uint8 [height, width, 3].
            boxes: not used: this preprocessing knows none.
            words: uint64 [`image_draws.WORDS`], the random words of this use of the example.
        """
        shortest, longest = (self._scaled(side) for side in SIDE_RANGE)
        side = shortest + image_draws.choice(words, image_draws.SIDE_WORD, longest - shortest + 1)
        resized = _resized_size(tf.shape(image)[:2], side)
        places = resized - self.image_size + 1
        top = image_draws.choice(words, image_draws.TOP_WORD, places[0])
        left = image_draws.choice(words, image_draws.LEFT_WORD, places[1])
        square = self._square(image, resized, tf.stack([top, left]))
        return self._to_model_range(flip(square, image_draws.is_flipped(words)))

    def for_evaluation(self, image: Any) -> Any:
        """Returns the square in the middle, float32 [size, size, 3], about -0.97 to 1.18.

        Args:
            image: uint8 [height, width, 3].
        """
        resized = _resized_size(tf.shape(image)[:2], self._scaled(SIDE_RANGE[0]))
        return self._to_model_range(self._square(image, resized, (resized - self.image_size) // 2))

    def _scaled(self, side: int) -> int:
        return round(side * self.image_size / REFERENCE_IMAGE_SIZE)

    def _square(self, image: Any, resized: Any, begin: Any) -> Any:
        size = self.image_size
        return resize_bilinear_part(image, resized, begin, size, size, self.half_pixel_centers)

    def _to_model_range(self, image: Any) -> Any:
        if self.reference_scaling:
            image = image * (1.0 / 255.0)
        return (image - tf.constant(MEANS)) * SCALE


def _resized_size(size: Any, side: Any) -> Any:
    """Returns int32 [2], the size of an image of `size`, int32 [2], resized to a shorter side of `side`."""
    sides = tf.cast(size, tf.float64)
    scale = tf.cast(side, tf.float64) / tf.reduce_min(sides)
    return tf.cast(tf.math.rint(sides * scale), tf.int32)
