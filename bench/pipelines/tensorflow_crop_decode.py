"""Decoding the random crops and nothing else: what a pipeline on TensorFlow's decoder can hardly exceed.

With the decoder's default options: without interpolated chroma planes (`fancy_upscaling=False`) it is faster
by some percent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from bench.pipelines.tensorflow_reference import batch_sizes, records
from bench.pipelines.tensorflow_tuned import decode_random_crop, parse_example
from bench.pipelines.variants import Task


def open_batches(task: Task) -> Iterator[int]:
    """Yields the number of images of each batch, for ever."""
    return batch_sizes(dataset(task))


def dataset(task: Task) -> tf.data.Dataset:
    """Returns batches `(pixel, label)`: of each decoded crop only its first pixel goes on."""

    def parse(serialized: Any) -> tuple[Any, Any]:
        encoded, label = parse_example(serialized)
        return decode_random_crop(encoded)[0, 0], label

    examples = records(task).map(parse, num_parallel_calls=tf.data.AUTOTUNE, deterministic=False)
    batches = examples.batch(task.batch_size, drop_remainder=True, num_parallel_calls=tf.data.AUTOTUNE)
    return batches.prefetch(tf.data.AUTOTUNE)
