"""From serialized records to the features that the pipeline uses, one record or a block of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from pipeline import schema


class ParsedRecord(NamedTuple):
    """What the pipeline takes from a record.

    Attributes:
        encoded: string [] or [records], the bytes of the image.
        label: int32 [] or [records]; as in the reference it is taken as it is: 1 is the first class, 0 the
            background.
        boxes: float32 [boxes, 4], ymin, xmin, ymax, xmax as fractions; None where not asked for.
    """

    encoded: Any
    label: Any
    boxes: Any | None = None


def parse_record(serialized: Any, with_boxes: bool = False) -> ParsedRecord:
    """Parses one record.

    A record that cannot be parsed, or a box outside the image, raises `tf.errors.InvalidArgumentError`.

    Args:
        serialized: string [].
        with_boxes: return its boxes, none of them where it has none.
    """
    # No default for the required keys: a record without them is an error, not an empty image.
    features: dict[str, Any] = dict(_REQUIRED)
    if with_boxes:
        features |= {key: tf.io.VarLenFeature(tf.float32) for key in schema.BOX_KEYS}
    example = tf.io.parse_single_example(serialized, features)
    boxes = _boxes([example[key].values for key in schema.BOX_KEYS]) if with_boxes else None
    return ParsedRecord(example[schema.ENCODED], tf.cast(example[schema.LABEL], tf.int32), boxes)


def parse_records(serialized: Any) -> ParsedRecord:
    """Parses a block of records, string [records], without boxes; errors as `parse_record`."""
    example = tf.io.parse_example(serialized, _REQUIRED)
    return ParsedRecord(example[schema.ENCODED], tf.cast(example[schema.LABEL], tf.int32))


_REQUIRED = {
    schema.ENCODED: tf.io.FixedLenFeature([], tf.string),
    schema.LABEL: tf.io.FixedLenFeature([], tf.int64),
}


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
