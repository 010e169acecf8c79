"""The fast path's work on one image: where to crop, and everything after the crop, in few passes.

The same images as `inception`'s, to rounding: the same draws, the same crop, the same resize.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from pipeline.element import COLOR_SHIFT, EXAMPLE_ID, REPEAT_INDEX
from pipeline.preprocessing import color, crop, image_draws
from pipeline.preprocessing.draws import example_bits
from pipeline.preprocessing.resize import resize, resize_bilinear


@dataclass(frozen=True)
class FastPreprocessing:
    """What is done to the pixels.

    Attributes:
        image_size: height and width of the result, pixels.
        is_training: a random crop, mirrored and recoloured at random; False takes the middle of the image.
        seed: key of the draws.
        uint8: deliver uint8 for the device to scale; False delivers float32 in [-1, 1].
        cb_distortion_range: largest shift of blue chroma.
        cr_distortion_range: largest shift of red chroma.
        use_fast_color_distort: shift brightness and chroma; with uint8 the device does it. False changes
            brightness and saturation, on the host.
        fast_mode: resize bilinearly and leave hue and contrast alone; False draws the resize method and the
            order of the four colour distortions.
        half_pixel_centers: sample at the centres of pixels, as TensorFlow 2 does.
    """

    image_size: int = 299
    is_training: bool = True
    seed: int = 0
    uint8: bool = False
    cb_distortion_range: float = 0.1
    cr_distortion_range: float = 0.1
    use_fast_color_distort: bool = True
    fast_mode: bool = True
    half_pixel_centers: bool = False

    def words(self, element: dict[str, Any]) -> Any:
        """Returns the random words of an example, or of a block of them: uint64 [..., image_draws.WORDS]."""
        return example_bits(self.seed, element[EXAMPLE_ID], element[REPEAT_INDEX], image_draws.WORDS)

    def window(self, size: Any, boxes: Any | None, words: Any) -> Any:
        """Returns the part of the image that is used, int32 [4]: top, left, height, width.

        Args:
            size: int32 [2], height and width of the image.
            boxes: float32 [boxes, 4] to crop around, or None.
            words: of the example.
        """
        if not self.is_training:
            return crop.central_window(size)
        return crop.crop_window(size, boxes, image_draws.crop_seed(words))

    def finish(self, window: Any, words: Any) -> Any:
        """Returns the image as it is delivered, [image_size, image_size, 3].

        Args:
            window: uint8 [height, width, 3], the crop.
            words: of the example.
        """
        side = self.image_size
        if not self.is_training or self.fast_mode:
            image = resize_bilinear(window, side, side, self.half_pixel_centers)
        else:
            image = resize(window, side, side, image_draws.resize_method(words), self.half_pixel_centers)
            # Bicubic overshoots.
            image = tf.clip_by_value(image, 0.0, 255.0)
        if not self.is_training:
            return self._as_delivered(image)
        if self.use_fast_color_distort:
            delivered = self._as_delivered(image, None if self.uint8 else self._shift(words))
        else:
            changes, ordering = image_draws.color_changes(words, self.fast_mode)
            delivered = self._as_delivered(color.distort_color(image / 255.0, changes, ordering) * 255.0)
        return crop.flip(delivered, image_draws.is_flipped(words))

    def left_over(self, words: Any) -> dict[str, Any]:
        """Returns the features that tell the device what is left to do: `color_shift`, or nothing.

        Args:
            words: of an example, or of a block of them.
        """
        if self.uint8 and self.is_training and self.use_fast_color_distort:
            return {COLOR_SHIFT: self._shift(words)}
        return {}

    def _shift(self, words: Any) -> Any:
        cb, cr = image_draws.chroma(words, self.cb_distortion_range, self.cr_distortion_range)
        return color.color_shift(image_draws.brightness(words), cb, cr)

    def _as_delivered(self, image: Any, shift: Any | None = None) -> Any:
        """From float32 0 to 255 to what is delivered; the shift is on a scale of 0 to 1."""
        if self.uint8:
            result = tf.cast(image + 0.5, tf.uint8)
        elif shift is None:
            result = image * (2.0 / 255.0) - 1.0
        else:
            result = tf.clip_by_value(image * (2.0 / 255.0) + (2.0 * shift - 1.0), -1.0, 1.0)
        result.set_shape([self.image_size, self.image_size, 3])
        return result
