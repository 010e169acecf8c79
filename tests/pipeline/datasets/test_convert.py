import csv
import dataclasses
import io
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from echoing.errors import DataError, OptionError
from pipeline.dataset_info import read_dataset_info
from pipeline.datasets.convert import convert_dataset
from pipeline.datasets.convert_options import ConvertOptions, ConvertSummary
from pipeline.labels import read_labels

Folder = Callable[..., Path]
Reader = Callable[..., list[dict[str, Any]]]
Picture = Callable[..., bytes]


def convert(src: Path | str, out: Path | str, **options: Any) -> ConvertSummary:
    return convert_dataset(ConvertOptions("imagefolder", **options), str(src), str(out))


def shards(out: Path) -> list[str]:
    return sorted(path.name for path in out.glob("*-of-*")) if out.exists() else []


def by_filename(records: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {record["image/filename"][0].decode(): record for record in records}


def labels(records: list[dict[str, Any]]) -> dict[str, tuple[int, str]]:
    return {
        name: (record["image/class/label"][0], record["image/class/text"][0].decode())
        for name, record in by_filename(records).items()
    }


def test_a_folder_becomes_records_of_the_imagenet_schema(
    tmp_path: Path, write_folder: Folder, picture_bytes: Picture, read_records: Reader
) -> None:
    jpeg = picture_bytes()
    src = write_folder({"cats/1.jpg": jpeg, "dogs/2.png": picture_bytes("PNG", colour="red", size=(30, 20))})
    summary = convert(src, tmp_path / "out")
    records = by_filename(read_records(tmp_path / "out"))
    cat, dog = records["cats/1.jpg"], records["dogs/2.png"]
    assert cat == {
        "image/encoded": [jpeg],
        "image/format": [b"JPEG"],
        "image/colorspace": [b"RGB"],
        "image/channels": [3],
        "image/class/label": [1],
        "image/class/text": [b"cats"],
        "image/height": [8],
        "image/width": [12],
        "image/filename": [b"cats/1.jpg"],
        "image/object/bbox/xmin": [],
        "image/object/bbox/ymin": [],
        "image/object/bbox/xmax": [],
        "image/object/bbox/ymax": [],
        "image/object/bbox/label": [],
    }
    assert (dog["image/class/label"], dog["image/height"], dog["image/width"]) == ([2], [20], [30])
    image = Image.open(io.BytesIO(dog["image/encoded"][0]))
    assert (image.format, image.mode, image.size) == ("JPEG", "RGB", (30, 20))
    assert read_labels(str(tmp_path / "out")) == ["cats", "dogs"]
    assert (summary.found, summary.written, summary.rejected, summary.rejected_file) == (2, 2, 0, None)
    assert summary.changes == {"kept as they are": 1, "PNG to JPEG": 1}
    assert summary.shards == shards(tmp_path / "out")


def test_system_files_are_ignored_and_counted(
    tmp_path: Path, write_folder: Folder, picture_bytes: Picture, read_records: Reader
) -> None:  # FC-01
    junk = [".DS_Store", "cats/Thumbs.db", "cats/desktop.ini", ".git/x.jpg", "cats/.hidden.jpg"]
    pictures = {"cats/1.jpg": picture_bytes(), "dogs/2.jpg": picture_bytes(seed=1)}
    summary = convert(write_folder(dict.fromkeys(junk, b"junk") | pictures), tmp_path / "out")
    assert (summary.found, summary.written, summary.classes) == (2, 2, ["cats", "dogs"])
    assert summary.ignored == {"hidden or system files": 5}
    assert len(read_records(tmp_path / "out")) == 2


@pytest.mark.parametrize("empty_folder", [True, False])
def test_a_class_missing_in_one_split_keeps_its_label_and_is_named(
    tmp_path: Path, write_folder: Folder, picture_bytes: Picture, read_records: Reader, empty_folder: bool
) -> None:  # FC-03
    train = write_folder({f"{name}/1.jpg": picture_bytes() for name in "abc"}, name="train")
    files: dict[str, bytes | None] = {"a/1.jpg": picture_bytes(), "c/1.jpg": picture_bytes()}
    val = write_folder(files | ({"b": None} if empty_folder else {}), name="val")
    out = tmp_path / "out"
    first = convert(train, out)
    second = convert(val, out, split="validation")
    assert labels(read_records(out))["c/1.jpg"] == (3, "c")
    assert labels(read_records(out, "validation")) == {"a/1.jpg": (1, "a"), "c/1.jpg": (3, "c")}
    assert first.warnings == []
    (warning,) = second.warnings
    assert "'b'" in warning and "'validation'" in warning
    assert read_labels(str(out)) == ["a", "b", "c"]
    info = read_dataset_info(str(out))
    assert info is not None
    assert {split: sum(shard.records for shard in entry) for split, entry in info.splits.items()} == {
        "train": 3,
        "validation": 2,
    }


def test_a_labels_file_fixes_the_numbers_of_a_split_converted_alone(
    tmp_path: Path, write_folder: Folder, picture_bytes: Picture, read_records: Reader
) -> None:  # FC-03
    names = tmp_path / "names.txt"
    names.write_text("z\nc\na\n")
    src = write_folder({"a/1.jpg": picture_bytes(), "c/1.jpg": picture_bytes()})
    summary = convert(src, tmp_path / "out", labels_file=str(names))
    assert labels(read_records(tmp_path / "out")) == {"a/1.jpg": (3, "a"), "c/1.jpg": (2, "c")}
    assert "'z'" in summary.warnings[0]


def test_a_class_that_the_list_does_not_know_is_an_error(
    tmp_path: Path, write_folder: Folder, picture_bytes: Picture
) -> None:
    out = tmp_path / "out"
    convert(write_folder({"a/1.jpg": picture_bytes()}, name="train"), out)
    val = write_folder({"a/1.jpg": picture_bytes(), "new/1.jpg": picture_bytes()}, name="val")
    with pytest.raises(DataError, match="'new'"):
        convert(val, out, split="validation")
    assert shards(out) == ["train-00000-of-00001"]


def test_overwriting_the_only_split_takes_its_new_classes(
    tmp_path: Path, write_folder: Folder, picture_bytes: Picture
) -> None:
    out = tmp_path / "out"
    convert(write_folder({"a/1.jpg": picture_bytes()}, name="one"), out)
    other = write_folder({"b/1.jpg": picture_bytes()}, name="two")
    with pytest.raises(DataError, match="--overwrite"):
        convert(other, out)
    convert(other, out, overwrite=True)
    assert read_labels(str(out)) == ["b"]


def test_upper_case_suffixes_are_pictures(
    tmp_path: Path, write_folder: Folder, picture_bytes: Picture
) -> None:  # FC-04
    jpegs = {f"a/{name}": picture_bytes() for name in ("1.jpg", "2.JPG", "3.JPEG", "4.Jpeg")}
    summary = convert(write_folder(jpegs | {"a/5.PNG": picture_bytes("PNG")}), tmp_path / "out")
    assert summary.written == 5


def test_odd_names_come_back_the_very_same(
    tmp_path: Path, write_folder: Folder, picture_bytes: Picture, read_records: Reader
) -> None:  # FC-06
    classes = ["#1", "a,b", "it's", "red fox"]
    src = write_folder({f"{name}/my photo (1).jpg": picture_bytes() for name in classes})
    convert(src, tmp_path / "out")
    assert read_labels(str(tmp_path / "out")) == classes
    assert labels(read_records(tmp_path / "out")) == {
        f"{name}/my photo (1).jpg": (number, name) for number, name in enumerate(classes, start=1)
    }


def test_root_pictures_are_rejected_and_nested_ones_belong_to_the_top_folder(
    tmp_path: Path, write_folder: Folder, picture_bytes: Picture, read_records: Reader
) -> None:  # FC-08
    src = write_folder(dict.fromkeys(["x.jpg", "a/sub/1.jpg", "b/2.jpg"], picture_bytes()))
    with pytest.raises(DataError, match=r"1 of 3 .*x\.jpg: lies directly"):
        convert(src, tmp_path / "out")
    assert shards(tmp_path / "out") == []
    summary = convert(src, tmp_path / "out", skip_bad=True)
    assert (summary.found, summary.written, summary.rejected) == (3, 2, 1)
    assert labels(read_records(tmp_path / "out")) == {"a/sub/1.jpg": (1, "a"), "b/2.jpg": (2, "b")}
    with pytest.raises(DataError, match=r"no class folders found under .*, found 1 picture directly in it"):
        convert(src / "b", tmp_path / "other")


def test_same_file_names_in_several_folders_stay_apart(
    tmp_path: Path, write_folder: Folder, picture_bytes: Picture, read_records: Reader
) -> None:  # FC-10
    names = ["a/1.jpg", "b/1.jpg", "a/sub/1.jpg"]
    pictures = {name: picture_bytes(seed=seed) for seed, name in enumerate(names)}
    convert(write_folder(pictures), tmp_path / "out")
    records = by_filename(read_records(tmp_path / "out"))
    assert {name: record["image/encoded"][0] for name, record in records.items()} == pictures


def test_bad_pictures_fail_the_conversion_and_are_all_listed(
    tmp_path: Path, write_folder: Folder, picture_bytes: Picture
) -> None:  # FC-13, IM-01
    jpeg = picture_bytes(size=(64, 64))
    bad = {"a/cut.jpg": jpeg[: len(jpeg) * 6 // 10], "b/head.jpg": jpeg[:100]}
    src = write_folder({f"a/{number}.jpg": jpeg for number in range(3)} | bad)
    out = tmp_path / "out"
    with pytest.raises(DataError) as caught:
        convert(src, out)
    assert caught.value.exit_code == 2
    assert "2 of 5" in str(caught.value) and "--skip-bad" in str(caught.value)
    assert "a/cut.jpg" in str(caught.value) and "b/head.jpg" in str(caught.value)
    assert sorted(path.name for path in out.iterdir()) == ["rejected-train.tsv"]


def test_skip_bad_leaves_bad_pictures_out_and_counts_them(
    tmp_path: Path, write_folder: Folder, picture_bytes: Picture, read_records: Reader
) -> None:  # FC-13
    good = {f"a/{number}.jpg": picture_bytes(seed=number) for number in range(3)}
    src = write_folder(good | {"a/empty.jpg": b"", "b/tab\t.jpg": b"no picture"})
    out = tmp_path / "out"
    summary = convert(src, out, skip_bad=True)
    assert (summary.found, summary.written, summary.rejected) == (5, 3, 2)
    assert summary.rejected_file == str(out / "rejected-train.tsv")
    with (out / "rejected-train.tsv").open(newline="") as file:
        rows = list(csv.reader(file, "excel-tab"))
    assert rows[0] == ["filename", "reason"]
    assert [row[0] for row in rows[1:]] == ["a/empty.jpg", "b/tab\t.jpg"]
    assert "0 bytes" in rows[1][1]
    assert len(read_records(out)) == 3
    info = read_dataset_info(str(out))
    assert info is not None
    assert {name: info.options["train"][name] for name in ("found", "written", "rejected")} == {
        "found": 5,
        "written": 3,
        "rejected": 2,
    }
    assert "'b'" in summary.warnings[0]  # its only picture was bad
    # Once they are repaired, the old list is gone.
    (src / "a/empty.jpg").unlink()
    (src / "b/tab\t.jpg").unlink()
    assert convert(src, out, overwrite=True).rejected_file is None
    assert not (out / "rejected-train.tsv").exists()


@pytest.mark.parametrize("skip_bad", [False, True])
def test_a_folder_of_broken_pictures_only_writes_no_shard(
    tmp_path: Path, write_folder: Folder, skip_bad: bool
) -> None:  # FC-13
    src = write_folder({"a/1.jpg": b"x", "a/2.png": b""})
    with pytest.raises(DataError, match="all 2 pictures"):
        convert(src, tmp_path / "out", skip_bad=skip_bad)
    assert shards(tmp_path / "out") == []


def test_a_folder_without_pictures_is_an_error(tmp_path: Path, write_folder: Folder) -> None:
    with pytest.raises(DataError, match=r"No pictures found .*\(1 other"):
        convert(write_folder({"a/notes.txt": b"x", "b": None}), tmp_path / "out")


def test_a_failed_overwrite_keeps_the_old_shards(
    tmp_path: Path, write_folder: Folder, picture_bytes: Picture
) -> None:
    out = tmp_path / "out"
    src = write_folder({"a/1.jpg": picture_bytes()})
    convert(src, out)
    before = (out / "train-00000-of-00001").read_bytes()
    (src / "a" / "2.jpg").write_bytes(b"broken")
    with pytest.raises(DataError, match="unusable"):
        convert(src, out, overwrite=True)
    assert (out / "train-00000-of-00001").read_bytes() == before


def write_boxes(path: Path, rows: list[tuple[Any, ...]]) -> str:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("filename", "xmin", "ymin", "xmax", "ymax"), *rows])
    return str(path)


def test_boxes_are_stored_clipped_and_bad_ones_reject_their_picture(
    tmp_path: Path, write_folder: Folder, picture_bytes: Picture, read_records: Reader
) -> None:  # SC-06
    src = write_folder({f"a/{name}.jpg": picture_bytes() for name in ("near", "over", "pixels", "none")})
    boxes = write_boxes(
        tmp_path / "boxes.csv",
        [
            ("a/near.jpg", 0.5, 0, 1.0000001, 1),
            ("a/over.jpg", 0.5, 0, 1.15, 1),
            ("a/pixels.jpg", 12, 20, 200, 240),
            ("a/gone.jpg", 0, 0, 1, 1),
        ],
    )
    with pytest.raises(
        DataError, match=r"2 of 4 .*a/over\.jpg: .*1\.15.*a/pixels\.jpg: .*pixel coordinates\?"
    ):
        convert(src, tmp_path / "out", boxes_file=boxes)
    summary = convert(src, tmp_path / "out", boxes_file=boxes, skip_bad=True)
    records = by_filename(read_records(tmp_path / "out"))
    assert sorted(records) == ["a/near.jpg", "a/none.jpg"]
    assert records["a/near.jpg"]["image/object/bbox/xmin"] == [0.5]
    assert records["a/near.jpg"]["image/object/bbox/xmax"] == [1.0]
    assert records["a/near.jpg"]["image/object/bbox/label"] == [1]
    assert "'a/gone.jpg'" in summary.warnings[-1]


def test_a_turned_picture_is_upright_and_its_box_still_lies_on_the_red(
    tmp_path: Path, write_folder: Folder, read_records: Reader
) -> None:  # IM-11
    image = Image.new("RGB", (40, 20), "blue")
    image.paste("red", (0, 0, 20, 20))
    tags = Image.Exif()
    tags[0x0112] = 6  # a viewer turns it a quarter clockwise: the red half comes to lie on top
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", exif=tags.tobytes(), quality=95)
    src = write_folder({"a/phone.jpg": buffer.getvalue()})
    boxes = write_boxes(tmp_path / "boxes.csv", [("a/phone.jpg", 0, 0, 1, 0.5)])
    convert(src, tmp_path / "out", boxes_file=boxes)
    (record,) = read_records(tmp_path / "out")
    pixels = tf.io.decode_jpeg(record["image/encoded"][0]).numpy()
    assert pixels.shape == (40, 20, 3)
    assert (record["image/height"], record["image/width"]) == ([40], [20])
    bottom = round(record["image/object/bbox/ymax"][0] * 40)
    assert bottom == 20
    assert np.abs(pixels[: bottom - 2].mean(axis=(0, 1)) - (255, 0, 0)).max() < 25


def test_any_content_under_a_jpg_name_becomes_rgb_jpeg(
    tmp_path: Path, write_folder: Folder, picture_bytes: Picture, read_records: Reader
) -> None:  # IM-03, IM-05, IM-07
    buffers = {"cmyk": io.BytesIO(), "gif": io.BytesIO(), "png16": io.BytesIO()}
    Image.new("CMYK", (32, 32), (0, 255, 255, 0)).save(buffers["cmyk"], "JPEG")
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue", "lime")]
    frames[0].save(buffers["gif"], "GIF", save_all=True, append_images=frames[1:])
    Image.fromarray(np.full((16, 16), 32768, np.uint16)).save(buffers["png16"], "PNG")
    convert(write_folder({f"a/{n}.jpg": b.getvalue() for n, b in buffers.items()}), tmp_path / "out")
    means = {}
    for name, record in by_filename(read_records(tmp_path / "out")).items():
        pixels = tf.io.decode_jpeg(record["image/encoded"][0]).numpy()  # fails on anything but a JPEG
        assert pixels.shape == (record["image/height"][0], record["image/width"][0], 3)
        assert (record["image/colorspace"], record["image/channels"]) == ([b"RGB"], [3])
        means[name] = pixels.mean(axis=(0, 1))
    assert np.abs(means["a/cmyk.jpg"] - (255, 0, 0)).max() < 25
    assert np.abs(means["a/gif.jpg"] - (255, 0, 0)).max() < 10
    assert np.abs(means["a/png16.jpg"] - 128).max() <= 2


def test_the_order_mixes_classes_and_depends_on_the_seed_not_on_the_workers(
    tmp_path: Path, write_folder: Folder, picture_bytes: Picture, read_records: Reader
) -> None:
    src = write_folder({f"{c}/{i}.jpg": picture_bytes(seed=i) for c in "ab" for i in range(20)})
    runs = {"one": {"workers": 1}, "four": {"workers": 4}, "shards": {"shards": 3}, "seed": {"seed": 1}}
    orders = {}
    for name, options in runs.items():
        convert(src, tmp_path / name, **options)
        orders[name] = [record["image/filename"][0] for record in read_records(tmp_path / name)]
    assert orders["one"] == orders["four"] == orders["shards"] != orders["seed"]
    assert sorted(orders["one"]) == sorted(orders["seed"])
    assert Counter(name[:1] for name in orders["one"][:20])[b"a"] in range(5, 16)


def test_few_records_give_fewer_shards_but_asked_for_shards_are_exact(
    tmp_path: Path, write_folder: Folder, picture_bytes: Picture
) -> None:
    src = write_folder({f"a/{i}.jpg": picture_bytes() for i in range(3)})
    assert len(convert(src, tmp_path / "default").shards) == 3
    assert convert(src, tmp_path / "two", shards=2).shards == ["train-00000-of-00002", "train-00001-of-00002"]
    with pytest.raises(OptionError, match=r"shards is 4, .*1 to 3"):
        convert(src, tmp_path / "four", shards=4)
    assert not (tmp_path / "four").exists()


def test_progress_counts_every_picture(tmp_path: Path, write_folder: Folder, picture_bytes: Picture) -> None:
    src = write_folder({f"a/{i}.jpg": picture_bytes() for i in range(4)} | {"a/bad.jpg": b""})
    calls: list[tuple[int, int]] = []
    options = ConvertOptions("imagefolder", skip_bad=True)
    convert_dataset(options, str(src), str(tmp_path / "out"), lambda done, total: calls.append((done, total)))
    assert calls == [(1, 5), (2, 5), (3, 5), (4, 5), (5, 5)]


def test_ctrl_c_leaves_no_shard(tmp_path: Path, write_folder: Folder, picture_bytes: Picture) -> None:
    src = write_folder({f"a/{i}.jpg": picture_bytes() for i in range(8)})

    def interrupt(done: int, total: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        convert_dataset(ConvertOptions("imagefolder"), str(src), str(tmp_path / "out"), interrupt)
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("inside", ["", "out", "a/out"])
def test_writing_into_the_source_is_refused(
    write_folder: Folder, picture_bytes: Picture, inside: str
) -> None:
    src = write_folder({"a/1.jpg": picture_bytes()})
    with pytest.raises(DataError, match="which is read"):
        convert(src, src / inside)


def test_folder_names_with_brackets_and_stars_are_literal(
    tmp_path: Path, write_folder: Folder, picture_bytes: Picture, read_records: Reader
) -> None:  # CL-05
    src = write_folder({"a/1.jpg": picture_bytes()}, name="set [v1]*")
    write_folder({"b/2.jpg": picture_bytes()}, name="set v")
    convert(src, tmp_path / "out [v1]*")
    assert list(by_filename(read_records(tmp_path / "out [v1]*"))) == ["a/1.jpg"]


def test_remote_source_and_target_work(picture_bytes: Picture, read_records: Reader) -> None:  # CL-03
    root = "ram://convert-test"
    for name in ("src/a/1.jpg", "src/b/2.png", "src/b/bad.jpg"):
        tf.io.gfile.makedirs(f"{root}/{name}".rsplit("/", 1)[0])
        with tf.io.gfile.GFile(f"{root}/{name}", "wb") as file:
            file.write(b"bad" if "bad" in name else picture_bytes("PNG" if "png" in name else "JPEG"))
    summary = convert(f"{root}/src", f"{root}/out", skip_bad=True)
    assert (summary.found, summary.written, summary.rejected) == (3, 2, 1)
    assert labels(read_records(f"{root}/out")) == {"a/1.jpg": (1, "a"), "b/2.png": (2, "b")}
    assert tf.io.gfile.exists(f"{root}/out/rejected-train.tsv")
    assert not Path("ram:").exists()


def write_idx(folder: Path, prefix: str, pixels: np.ndarray, numbers: list[int]) -> None:  # type: ignore[type-arg]
    folder.mkdir(exist_ok=True)
    shape = b"".join(length.to_bytes(4, "big") for length in pixels.shape)
    (folder / f"{prefix}-images-idx3-ubyte").write_bytes(b"\0\0\x08\x03" + shape + pixels.tobytes())
    header = b"\0\0\x08\x01" + len(numbers).to_bytes(4, "big")
    (folder / f"{prefix}-labels-idx1-ubyte").write_bytes(header + bytes(numbers))


def test_idx_files_become_records_with_labels_from_1(tmp_path: Path, read_records: Reader) -> None:
    pixels = np.stack([np.full((28, 28), 20 * k, np.uint8) for k in range(10)])
    write_idx(tmp_path / "src", "train", pixels, list(range(10)))
    write_idx(tmp_path / "src", "t10k", pixels[:2], [7, 9])
    out = tmp_path / "out"
    for split in ("train", "test"):
        convert_dataset(ConvertOptions("idx", split=split), str(tmp_path / "src"), str(out))
    records = read_records(out)
    assert len(records) == 10
    for record in records:
        digit = record["image/class/label"][0] - 1
        assert record["image/class/text"] == [str(digit).encode()]
        decoded = tf.io.decode_jpeg(record["image/encoded"][0]).numpy().astype(int)
        assert decoded.shape == (28, 28, 3)
        assert np.abs(decoded - 20 * digit).max() <= 2
    assert sorted(r["image/class/label"][0] for r in read_records(out, "test")) == [8, 10]
    assert read_labels(str(out)) == list("0123456789")


def test_idx_class_names_come_from_the_labels_file_and_must_reach(
    tmp_path: Path, read_records: Reader
) -> None:
    write_idx(tmp_path / "src", "train", np.zeros((2, 4, 4), np.uint8), [0, 2])
    names = tmp_path / "names.txt"
    names.write_text("shirt\nboot\nbag\n")
    options = ConvertOptions("idx", labels_file=str(names))
    summary = convert_dataset(options, str(tmp_path / "src"), str(tmp_path / "out"))
    texts = sorted(
        (r["image/class/label"][0], r["image/class/text"][0]) for r in read_records(tmp_path / "out")
    )
    assert texts == [(1, b"shirt"), (3, b"bag")]
    assert "'boot'" in summary.warnings[0]
    names.write_text("shirt\nboot\n")
    with pytest.raises(DataError, match="value 2, but the class list has 2 names"):
        convert_dataset(options, str(tmp_path / "src"), str(tmp_path / "other"))


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("source", "zip"),
        ("split", "a/b"),
        ("split", ""),
        ("shards", 0),
        ("shards", -1),
        ("workers", 0),
        ("quality", 0),
        ("quality", 101),
        ("seed", -1),
        ("seed", 1.5),
    ],
)
def test_options_out_of_range_are_refused_with_the_value(option: str, value: object) -> None:
    with pytest.raises(OptionError) as caught:
        dataclasses.replace(ConvertOptions("imagefolder"), **{option: value})
    assert repr(value) in str(caught.value)


def test_the_summary_is_plain_json(tmp_path: Path, write_folder: Folder, picture_bytes: Picture) -> None:
    summary = convert(write_folder({"a/1.jpg": picture_bytes()}), tmp_path / "out")
    document = json.loads(json.dumps(summary.to_dict()))
    assert (document["found"], document["written"], document["classes"]) == (1, 1, ["a"])
