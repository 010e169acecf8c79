import io
import struct

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from pipeline import schema
from pipeline.datasets.record_check import allowed_labels, check_record
from pipeline.image_decoding import DecodeOptions


def encode(mode="RGB", height=40, width=64, image_format="JPEG", seed=0, **options):
    pixels = np.random.default_rng(seed).integers(0, 256, (height // 8, width // 8, 3), np.uint8)
    image = Image.fromarray(pixels).resize((width, height), Image.Resampling.BICUBIC).convert(mode)
    buffer = io.BytesIO()
    image.save(buffer, image_format, **options)
    return buffer.getvalue()


JPEG = encode()


def record(boxes=(), **changes):
    facts = {
        "encoded": JPEG,
        "label": 1,
        "text": "cat",
        "height": 40,
        "width": 64,
        "filename": "a/1.jpg",
        "boxes": boxes,
    }
    return schema.serialize(schema.ImageRecord(**{**facts, **changes}))


def changed(payload, **features):
    """Returns the record with features replaced; None takes one out. `__` stands for the slash."""
    example = tf.train.Example.FromString(payload)
    for name, value in features.items():
        key = name.replace("__", "/")
        del example.features.feature[key]
        if value is None:
            continue
        feature = example.features.feature[key]
        for item in value:
            kind = {int: "int64_list", float: "float_list", bytes: "bytes_list"}[type(item)]
            getattr(feature, kind).value.append(item)
    return example.SerializeToString()


def remarks(payload, num_classes=None):
    return [(r.severity, r.kind, r.text) for r in check_record(payload, num_classes).remarks]


def only_remark(payload, num_classes=None):
    (remark,) = remarks(payload, num_classes)
    return remark


def test_a_good_record_has_no_remarks_and_its_facts_are_told():
    facts = check_record(record([schema.Box(0.1, 0.2, 0.5, 0.6)]), 2)
    assert facts.remarks == []
    assert facts.label == 1
    assert facts.image_size == (40, 64)
    assert facts.filename == "a/1.jpg"
    assert len(facts.digest) == 16


def test_the_digest_is_that_of_the_image_alone():
    assert check_record(record(), None).digest == check_record(record(label=2, text="dog"), None).digest
    assert check_record(record(), None).digest != check_record(record(encoded=encode(seed=1)), None).digest


def test_only_the_required_keys_are_required():
    payload = changed(
        record(),
        **{
            key.replace("/", "__"): None
            for key in tf.train.Example.FromString(record()).features.feature
            if key not in ("image/encoded", "image/class/label")
        },
    )
    assert list(tf.train.Example.FromString(payload).features.feature) != []
    assert remarks(payload) == []


@pytest.mark.parametrize(
    ("missing", "found"),
    [
        (["image/encoded", "image/class/label"], "image_raw, label"),
        (["image/encoded"], "image/class/label, image_raw"),
        (["image/class/label"], "image/encoded, label"),
    ],
)
def test_missing_keys_are_named_beside_the_keys_found(missing, found):
    example = tf.train.Example()
    for key in found.split(", "):
        if key.endswith("label"):
            example.features.feature[key].int64_list.value.append(1)
        else:
            example.features.feature[key].bytes_list.value.append(JPEG)
    severity, kind, text = only_remark(example.SerializeToString())
    assert (severity, kind) == ("problem", "missing key")
    assert text == f"missing {', '.join(missing)}; keys found: {found}"


def test_an_empty_payload_lacks_every_key():
    assert only_remark(b"")[2] == "missing image/encoded, image/class/label; keys found: none"


def test_a_key_without_a_value_is_missing():
    text = only_remark(changed(record(), image__class__label=[]))[2]
    assert text.startswith("missing image/class/label; keys found: ")
    assert text.endswith("(image/class/label without a value)")


def test_bytes_of_another_kind_are_no_record():
    assert only_remark(b"\xff" * 50) == (
        "problem",
        "unreadable record",
        "its 50 bytes are no tf.train.Example",
    )


@pytest.mark.parametrize(
    ("feature", "value", "text"),
    [
        ("image__class__label", [1, 2], "image/class/label is a int64_list of 2"),
        ("image__class__label", [1.0], "image/class/label is a float_list of 1"),
        ("image__encoded", [JPEG, JPEG], "image/encoded is a bytes_list of 2"),
        ("image__height", [40.0], "image/height is a float_list of 1"),
        ("image__object__bbox__ymin", [1], "image/object/bbox/ymin is a int64_list"),
    ],
)
def test_a_value_of_another_type_or_number_is_named(feature, value, text):
    payload = changed(record([schema.Box(0.1, 0.1, 0.5, 0.5)]), **{feature: value})
    severity, kind, got = only_remark(payload)
    assert (severity, kind) == ("problem", "wrong type")
    assert text in got


@pytest.mark.parametrize(
    ("label", "is_good"), [(-1, False), (0, True), (3, True), (4, False), (2**40, False)]
)
def test_labels_from_0_to_one_less_than_the_classes_are_allowed(label, is_good):
    found = remarks(record(label=label), num_classes=4)
    if is_good:
        assert found == []
    else:
        assert found == [("problem", "label out of range", f"the label is {label}; allowed: 0..3")]


def test_without_a_number_of_classes_only_negative_labels_are_refused():
    assert remarks(record(label=5000)) == []
    assert only_remark(record(label=-1))[2] == "the label is -1; allowed: 0 or more"
    assert allowed_labels(None) == "0 or more"
    assert allowed_labels(1001) == "0..1000"


@pytest.mark.parametrize("share", [0.0, 0.01, 0.05, 0.6, 0.999])
@pytest.mark.parametrize("progressive", [False, True])
def test_a_truncated_jpeg_is_named_with_its_file(share, progressive):
    whole = encode(height=64, width=64, progressive=progressive)
    cut = whole[: int(len(whole) * share)]
    facts = check_record(record(encoded=cut, height=64, width=64, filename="b/cut.jpg"), None)
    (remark,) = facts.remarks
    assert (remark.severity, remark.kind) == ("problem", "undecodable image")
    assert "'b/cut.jpg'" in remark.text
    assert f"{len(cut)} bytes" in remark.text
    assert facts.image_size is None
    assert facts.digest is None


@pytest.mark.parametrize("content", [b"hello", b"GIF89a", b"\x89PNG\r\n\x1a\n", b"<svg/>"])
def test_bytes_that_are_no_image_are_undecodable(content):
    severity, kind, text = only_remark(record(encoded=content))
    assert (severity, kind) == ("problem", "undecodable image")
    assert "{{" not in text
    assert "[Op:" not in text


def test_an_animated_gif_is_allowed_and_noted():  # IM-05
    frames = [Image.new("RGB", (8, 8), color) for color in ("red", "green", "blue")]
    buffer = io.BytesIO()
    frames[0].save(buffer, "GIF", save_all=True, append_images=frames[1:])
    found = remarks(record(encoded=buffer.getvalue(), height=8, width=8, format="GIF"))
    assert [(severity, kind) for severity, kind, _ in found] == [("note", "not an RGB JPEG")]


def claiming(height, width):
    """Returns a JPEG whose header claims another size than it has."""
    at = JPEG.index(b"\xff\xc0") + 5
    return JPEG[:at] + struct.pack(">HH", height, width) + JPEG[at + 4 :]


def test_an_image_that_claims_too_many_pixels_is_not_decoded_and_its_size_is_told():
    severity, kind, text = only_remark(record(encoded=claiming(64250, 64250)))
    assert (severity, kind) == ("problem", "undecodable image")
    assert "'a/1.jpg'" in text
    assert "claims 64250 x 64250 pixels; at most 178,956,970 are decoded" in text


@pytest.mark.parametrize(("max_pixels", "is_good"), [(40 * 64, True), (40 * 64 - 1, False)])
def test_the_limit_is_that_of_the_pipeline(max_pixels, is_good):
    facts = check_record(record(), None, DecodeOptions(max_pixels=max_pixels))
    assert (facts.remarks == []) == is_good


def test_a_truncated_image_is_good_where_the_pipeline_recovers_it_but_called_damaged():
    cut = JPEG[: len(JPEG) * 3 // 4]
    assert only_remark(record(encoded=cut))[1] == "undecodable image"
    facts = check_record(record(encoded=cut), None, DecodeOptions(recover_truncated=True))
    (remark,) = facts.remarks
    assert remark.kind == "damaged image"
    assert "truncated" in remark.text


def test_a_jpeg_that_was_cut_and_closed_is_damaged_though_it_is_decoded():
    closed = JPEG[: len(JPEG) * 3 // 4] + b"\xff\xd9"
    severity, kind, text = only_remark(record(encoded=closed))
    assert (severity, kind) == ("problem", "damaged image")
    assert "its data ends before the picture does" in text


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"mode": "L"}, "is a JPEG of mode L"),
        ({"mode": "CMYK"}, "is a JPEG of mode CMYK"),
    ],
)
def test_a_jpeg_that_is_not_rgb_is_allowed_and_noted(options, text):
    severity, kind, got = only_remark(record(encoded=encode(**options)))
    assert (severity, kind) == ("note", "not an RGB JPEG")
    assert text in got


