"""The usual hand-tuned TensorFlow pipeline: only the crop is decoded; tf.data chooses the parallelism.

Source of the form: the input pipelines of TensorFlow's official ResNet trainer and of its Cloud TPU models
(`extract_jpeg_shape`, `sample_distorted_bounding_box`, `decode_and_crop_jpeg`), with the reference's draws.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from bench.pipelines.tensorflow_reference import (
    batch_sizes,
    distort,
    random_window,
    records,
    resize,
)
from bench.pipelines.variants import Task
from pipeline import schema


def open_batches(task: Task) -> Iterator[int]:
    """Yields the number of images of each batch, for ever."""
    return batch_sizes(dataset(task))


def dataset(task: Task) -> tf.data.Dataset:
    """Returns batches `(image, label)` as the reference's."""

    def parse(serialized: Any) -> tuple[Any, Any]:
        encoded, label = parse_example(serialized)
        image = tf.image.convert_image_dtype(decode_random_crop(encoded), tf.float32)
        return distort(resize(image, task.image_size), task.image_size), label

    examples = records(task).map(parse, num_parallel_calls=tf.data.AUTOTUNE, deterministic=False)
    batches = examples.batch(task.batch_size, drop_remainder=True, num_parallel_calls=tf.data.AUTOTUNE)
    return batches.prefetch(tf.data.AUTOTUNE)


def parse_example(serialized: Any) -> tuple[Any, Any]:
    """Returns the image's bytes, string [], and its label, int32 []; parses nothing else."""
    features = {
        schema.ENCODED: tf.io.FixedLenFeature([], tf.string),
        schema.LABEL: tf.io.FixedLenFeature([], tf.int64),
    }
    example = tf.io.parse_single_example(serialized, features)
    return example[schema.ENCODED], tf.cast(example[schema.LABEL], tf.int32)


def decode_random_crop(encoded: Any) -> Any:
    """Returns a random crop of a JPEG, uint8 [height, width, 3], of which nothing else is decoded."""
    begin, size = random_window(tf.io.extract_jpeg_shape(encoded))
    window = tf.concat([begin[:2], size[:2]], axis=0)
    return tf.io.decode_and_crop_jpeg(encoded, window, channels=3)
