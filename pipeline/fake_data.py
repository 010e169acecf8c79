"""Fake data, as in the Cloud TPU Inception v3 reference: one random image and one label, for ever.

Nothing is read, decoded or augmented, so that a run shows the rate of the batch, the transfer and the device
alone. A model learns nothing from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from echoing.checks import check_choice, check_integer
from pipeline.config import DTYPES
from pipeline.data_source import DataSource, Shard
from pipeline.element import EXAMPLE_ID, IMAGE, LABEL, RECORD_ID, REPEAT_INDEX

FAKE_DATA_NOTE = "Fake data: one random image and one label for ever; nothing is read, decoded or augmented."
"""What every report of a run on fake data says."""


@dataclass(frozen=True)
class FakeData:
    """Stands in for storage, decode and augment: the same image and label for every number.

    Length and order are those of the numbers.

    Attributes:
        image_size: height and width of the image, pixels.
        num_classes: class numbers of the model, the background (0) included; the label is one of them.
        dtype: type of the image, one of `DTYPES`: uniform in [-1, 1), or 0 to 255 in uint8.
        seed: of the image and the label.
    """

    image_size: int = 299
    num_classes: int = 1001
    dtype: str = "float32"
    seed: int = 0
    name: str = "fake_data"

    def __post_init__(self) -> None:
        """Checks the options.

        Raises:
            OptionError: an option has a value that is not allowed.
        """
        check_integer("image_size", self.image_size, minimum=1)
        check_integer("num_classes", self.num_classes, minimum=1)
        check_choice("dtype", self.dtype, DTYPES)
        check_integer("seed", self.seed, minimum=0)

    def __call__(self, numbers: tf.data.Dataset) -> tf.data.Dataset:
        """Returns the examples: `image`, `label`, and the accounting features of fresh examples."""
        image, label = self._draw()
        zero = tf.zeros([], tf.int64)

        def example(number: Any) -> dict[str, Any]:
            # The record is always the same one.
            return {IMAGE: image, LABEL: label, EXAMPLE_ID: number, RECORD_ID: zero, REPEAT_INDEX: zero}

        return numbers.map(example)

    def _draw(self) -> tuple[Any, Any]:
        generator = np.random.default_rng(self.seed)
        label = tf.constant(int(generator.integers(self.num_classes)), tf.int32)
        shape = (self.image_size, self.image_size, 3)
        if self.dtype == "uint8":
            return tf.constant(generator.integers(0, 256, shape, np.uint8)), label
        return tf.cast(generator.uniform(-1.0, 1.0, shape), tf.dtypes.as_dtype(self.dtype)), label


LABELS = 2
"""The label is 0 or 1, which every model has a class for."""


def fake_source(split: str) -> DataSource:
    """Returns what stands for the shards of a data folder; nobody knows how many records it has.

    Args:
        split: name of the split, for reports.
    """
    return DataSource(
        data_dir="fake data",
        split=split,
        shards=(Shard("fake data", "", None, 0),),
        labels=None,
        info=None,
        ignored=(),
        warnings=(FAKE_DATA_NOTE,),
    )


def fake_numbers(examples: int | None = None) -> tf.data.Dataset:
    """Returns the numbers of so many examples, int64 from 0; None for ever.

    Raises:
        OptionError: `examples` is no positive integer.
    """
    if examples is not None:
        check_integer("examples", examples, minimum=1)
    return tf.data.Dataset.range(np.iinfo(np.int64).max if examples is None else examples)