def test_an_image_of_another_format_is_noted_and_so_is_a_format_field_that_does_not_say_it():
    png = encode(image_format="PNG")
    assert [kind for _, kind, _ in remarks(record(encoded=png, format="PNG"))] == ["not an RGB JPEG"]
    found = remarks(record(encoded=png))
    assert [(severity, kind) for severity, kind, _ in found] == [
        ("note", "not an RGB JPEG"),
        ("note", "format field"),
    ]
    assert found[1][2] == "image/format is 'JPEG', but the bytes are PNG"
    assert [kind for _, kind, _ in remarks(record(format="png"))] == ["format field"]
    assert remarks(record(format="jpeg")) == []


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ({"height": 41}, "image/height is 41, but the decoded image has 40"),
        ({"width": 40}, "image/width is 40, but the decoded image has 64"),
    ],
)
def test_a_size_field_that_differs_from_the_image_is_a_problem(field, text):
    assert only_remark(record(**field)) == ("problem", "size field", text)


def test_both_size_fields_are_reported():
    assert [kind for _, kind, _ in remarks(record(height=64, width=40))] == ["size field"] * 2


def box_lists(**lists):
    return changed(record(), **{f"image__object__bbox__{name}": value for name, value in lists.items()})


@pytest.mark.parametrize(
    "lists",
    [
        {"xmin": None, "xmax": None, "ymin": None, "ymax": None, "label": None},
        {"xmin": [], "xmax": [], "ymin": [], "ymax": [], "label": []},
        {"xmin": [0.1], "xmax": [0.5], "ymin": [0.2], "ymax": [0.7], "label": [1]},
        {"xmin": [0.1, 0.0], "xmax": [0.5, 1.0], "ymin": [0.2, 0.0], "ymax": [0.7, 1.0], "label": None},
    ],
    ids=["absent", "empty", "one", "two without labels"],
)
def test_records_with_any_number_of_boxes_are_good(lists):
    assert remarks(box_lists(**lists)) == []


