"""The transfer stage: the last host work before a batch goes to the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from pipeline.element import IMAGE, LABEL


@dataclass(frozen=True)
class Transfer:
    """Casts the images, then holds batches ready so that their making overlaps with the device's step.

    Length and order stay as they are.

    Attributes:
        dtype: `float32` or `bfloat16`, type of the images.
        prefetch_batches: batches held ready; 0 makes each on demand.
        keep_tags: keep dictionaries with all features; False gives `(image, label)`.
    """

    dtype: str = "float32"
    prefetch_batches: int = 2
    keep_tags: bool = False
    name: str = "transfer"

    def __call__(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        """Returns what the device is fed."""
        if self.dtype != "float32" or not self.keep_tags:
            batches = batches.map(self._cast, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
        return batches.prefetch(self.prefetch_batches) if self.prefetch_batches else batches

    def _cast(self, batch: dict[str, Any]) -> Any:
        image = tf.cast(batch[IMAGE], tf.dtypes.as_dtype(self.dtype))
        return {**batch, IMAGE: image} if self.keep_tags else (image, batch[LABEL])
