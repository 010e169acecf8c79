"""What can be wrong with one record, by the rules of the converter and of the reader."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf
from google.protobuf.message import DecodeError
from PIL import Image

from pipeline import schema
from pipeline.datasets.check_report import NOTE, PROBLEM
from pipeline.datasets.image_check import find_damage, try_image
from pipeline.image_decoding import DecodeOptions

_INTEGERS = "int64_list"
_FLOATS = "float_list"
_BYTES = "bytes_list"
_JPEG_NAMES = ("jpeg", "jpg")


@dataclass(frozen=True)
class Remark:
    """Something to say about a record.

    Attributes:
        severity: `problem` or `note`.
        kind: what it is, in two or three words.
        text: the facts.
    """

    severity: str
    kind: str
    text: str


@dataclass
class RecordFacts:
    """What was found in a record.

    Attributes:
        label: its class number; None if it has none.
        image_size: height and width of the decoded image; None if there is none.
        digest: hash of the image bytes, to find duplicates; None without a decodable image.
        filename: where the image came from; empty if unknown.
        remarks: what is wrong or worth a note.
    """

    label: int | None = None
    image_size: tuple[int, int] | None = None
    digest: bytes | None = None
    filename: str = ""
    remarks: list[Remark] = field(default_factory=list)

    def problem(self, kind: str, text: str) -> None:
        """Adds a problem."""
        self.remarks.append(Remark(PROBLEM, kind, text))

    def note(self, kind: str, text: str) -> None:
        """Adds a note."""
        self.remarks.append(Remark(NOTE, kind, text))


def check_record(
    payload: bytes, num_classes: int | None, decoding: DecodeOptions | None = None
) -> RecordFacts:
    """Checks the content of one record; its image is decoded fully, by the kernel that the pipeline uses.

    Args:
        payload: the serialized `tf.train.Example`.
        num_classes: labels 0 to `num_classes - 1` are allowed; None allows all from 0.
        decoding: how the pipeline decodes; None for its defaults.
    """
    facts = RecordFacts()
    try:
        features = tf.train.Example.FromString(payload).features.feature
    except DecodeError:
        facts.problem("unreadable record", f"its {len(payload)} bytes are no tf.train.Example")
        return facts
    # `features[key]` would add an absent key to the message.
    found = {key: features[key] for key in features}
    missing = [key for key in schema.REQUIRED_KEYS if not _values(found, key)]
    if missing:
        keys = ", ".join(sorted(found)) or "none"
        empty = [key for key in missing if key in found]
        but = f" ({', '.join(empty)} without a value)" if empty else ""
        facts.problem("missing key", f"missing {', '.join(missing)}; keys found: {keys}{but}")
    names = _values(found, schema.FILENAME)
    if names and isinstance(names[0], bytes):
        facts.filename = names[0].decode("utf-8", errors="replace")
    label = _single(found, schema.LABEL, _INTEGERS, facts)
    if label is not None:
        facts.label = int(label)
        _check_label(facts.label, num_classes, facts)
    encoded = _single(found, schema.ENCODED, _BYTES, facts)
    if encoded is not None:
        _check_image(encoded, found, facts, decoding or DecodeOptions())
    _check_boxes(found, facts)
    return facts


def allowed_labels(num_classes: int | None) -> str:
    """Returns the class numbers allowed, in words."""
    return "0 or more" if num_classes is None else f"0..{num_classes - 1}"


def _check_label(label: int, num_classes: int | None, facts: RecordFacts) -> None:
    if label < 0 or (num_classes is not None and label >= num_classes):
        facts.problem("label out of range", f"the label is {label}; allowed: {allowed_labels(num_classes)}")


def _check_image(encoded: bytes, found: dict[str, Any], facts: RecordFacts, decoding: DecodeOptions) -> None:
    named = f" of {facts.filename!r}" if facts.filename else ""
    image_format, mode = _read_image_header(encoded)
    size, reason = try_image(encoded, decoding)
    if size is None:
        facts.problem(
            "undecodable image",
            f"the image{named} ({image_format or 'unknown format'}, {len(encoded)} bytes) cannot be decoded: "
            f"{reason}",
        )
        return
    damage = find_damage(encoded)
    if damage:
        facts.problem("damaged image", f"the image{named} is decoded, but {damage}")
    height, width = size
    facts.image_size = (height, width)
    facts.digest = hashlib.blake2b(encoded, digest_size=16).digest()
    _check_size_fields(height, width, found, facts)
    stated = _single(found, schema.FORMAT, _BYTES, facts)
    stated_format = "JPEG" if stated is None else stated.decode("utf-8", errors="replace")
    if image_format != "JPEG" or mode != "RGB":
        facts.note(
            "not an RGB JPEG", f"the image{named} is a {image_format or 'unknown format'} of mode {mode}"
        )
    is_jpeg = image_format == "JPEG"
    if is_jpeg != (stated_format.lower() in _JPEG_NAMES):
        facts.note("format field", f"image/format is {stated_format!r}, but the bytes are {image_format}")


def _read_image_header(encoded: bytes) -> tuple[str, str]:
    """Returns the format and the colour mode, empty where Pillow does not know or want them."""
    try:
        with Image.open(io.BytesIO(encoded)) as image:
            image_format = str(image.format)
            # A photograph with a second picture behind it (MPO) is a JPEG to every decoder.
            return "JPEG" if image_format == "MPO" else image_format, image.mode
    except Exception:  # Pillow raises many kinds on damaged headers; TensorFlow's decoder has the last word
        return "", ""


def _check_size_fields(height: int, width: int, found: dict[str, Any], facts: RecordFacts) -> None:
    for key, actual in ((schema.HEIGHT, height), (schema.WIDTH, width)):
        if not _values(found, key):
            continue
        stated = _single(found, key, _INTEGERS, facts)
        if stated is not None and stated != actual:
            facts.problem("size field", f"{key} is {stated}, but the decoded image has {actual}")


def _check_boxes(found: dict[str, Any], facts: RecordFacts) -> None:
    lists: dict[str, Sequence[Any]] = {}
    for key in schema.BOX_KEYS:
        lists[key] = _values(found, key)
        if lists[key] and _kind(found, key) != _FLOATS:
            facts.problem("wrong type", f"{key} is a {_kind(found, key)}, but must be a {_FLOATS}")
            return
    # Not every writer labels its boxes; one that does labels each.
    labels = len(_values(found, schema.BOX_LABEL)) if schema.BOX_LABEL in found else None
    lengths = {len(values) for values in lists.values()}
    if len(lengths) > 1 or (labels is not None and lengths != {labels}):
        stated = [f"{key.rsplit('/', 1)[-1]} {len(values)}" for key, values in lists.items()]
        stated.append(f"label {'absent' if labels is None else labels}")
        facts.problem("box lists", f"coordinate lists of different length: {', '.join(stated)}")
        return
    boxes = list(zip(*lists.values(), strict=True))
    for number, (ymin, xmin, ymax, xmax) in enumerate(boxes, start=1):
        reason = schema.box_problem(ymin, xmin, ymax, xmax)
        if reason:
            facts.problem("bad box", f"box {number} of {len(boxes)}: {reason}")


def _kind(found: dict[str, Any], key: str) -> str:
    return found[key].WhichOneof("kind") or "nothing"


def _values(found: dict[str, Any], key: str) -> Sequence[Any]:
    feature = found.get(key)
    kind = None if feature is None else feature.WhichOneof("kind")
    return () if kind is None else getattr(feature, kind).value


def _single(found: dict[str, Any], key: str, kind: str, facts: RecordFacts) -> Any:
    """Returns the one value of a feature; None, with a problem if it is there in another form."""
    values = _values(found, key)
    if not values:
        return None
    if _kind(found, key) != kind or len(values) != 1:
        facts.problem(
            "wrong type", f"{key} is a {_kind(found, key)} of {len(values)}, but must be a {kind} of 1"
        )
        return None
    return values[0]