@pytest.mark.parametrize(
    ("lists", "lengths"),
    [
        (
            {"xmin": [0.1] * 2, "xmax": [0.5] * 2, "ymin": [0.1] * 2, "ymax": [0.5], "label": [1, 1]},
            "ymin 2, xmin 2, ymax 1, xmax 2, label 2",
        ),
        (
            {"xmin": [0.1] * 2, "xmax": [0.5] * 2, "ymin": [0.1] * 2, "ymax": [0.5] * 2, "label": [1]},
            "ymin 2, xmin 2, ymax 2, xmax 2, label 1",
        ),
        (
            {"xmin": None, "xmax": [0.5], "ymin": [0.1], "ymax": [0.5], "label": None},
            "ymin 1, xmin 0, ymax 1, xmax 1, label absent",
        ),
        (
            {"xmin": [], "xmax": [], "ymin": [], "ymax": [], "label": [1]},
            "ymin 0, xmin 0, ymax 0, xmax 0, label 1",
        ),
    ],
    ids=["short coordinate list", "short label list", "absent coordinate list", "label without box"],
)
def test_box_lists_of_different_length_are_named_with_the_five_lengths(lists, lengths):
    assert only_remark(box_lists(**lists)) == (
        "problem",
        "box lists",
        f"coordinate lists of different length: {lengths}",
    )


@pytest.mark.parametrize(
    ("box", "text"),
    [
        ((0.0, 0.0, 1.0, 1.0000001), None),
        ((0.0, 0.0, 1.0, 1.15), "box 2 of 3: box xmax is 1.15, outside 0 to 1"),
        ((20.0, 12.0, 240.0, 200.0), "box 2 of 3: box ymin is 20, outside 0 to 1 (pixel coordinates?)"),
        ((0.5, 0.1, 0.5, 0.9), "box 2 of 3: box without area"),
        ((float("nan"), 0.0, 1.0, 1.0), "box 2 of 3: box ymin is nan"),
    ],
)
def test_boxes_are_judged_by_the_rule_of_the_schema(box, text):
    good = schema.Box(0.1, 0.1, 0.9, 0.9)
    found = remarks(record([good, schema.Box(*box), good]))
    if text is None:
        assert found == []
    else:
        assert found[0][:2] == ("problem", "bad box")
        assert found[0][2].startswith(text)
