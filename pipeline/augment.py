"""The augment stage: from decoded images of any size to images that the model takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from echoing.checks import check_choice
from echoing.errors import OptionError
from pipeline.config import DTYPES
from pipeline.element import BOXES, EXAMPLE_ID, IMAGE, REPEAT_INDEX
from pipeline.preprocessing.draws import example_bits
from pipeline.preprocessing.image_draws import WORDS
from pipeline.preprocessing.inception import Inception
from pipeline.preprocessing.selection import Preprocessing
from pipeline.preprocessing.value_range import to_dtype
from pipeline.preprocessing.vgg import Vgg


@dataclass(frozen=True)
class Augment:
    """Prepares images one by one: at random in training, always the same in evaluation.

    Length and order stay as they are. Every draw is keyed by the seed, the example and the repeat number:
    with an echo before this stage, repeats differ, and the same run draws the same again, in any order and
    with any parallelism.

    Attributes:
        preprocessing: what is done to an image.
        is_training: distort the image.
        seed: key of the draws.
        num_parallel_calls: images worked on at the same time; None lets tf.data choose.
        dtype: type of the images from here on, one of `DTYPES`; see `preprocessing.value_range`.
    """

    preprocessing: Preprocessing = field(default_factory=Inception)
    is_training: bool = True
    seed: int = 0
    num_parallel_calls: int | None = None
    dtype: str = "float32"
    name: str = "augment"

    def __post_init__(self) -> None:
        """Checks the type of the images.

        Raises:
            OptionError: an unknown type, or uint8 for `vgg`.
        """
        check_choice("dtype", self.dtype, DTYPES)
        if self.dtype == "uint8" and isinstance(self.preprocessing, Vgg):
            raise OptionError(
                "dtype",
                self.dtype,
                "float32 or bfloat16 with preprocess 'vgg'",
                "The device takes uint8 images for 0 to 255 of -1 to 1; those of `vgg` are scaled otherwise.",
            )

    def __call__(self, images: tf.data.Dataset) -> tf.data.Dataset:
        """Returns `image` [image_size, image_size, 3] of type `dtype`; `boxes` are dropped."""
        return images.map(self.augment, num_parallel_calls=self.num_parallel_calls or tf.data.AUTOTUNE)

    def augment(self, element: dict[str, Any]) -> dict[str, Any]:
        """Augments one element."""
        augmented = {key: value for key, value in element.items() if key != BOXES}
        if self.is_training:
            words = example_bits(self.seed, element[EXAMPLE_ID], element[REPEAT_INDEX], WORDS)
            image = self.preprocessing.for_training(element[IMAGE], element.get(BOXES), words)
        else:
            image = self.preprocessing.for_evaluation(element[IMAGE])
        augmented[IMAGE] = to_dtype(image, self.dtype)
        return augmented
