"""Decoding records: images, labels, boxes, and what is not one."""

from __future__ import annotations

import io

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from pipeline import schema
from pipeline.decode import Decode
from pipeline.diagnosis import PIPELINE_ERRORS
from pipeline.image_decoding import DecodeOptions
from pipeline.schema import Box
from pipeline.skipping import SkipCounter

RED = (200, 30, 40)


def jpeg(height: int = 16, width: int = 24) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (width, height), RED).save(buffer, "JPEG", quality=95)
    return buffer.getvalue()


def record(boxes=(), label: int = 3, encoded: bytes | None = None) -> bytes:
    return schema.serialize(
        schema.ImageRecord(encoded or jpeg(), label, "thing", 16, 24, "a.jpg", boxes=boxes)
    )


def without(key: str) -> bytes:
    example = tf.train.Example.FromString(record())
    del example.features.feature[key]
    return example.SerializeToString()


def decode(serialized: list[bytes], **options) -> list[dict]:
    dataset = tf.data.Dataset.from_tensor_slices(serialized).map(
        lambda s: {"serialized": s, "repeat_index": tf.zeros([], tf.int64)}
    )
    return list(dataset.apply(Decode(**options)).as_numpy_iterator())


def test_image_is_rgb_uint8_and_the_label_is_taken_as_it_is():
    (element,) = decode([record()])
    assert element["image"].shape == (16, 24, 3)
    assert element["image"].dtype == np.uint8
    np.testing.assert_allclose(element["image"].reshape(-1, 3).mean(axis=0), RED, atol=3)
    assert element["label"] == 3
    assert element["label"].dtype == np.int32
    assert "serialized" not in element


def test_grey_jpeg_gives_three_channels():
    buffer = io.BytesIO()
    Image.new("L", (8, 8), 77).save(buffer, "JPEG")
    (element,) = decode([record(encoded=buffer.getvalue())])
    assert element["image"].shape == (8, 8, 3)


def test_the_options_of_decoding_decide_what_is_bad():
    cut = _photo()[: int(len(_photo()) * 0.6)]
    with pytest.raises(tf.errors.InvalidArgumentError):
        decode([record(encoded=cut)])
    (element,) = decode([record(encoded=cut)], decoding=DecodeOptions(recover_truncated=True))
    whole = tf.io.decode_jpeg(_photo(), channels=3).numpy()
    np.testing.assert_array_equal(element["image"][:24], whole[:24])  # some 60 % of the rows
    with pytest.raises(tf.errors.InvalidArgumentError, match="more than 383 pixels"):
        decode([record()], decoding=DecodeOptions(max_pixels=16 * 24 - 1))


def test_annotated_boxes_come_as_ymin_xmin_ymax_xmax_whatever_their_number():  # SC-05
    elements = decode(
        [_without_boxes(), record(), record(boxes=[Box(0.1, 0.2, 0.3, 0.4)])],
        use_annotated_boxes=True,
    )
    assert [element["boxes"].shape for element in elements] == [(0, 4), (0, 4), (1, 4)]
    np.testing.assert_allclose(elements[2]["boxes"], [[0.1, 0.2, 0.3, 0.4]])


def _without_boxes() -> bytes:
    example = tf.train.Example.FromString(record())
    for key in schema.BOX_KEYS:
        del example.features.feature[key]
    return example.SerializeToString()


def test_box_a_rounding_error_outside_is_clipped():  # SC-06
    (element,) = decode([record(boxes=[Box(0.0, 0.0, 1.0, 1.0000001)])], use_annotated_boxes=True)
    assert element["boxes"].max() == 1.0


@pytest.mark.parametrize("box", [Box(0, 0, 1, 1.15), Box(12, 20, 200, 240), Box(0.5, 0, 0.5, 1)])
def test_box_outside_the_image_or_without_area_is_refused(box):  # SC-06
    with pytest.raises(tf.errors.InvalidArgumentError, match="box outside 0 to 1 or without area"):
        decode([record(boxes=[box])], use_annotated_boxes=True)


def test_boxes_are_not_looked_at_unless_asked_for():
    assert len(decode([record(boxes=[Box(12, 20, 200, 240)])])) == 1


def test_coordinate_lists_of_different_length_are_refused():  # SC-09
    example = tf.train.Example.FromString(record(boxes=[Box(0, 0, 1, 1), Box(0, 0, 1, 1)]))
    example.features.feature[schema.YMAX].float_list.value.pop()
    with pytest.raises(tf.errors.InvalidArgumentError, match="different length"):
        decode([example.SerializeToString()], use_annotated_boxes=True)


BAD = {
    "no image": lambda: without(schema.ENCODED),
    "no label": lambda: without(schema.LABEL),
    "no example": lambda: b"\x0a\xffnot an example",
    "no jpeg": lambda: record(encoded=b"these bytes are no image"),
    "cut in the header": lambda: record(encoded=jpeg()[:20]),
    "cut in the data": lambda: record(encoded=_photo()[: int(len(_photo()) * 0.6)]),
}


def _photo() -> bytes:
    buffer = io.BytesIO()
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    Image.fromarray(noise).save(buffer, "JPEG")
    return buffer.getvalue()


@pytest.mark.parametrize("kind", BAD)
def test_bad_record_is_an_error(kind):
    with pytest.raises(PIPELINE_ERRORS):
        decode([BAD[kind]()])


@pytest.mark.parametrize("position", [0, 1, 3])
@pytest.mark.parametrize("kind", BAD)
def test_bad_record_is_skipped_and_counted_at_any_position(kind, position):
    serialized = [record(label=number) for number in (1, 2, 3)]
    serialized.insert(position, BAD[kind]())
    counter = SkipCounter()
    elements = decode(serialized, skip_counter=counter)
    assert [element["label"] for element in elements] == [1, 2, 3]
    assert counter.count == 1


def test_repeats_of_a_bad_record_are_skipped_without_counting_again():
    dataset = tf.data.Dataset.from_tensors(
        {"serialized": BAD["no jpeg"](), "repeat_index": tf.constant(1, tf.int64)}
    )
    counter = SkipCounter()
    assert list(dataset.apply(Decode(skip_counter=counter))) == []
    assert counter.count == 0


def test_skipping_changes_nothing_about_good_records():
    serialized = [record(label=number) for number in range(20)]
    plain = decode(serialized)
    tolerant = decode(serialized, skip_counter=SkipCounter())
    tf.nest.map_structure(np.testing.assert_array_equal, tolerant, plain)
