"""The augment stage: from decoded images of any size to images that the model takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from pipeline.element import BOXES, EXAMPLE_ID, IMAGE, REPEAT_INDEX
from pipeline.preprocessing.inception import preprocess_for_eval, preprocess_for_train


@dataclass(frozen=True)
class Augment:
    """Inception's preprocessing: random in training, the central crop in evaluation.

    Length and order stay as they are. Every draw is keyed by the seed, the example and the repeat number:
    with an echo before this stage, repeats differ, and the same run draws the same again, in any order and
    with any parallelism.

    Attributes:
        image_size: height and width of the result, pixels.
        is_training: distort the image.
        seed: key of the draws.
        num_parallel_calls: images worked on at the same time; None lets tf.data choose.
        cb_distortion_range: largest shift of blue chroma.
        cr_distortion_range: largest shift of red chroma.
        use_fast_color_distort: shift brightness and chroma; False changes brightness and saturation.
    """

    image_size: int = 299
    is_training: bool = True
    seed: int = 0
    num_parallel_calls: int | None = None
    cb_distortion_range: float = 0.1
    cr_distortion_range: float = 0.1
    use_fast_color_distort: bool = True
    name: str = "augment"

    def __call__(self, images: tf.data.Dataset) -> tf.data.Dataset:
        """Returns `image` float32 [image_size, image_size, 3] in [-1, 1]; `boxes` are dropped."""
        return images.map(self.augment, num_parallel_calls=self.num_parallel_calls or tf.data.AUTOTUNE)

    def augment(self, element: dict[str, Any]) -> dict[str, Any]:
        """Augments one element."""
        augmented = {key: value for key, value in element.items() if key != BOXES}
        if self.is_training:
            augmented[IMAGE] = preprocess_for_train(
                element[IMAGE],
                element.get(BOXES),
                self.image_size,
                self._key(element),
                self.cb_distortion_range,
                self.cr_distortion_range,
                self.use_fast_color_distort,
            )
        else:
            augmented[IMAGE] = preprocess_for_eval(element[IMAGE], self.image_size)
        return augmented

    def _key(self, element: dict[str, Any]) -> Any:
        key = tf.random.fold_in(tf.constant([self.seed, 0], tf.int64), element[EXAMPLE_ID])
        return tf.random.fold_in(key, element[REPEAT_INDEX])
