"""The ImageNet TFRecord schema: the keys, how a record is written and parsed, and the rule for boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

ENCODED = "image/encoded"
FORMAT = "image/format"
LABEL = "image/class/label"
TEXT = "image/class/text"
HEIGHT = "image/height"
WIDTH = "image/width"
COLORSPACE = "image/colorspace"
CHANNELS = "image/channels"
FILENAME = "image/filename"
XMIN = "image/object/bbox/xmin"
YMIN = "image/object/bbox/ymin"
XMAX = "image/object/bbox/xmax"
YMAX = "image/object/bbox/ymax"
BOX_LABEL = "image/object/bbox/label"

REQUIRED_KEYS = (ENCODED, LABEL)
"""Keys without which a record is useless; the reader names them when they are missing."""
BOX_KEYS = (YMIN, XMIN, YMAX, XMAX)

BOX_TOLERANCE = 1e-4
"""How far a normalised coordinate may lie outside [0, 1] and still count as rounding, which is clipped."""


@dataclass(frozen=True)
class Box:
    """A box in fractions of the image's height and width, 0 to 1."""

    ymin: float
    xmin: float
    ymax: float
    xmax: float


@dataclass(frozen=True)
class ImageRecord:
    """One labelled image.

    Attributes:
        encoded: the JPEG bytes, RGB.
        label: class number, 1-based; 0 is kept for the background.
        text: class name.
        height: height of the decoded image, pixels.
        width: width of the decoded image, pixels.
        filename: where the image came from; tells two images with one name apart.
        boxes: annotated boxes, possibly none.
        format: format of `encoded`, as the reference's converter spells it.
    """

    encoded: bytes
    label: int
    text: str
    height: int
    width: int
    filename: str
    boxes: Sequence[Box] = field(default_factory=tuple)
    format: str = "JPEG"


def serialize(record: ImageRecord) -> bytes:
    """Returns the serialized `tf.train.Example` of a record."""
    boxes = record.boxes
    features = {
        ENCODED: _bytes([record.encoded]),
        FORMAT: _bytes([record.format.encode()]),
        LABEL: _integers([record.label]),
        TEXT: _bytes([record.text.encode()]),
        HEIGHT: _integers([record.height]),
        WIDTH: _integers([record.width]),
        COLORSPACE: _bytes([b"RGB"]),
        CHANNELS: _integers([3]),
        FILENAME: _bytes([record.filename.encode()]),
        XMIN: _floats([box.xmin for box in boxes]),
        YMIN: _floats([box.ymin for box in boxes]),
        XMAX: _floats([box.xmax for box in boxes]),
        YMAX: _floats([box.ymax for box in boxes]),
        BOX_LABEL: _integers([record.label] * len(boxes)),
    }
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def box_problem(ymin: float, xmin: float, ymax: float, xmax: float) -> str:
    """Returns what is wrong with a box, or an empty string.

    The same rule serves the converter, the checker and the reader: coordinates within `BOX_TOLERANCE` of
    [0, 1] are rounding and are clipped; anything further out, or a box without area, is refused.
    """
    values = {"ymin": ymin, "xmin": xmin, "ymax": ymax, "xmax": xmax}
    for name, value in values.items():
        if not -BOX_TOLERANCE <= value <= 1 + BOX_TOLERANCE:  # also false for NaN
            hint = " (pixel coordinates?)" if value > 2 else ""
            return f"box {name} is {value:g}, outside 0 to 1{hint}"
    if ymax <= ymin or xmax <= xmin:
        return f"box without area: y {ymin:g} to {ymax:g}, x {xmin:g} to {xmax:g}"
    return ""


def _bytes(values: list[bytes]) -> Any:
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def _integers(values: list[int]) -> Any:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def _floats(values: list[float]) -> Any:
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))
