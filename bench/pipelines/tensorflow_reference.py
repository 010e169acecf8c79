"""The Cloud TPU Inception v3 reference's pipeline, operation by operation, with its own defaults.

Source: tensorflow/tpu, models/experimental/inception, `inception_v3.py` (InputPipeline) and
`inception_preprocessing.py`; written again here from the facts. Random draws are TensorFlow's stateful ones,
as there; the calls of TensorFlow 1 stand under their names of today.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from bench.pipelines.variants import Task
from pipeline import schema
from pipeline.data_source import open_data_source
from pipeline.preprocessing import crop
from pipeline.preprocessing.image_draws import MAX_BRIGHTNESS_DELTA

READ_BUFFER_BYTES = 8 * 1024 * 1024
FILES_AT_A_TIME = 8
SHUFFLE_BUFFER_SIZE = 1000
PARALLEL_CALLS = 64
CHROMA_DISTORTION_RANGE = 0.1

_WHOLE_IMAGE = [[[0.0, 0.0, 1.0, 1.0]]]

_FEATURES = {
    schema.ENCODED: tf.io.FixedLenFeature([], tf.string, ""),
    schema.FORMAT: tf.io.FixedLenFeature([], tf.string, "jpeg"),
    schema.LABEL: tf.io.FixedLenFeature([], tf.int64, -1),
    schema.TEXT: tf.io.FixedLenFeature([], tf.string, ""),
    **{key: tf.io.VarLenFeature(tf.float32) for key in schema.BOX_KEYS},
    "image/object/class/label": tf.io.VarLenFeature(tf.int64),
}
"""It parses all of these and uses image and label."""


def open_batches(task: Task) -> Iterator[int]:
    """Yields the number of images of each batch, for ever."""
    return batch_sizes(dataset(task))


def dataset(task: Task) -> tf.data.Dataset:
    """Returns batches `(image, label)`, float32 [batch, size, size, 3] in [-1, 1] and int32 [batch]."""

    def parse(serialized: Any) -> tuple[Any, Any]:
        example = tf.io.parse_single_example(serialized, _FEATURES)
        image = tf.image.convert_image_dtype(
            tf.io.decode_jpeg(example[schema.ENCODED], channels=3), tf.float32
        )
        begin, size = random_window(tf.shape(image))
        image = resize(tf.slice(image, begin, size), task.image_size)
        return distort(image, task.image_size), tf.cast(example[schema.LABEL], tf.int32)

    examples = records(task).map(parse, num_parallel_calls=PARALLEL_CALLS)
    return examples.prefetch(task.batch_size).batch(task.batch_size, drop_remainder=True).prefetch(2)


def records(task: Task) -> tf.data.Dataset:
    """Returns the serialized records: files shuffled and repeated, eight read at a time, shuffled."""
    shards = open_data_source(task.data_dir, task.split, count_records=False).shards
    # As `list_files` does it, but for names that it would take for patterns.
    files = tf.data.Dataset.from_tensor_slices(
        ([shard.path for shard in shards], [shard.compression for shard in shards])
    )
    serialized = (
        files.shuffle(len(shards))
        .repeat()
        .interleave(
            lambda name, compression: tf.data.TFRecordDataset(name, compression, READ_BUFFER_BYTES),
            cycle_length=FILES_AT_A_TIME,
            num_parallel_calls=FILES_AT_A_TIME,
            deterministic=False,
        )
    )
    return serialized.shuffle(SHUFFLE_BUFFER_SIZE)


def random_window(shape: Any) -> tuple[Any, Any]:
    """Returns begin and size, int32 [3] each, of a random crop of an image of that shape."""
    begin, size, _ = tf.image.sample_distorted_bounding_box(
        shape,
        bounding_boxes=_WHOLE_IMAGE,
        min_object_covered=crop.MIN_OBJECT_COVERED,
        aspect_ratio_range=crop.ASPECT_RATIO_RANGE,
        area_range=crop.AREA_RANGE,
        max_attempts=crop.MAX_ATTEMPTS,
        use_image_if_no_bounding_boxes=True,
    )
    return begin, size


def resize(image: Any, size: int) -> Any:
    """Resizes one float image bilinearly, with neither corners aligned nor half-pixel centres."""
    resized = tf.raw_ops.ResizeBilinear(
        images=image[tf.newaxis], size=[size, size], align_corners=False, half_pixel_centers=False
    )
    return resized[0]


def distort(image: Any, size: int) -> Any:
    """Flips at random, shifts brightness and chroma at random, scales to [-1, 1]; float32 in [0, 1] in."""
    image = tf.image.random_flip_left_right(image)
    brightness = tf.random.uniform([], -MAX_BRIGHTNESS_DELTA, MAX_BRIGHTNESS_DELTA)
    cb = tf.random.uniform([], -CHROMA_DISTORTION_RANGE, CHROMA_DISTORTION_RANGE)
    cr = tf.random.uniform([], -CHROMA_DISTORTION_RANGE, CHROMA_DISTORTION_RANGE)
    red, green, blue = tf.split(image, 3, axis=2)
    red += 1.402 * cr + brightness
    green += -0.344136 * cb - 0.714136 * cr + brightness
    blue += 1.772 * cb + brightness
    image = tf.clip_by_value(tf.concat([red, green, blue], axis=2), 0.0, 1.0)
    image = tf.multiply(tf.subtract(image, 0.5), 2.0)
    image.set_shape([size, size, 3])
    return image


def batch_sizes(batches: tf.data.Dataset) -> Iterator[int]:
    """Yields the number of images of each batch."""
    for element in batches:
        yield int(tf.nest.flatten(element)[-1].shape[0])
