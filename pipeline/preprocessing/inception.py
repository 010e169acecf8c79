"""Inception's preprocessing as in the Cloud TPU reference: random crop, resize, flip, colour; middle crop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from pipeline.preprocessing import image_draws
from pipeline.preprocessing.color import distort_color, distort_color_fast
from pipeline.preprocessing.crop import central_window, crop_window, cut, flip
from pipeline.preprocessing.resize import resize, resize_bilinear


@dataclass(frozen=True)
class Inception:
    """Distorts images for training and prepares them for evaluation; options as in `PipelineConfig`.

    The images are scaled to 0 to 1 after the resize, on fewer pixels than in the reference, which scales
    first; both orders agree to float rounding.

    Attributes:
        image_size: height and width of the results, pixels.
        cb_distortion_range: largest shift of blue chroma.
        cr_distortion_range: largest shift of red chroma.
        use_fast_color_distort: shift brightness and chroma; False changes brightness and saturation, and
            without `fast_mode` hue and contrast too.
        fast_mode: resize bilinearly and leave hue and contrast alone; False draws the resize method and the
            ordering of the full colour distortion.
        half_pixel_centers: resize on TensorFlow 2's grid.
    """

    image_size: int = 299
    cb_distortion_range: float = 0.1
    cr_distortion_range: float = 0.1
    use_fast_color_distort: bool = True
    fast_mode: bool = True
    half_pixel_centers: bool = False

    def for_training(self, image: Any, boxes: Any | None, words: Any) -> Any:
        """Returns a distorted image, float32 [size, size, 3] in [-1, 1].

        Args:
            image: uint8 [height, width, 3].
            boxes: float32 [boxes, 4], or None; see `crop.crop_window`.
            words: uint64 [`image_draws.WORDS`], the random words of this use of the example.
        """
        window = crop_window(tf.shape(image)[:2], boxes, image_draws.crop_seed(words))
        return self.distort(cut(image, window), words)

    def distort(self, part: Any, words: Any) -> Any:
        """Returns all that follows the crop in training, float32 [size, size, 3] in [-1, 1].

        Args:
            part: uint8 [crop height, crop width, 3].
            words: as in `for_training`.
        """
        resized = self._resize(part, words) * (1.0 / 255.0)
        flipped = flip(resized, image_draws.is_flipped(words))
        return self._to_model_range(self._distort_color(flipped, words))

    def for_evaluation(self, image: Any) -> Any:
        """Returns the central 87.5 % of each side, resized: float32 [size, size, 3] in [-1, 1].

        Args:
            image: uint8 [height, width, 3]; at least one pixel of it is kept, however small it is.
        """
        part = cut(image, central_window(tf.shape(image)[:2]))
        size = self.image_size
        resized = resize_bilinear(part, size, size, self.half_pixel_centers) * (1.0 / 255.0)
        return self._to_model_range(resized)

    def _resize(self, part: Any, words: Any) -> Any:
        size = self.image_size
        if self.fast_mode:
            return resize_bilinear(part, size, size, self.half_pixel_centers)
        return resize(part, size, size, image_draws.resize_method(words), self.half_pixel_centers)

    def _distort_color(self, image: Any, words: Any) -> Any:
        if self.use_fast_color_distort:
            cb, cr = image_draws.chroma(words, self.cb_distortion_range, self.cr_distortion_range)
            return distort_color_fast(image, image_draws.brightness(words), cb, cr)
        changes, ordering = image_draws.color_changes(words, self.fast_mode)
        return distort_color(image, changes, ordering)

    def _to_model_range(self, image: Any) -> Any:
        result = (image - 0.5) * 2.0
        result.set_shape([self.image_size, self.image_size, 3])
        return result
