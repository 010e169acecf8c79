"""The transfer stage: the last host work before a batch goes to the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from echoing.checks import check_choice, check_integer
from pipeline.config import DTYPES, LAYOUTS
from pipeline.element import COLOR_SHIFT, IMAGE, LABEL
from pipeline.preprocessing.value_range import to_dtype

NHWC_TO_HWCN = (1, 2, 3, 0)
HWCN_TO_NHWC = (3, 0, 1, 2)
"""What undoes it on the device; both as in the Cloud TPU Inception v3 reference trainer."""


@dataclass(frozen=True)
class Transfer:
    """Casts and transposes the images, then holds batches ready so that their making overlaps with the step.

    Length and order stay as they are. The reference transposes after its last prefetch, so that the device
    waits for it; here it comes before.

    Attributes:
        dtype: type of the images, one of `DTYPES`; uint8 becomes -1 to 1 in a float type, and the reverse.
        prefetch_batches: batches held ready; 0 makes each on demand.
        keep_tags: keep dictionaries with all features; False gives `(image, label)`, with a dictionary of the
            image and its `color_shift` for the image where colours are left to the device.
        layout: `nhwc`, or `hwcn` with the batch last, which the model undoes by `HWCN_TO_NHWC`. For one
            replica: `tf.distribute` splits batches at their first axis.
    """

    dtype: str = "float32"
    prefetch_batches: int = 2
    keep_tags: bool = False
    layout: str = "nhwc"
    name: str = "transfer"

    def __post_init__(self) -> None:
        """Checks the options.

        Raises:
            OptionError: an option has a value that is not allowed.
        """
        check_choice("dtype", self.dtype, DTYPES)
        check_choice("layout", self.layout, LAYOUTS)
        check_integer("prefetch_batches", self.prefetch_batches, minimum=0)

    def __call__(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        """Returns what the device is fed."""
        is_cast = batches.element_spec[IMAGE].dtype != tf.dtypes.as_dtype(self.dtype)
        if is_cast or self.layout == "hwcn" or not self.keep_tags:
            batches = batches.map(self._convert, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
        return batches.prefetch(self.prefetch_batches) if self.prefetch_batches else batches

    def _convert(self, batch: dict[str, Any]) -> Any:
        image = to_dtype(batch[IMAGE], self.dtype)
        if self.layout == "hwcn":
            image = tf.transpose(image, NHWC_TO_HWCN)
        if self.keep_tags:
            return {**batch, IMAGE: image}
        inputs = {IMAGE: image, COLOR_SHIFT: batch[COLOR_SHIFT]} if COLOR_SHIFT in batch else image
        return inputs, batch[LABEL]
