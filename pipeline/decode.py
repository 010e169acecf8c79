"""The decode stage: from records to uint8 images with labels."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from pipeline import schema
from pipeline.element import BOXES, IMAGE, LABEL, REPEAT_INDEX, SERIALIZED
from pipeline.skipping import SkipCounter


@dataclass(frozen=True)
class Decode:
    """Parses each record and decodes its JPEG.

    Length and order stay as they are, unless bad records are skipped. A record that cannot be parsed or
    decoded, and a box outside the image, raise `tf.errors.InvalidArgumentError`, or are skipped and counted.

    Attributes:
        use_annotated_boxes: pass the record's boxes on; the whole image stands in where it has none.
        num_parallel_calls: records decoded at the same time; None lets tf.data choose.
        skip_counter: counts bad records that are skipped; None fails on them.
    """

    use_annotated_boxes: bool = False
    num_parallel_calls: int | None = None
    skip_counter: SkipCounter | None = None
    name: str = "decode"

    def __call__(self, records: tf.data.Dataset) -> tf.data.Dataset:
        """Returns `image` uint8 [height, width, 3] and `label` int32 [] in place of `serialized`."""
        if self.skip_counter is not None:
            return self.skip_counter.map(
                records,
                self.decode_record,
                is_fresh=lambda record: record[REPEAT_INDEX] == 0,
                parallel_calls=self.num_parallel_calls or os.cpu_count() or 1,
            )
        return records.map(self.decode_record, num_parallel_calls=self.num_parallel_calls or tf.data.AUTOTUNE)

    def decode_record(self, record: dict[str, Any]) -> dict[str, Any]:
        """Decodes one record; the features beside `serialized` pass through."""
        example = tf.io.parse_single_example(record[SERIALIZED], self._features())
        decoded = {key: value for key, value in record.items() if key != SERIALIZED}
        decoded[IMAGE] = tf.io.decode_jpeg(example[schema.ENCODED], channels=3)
        # As in the reference the label is taken as it is: 1 is the first class, 0 the background.
        decoded[LABEL] = tf.cast(example[schema.LABEL], tf.int32)
        if self.use_annotated_boxes:
            decoded[BOXES] = _boxes([example[key].values for key in schema.BOX_KEYS])
        return decoded

    def _features(self) -> dict[str, Any]:
        # No default for the required keys: a record without them is an error, not an empty image.
        features: dict[str, Any] = {
            schema.ENCODED: tf.io.FixedLenFeature([], tf.string),
            schema.LABEL: tf.io.FixedLenFeature([], tf.int64),
        }
        if self.use_annotated_boxes:
            features |= {key: tf.io.VarLenFeature(tf.float32) for key in schema.BOX_KEYS}
        return features


def _boxes(coordinates: list[Any]) -> Any:
    """Returns float32 [boxes, 4] under the rule of `schema.box_problem`."""
    counts = tf.stack([tf.size(values) for values in coordinates])
    same_length = tf.debugging.Assert(
        tf.reduce_all(counts == counts[0]), ["box coordinate lists of different length", counts]
    )
    with tf.control_dependencies([same_length]):
        boxes = tf.stack(coordinates, axis=1)
    tolerance = schema.BOX_TOLERANCE
    in_range = tf.reduce_all((boxes >= -tolerance) & (boxes <= 1 + tolerance))
    with_area = tf.reduce_all(boxes[:, 2:] > boxes[:, :2])
    valid = tf.debugging.Assert(in_range & with_area, ["box outside 0 to 1 or without area", boxes])
    with tf.control_dependencies([valid]):
        return tf.clip_by_value(boxes, 0.0, 1.0)
