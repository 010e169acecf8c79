import gzip
import io
import json
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from echoing.errors import DataError, OptionError
from pipeline import schema
from pipeline.dataset_info import DatasetInfo, ShardInfo, write_dataset_info
from pipeline.datasets.check import check_dataset
from pipeline.labels import write_labels


def jpeg(seed, height=32, width=48):
    pixels = np.random.default_rng(seed).integers(0, 256, (4, 4, 3), np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).resize((width, height)).save(buffer, "JPEG", quality=90)
    return buffer.getvalue()


def record(seed, label=1, encoded=None, height=32, width=48, **fields):
    encoded = jpeg(seed, height, width) if encoded is None else encoded
    return schema.serialize(schema.ImageRecord(encoded, label, "cat", height, width, f"{seed}.jpg", **fields))


def other_tool_record():
    example = tf.train.Example()
    example.features.feature["image_raw"].bytes_list.value.append(b"x")
    example.features.feature["label"].int64_list.value.append(1)
    return example.SerializeToString()


def write_shard(folder, name, payloads, compression=""):
    with tf.io.TFRecordWriter(f"{folder}/{name}", compression) as writer:
        for payload in payloads:
            writer.write(payload)


def write_set(folder, shards, split="train"):
    for index, payloads in enumerate(shards):
        write_shard(folder, f"{split}-{index:05d}-of-{len(shards):05d}", payloads)


def found(report):
    """Returns severity, kind, shard and record of every finding."""
    return [(f.severity, f.kind, f.shard, f.record_index) for f in report.findings]


def offsets(payloads):
    """Returns where each record of a shard begins, and where the last one ends."""
    return [sum(len(p) + 16 for p in payloads[:count]) for count in range(len(payloads) + 1)]


def test_a_good_set_is_counted_and_has_no_findings(tmp_path):
    payloads = [record(0), record(1, label=2, height=64, width=80), record(2, label=2)]
    write_set(tmp_path, [payloads[:2], payloads[2:]])
    write_labels(str(tmp_path), ["cat", "dog"])
    report = check_dataset(str(tmp_path))
    assert report.findings == ()
    assert report.is_good
    assert report.records == 3
    assert [(s.name, s.split, s.records) for s in report.shards] == [
        ("train-00000-of-00002", "train", 2),
        ("train-00001-of-00002", "train", 1),
    ]
    assert report.label_counts == {1: 1, 2: 2}
    assert (report.label_range, report.num_classes) == ((1, 2), 3)
    assert report.image_sizes == {(32, 48): 2, (64, 80): 1}
    assert report.size_histogram() == [(32, 63, 2), (64, 127, 1)]
    lengths = [len(payload) for payload in payloads]
    assert (report.min_record_bytes, report.max_record_bytes) == (min(lengths), max(lengths))
    assert report.mean_record_bytes == sum(lengths) / 3


def test_the_report_is_json(tmp_path):
    write_set(tmp_path, [[record(0, label=1), record(1, label=7)]])
    write_labels(str(tmp_path), ["cat", "#1, red fox"])
    document = json.loads(json.dumps(check_dataset(str(tmp_path)).to_dict(), allow_nan=False))
    assert document["good"] is False
    assert document["splits"] == {"train": 2}
    assert document["labels"]["found"] == [1, 7]
    assert document["labels"]["allowed"] == [0, 2]
    assert document["labels"]["histogram"] == [
        {"label": 1, "name": "cat", "records": 1},
        {"label": 7, "name": "", "records": 1},
    ]
    assert document["image_sizes"]["mean_height"] == 32.0
    assert document["image_sizes"]["by_longer_side"] == [{"from": 32, "to": 63, "images": 2}]
    assert [problem["record_index"] for problem in document["problems"]] == [1]
    assert [warning["kind"] for warning in document["warnings"]] == ["class without records"]
    assert document["notes"] == []


def test_all_splits_are_checked_or_the_one_that_is_named(tmp_path):
    write_set(tmp_path, [[record(0), record(1)]])
    write_set(tmp_path, [[record(2)]], split="validation")
    assert check_dataset(str(tmp_path)).records_by_split() == {"train": 2, "validation": 1}
    assert check_dataset(str(tmp_path), split="validation").records_by_split() == {"validation": 1}
    by_pattern = check_dataset(str(tmp_path), file_pattern="*")
    assert by_pattern.records_by_split() == {"train": 2, "validation": 1}


@pytest.mark.parametrize("position", [0, 1, 2])
@pytest.mark.parametrize("place", ["header", "payload", "footer"])
def test_a_truncated_shard_is_named_and_the_other_shards_are_read(tmp_path, position, place):
    payloads = [record(seed) for seed in range(3)]
    write_set(tmp_path, [[record(10)], payloads, [record(11)]])
    starts = offsets(payloads)
    cut = {
        "header": starts[position] + 6,
        "payload": starts[position] + 40,
        "footer": starts[position + 1] - 2,
    }
    with open(tmp_path / "train-00001-of-00003", "r+b") as file:
        file.truncate(cut[place])
    report = check_dataset(str(tmp_path))
    assert found(report) == [("problem", "truncated shard", "train-00001-of-00003", position)]
    assert report.findings[0].offset_bytes == starts[position]
    assert [shard.records for shard in report.shards] == [1, position, 1]


def test_a_cut_between_two_records_is_counted_and_only_a_recorded_count_tells(tmp_path):
    payloads = [record(seed) for seed in range(3)]
    write_set(tmp_path, [payloads])
    name = "train-00000-of-00001"
    starts = offsets(payloads)
    with open(tmp_path / name, "r+b") as file:
        file.truncate(starts[2])
    report = check_dataset(str(tmp_path))
    assert (report.records, report.findings) == (2, ())
    write_dataset_info(str(tmp_path), DatasetInfo("generated", {"train": (ShardInfo(name, 3, starts[3]),)}))
    report = check_dataset(str(tmp_path))
    assert found(report) == [("problem", "count differs", name, None)]
    assert report.findings[0].text == "2 records could be read, but dataset.json recorded 3"


def test_a_shard_of_another_size_than_recorded_is_named(tmp_path):
    write_set(tmp_path, [[record(0)]])
    shard = ShardInfo("train-00000-of-00001", 1, 5)
    write_dataset_info(str(tmp_path), DatasetInfo("generated", {"train": (shard,)}))
    assert found(check_dataset(str(tmp_path))) == [("problem", "size differs", shard.name, None)]


def test_a_split_that_is_recorded_and_gone_is_named(tmp_path):
    write_set(tmp_path, [[record(0)]])
    size = (tmp_path / "train-00000-of-00001").stat().st_size
    splits = {
        "train": (ShardInfo("train-00000-of-00001", 1, size),),
        "validation": (ShardInfo("validation-00000-of-00001", 4, 400),),
    }
    write_dataset_info(str(tmp_path), DatasetInfo("generated", splits))
    lost = [("problem", "lost shard", "validation-00000-of-00001", None)]
    assert found(check_dataset(str(tmp_path))) == lost
    assert found(check_dataset(str(tmp_path), split="train")) == []


@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_damaged_payload_is_named_and_the_records_behind_it_are_read(tmp_path, position):
    payloads = [record(seed) for seed in range(3)]
    write_set(tmp_path, [payloads])
    content = bytearray((tmp_path / "train-00000-of-00001").read_bytes())
    content[offsets(payloads)[position] + 200] ^= 4
    (tmp_path / "train-00000-of-00001").write_bytes(bytes(content))
    report = check_dataset(str(tmp_path))
    assert found(report) == [("problem", "unreadable record", "train-00000-of-00001", position)]
    assert "checksum" in report.findings[0].text
    assert report.records == 2


def test_a_damaged_length_is_named_and_what_follows_is_said_to_be_lost(tmp_path):
    payloads = [record(seed) for seed in range(3)]
    write_set(tmp_path, [payloads])
    content = bytearray((tmp_path / "train-00000-of-00001").read_bytes())
    content[offsets(payloads)[1]] ^= 4
    (tmp_path / "train-00000-of-00001").write_bytes(bytes(content))
    report = check_dataset(str(tmp_path))
    assert found(report) == [("problem", "unreadable record", "train-00000-of-00001", 1)]
    assert "rest of the shard cannot be read" in report.findings[0].text
    assert report.records == 1


def test_an_empty_shard_is_a_warning_and_only_empty_shards_are_an_error(tmp_path):
    write_set(tmp_path, [[record(0), record(1)], [], [record(2), record(3)]])
    report = check_dataset(str(tmp_path))
    assert found(report) == [("warning", "empty shard", "train-00001-of-00003", None)]
    assert report.is_good
    assert report.records == 4
    for name in ("train-00000-of-00003", "train-00002-of-00003"):
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(DataError, match="no records"):
        check_dataset(str(tmp_path))


def test_gzip_shards_without_records_are_an_error_too(tmp_path):
    write_shard(tmp_path, "train-00000-of-00001", [], "GZIP")
    with pytest.raises(DataError, match="no records"):
        check_dataset(str(tmp_path))


def test_gzip_shards_mixed_with_plain_ones_are_read(tmp_path):
    write_shard(tmp_path, "train-00000-of-00002", [record(0), record(1)], "GZIP")
    write_shard(tmp_path, "train-00001-of-00002", [record(2)])
    report = check_dataset(str(tmp_path))
    assert report.findings == ()
    assert [(s.compression, s.records) for s in report.shards] == [("GZIP", 2), ("", 1)]


def test_a_gzip_shard_that_ends_early_is_truncated(tmp_path):
    write_set(tmp_path, [[record(seed) for seed in range(3)]])
    path = tmp_path / "train-00000-of-00001"
    path.write_bytes(gzip.compress(path.read_bytes())[:-300])
    report = check_dataset(str(tmp_path))
    assert found(report) == [("problem", "truncated shard", path.name, 2)]
    assert "corrupted" not in str(report.findings[0])


def test_a_file_that_is_no_tfrecord_file_is_one_problem_among_good_shards(tmp_path):
    write_set(tmp_path, [[record(0)], [record(1)], [record(2)]])
    write_shard(tmp_path, "train-00001-of-00003", [record(1)], "ZLIB")
    (tmp_path / "train-00002-of-00003").write_text("a list of names, not a TFRecord file\n")
    report = check_dataset(str(tmp_path))
    assert found(report) == [
        ("problem", "unreadable shard", "train-00001-of-00003", None),
        ("problem", "unreadable record", "train-00002-of-00003", 0),
    ]
    assert report.records == 1


def test_foreign_files_are_ignored_and_listed(tmp_path):
    write_set(tmp_path, [[record(0)], [record(1)]])
    for name in ("README.txt", "_SUCCESS", "train-00000-of-00002.idx", ".train-00000-of-00002.swp"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "tmp").mkdir()
    report = check_dataset(str(tmp_path))
    assert report.records == 2
    assert report.ignored == (
        ".train-00000-of-00002.swp",
        "README.txt",
        "_SUCCESS",
        "tmp/",
        "train-00000-of-00002.idx",
    )


@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_record_of_another_tool_is_named_with_the_keys_it_has(tmp_path, position):
    payloads = [record(0), record(1)]
    payloads.insert(position, other_tool_record())
    write_set(tmp_path, [payloads])
    report = check_dataset(str(tmp_path))
    assert found(report) == [("problem", "missing key", "train-00000-of-00001", position)]
    assert report.findings[0].text == (
        "missing image/encoded, image/class/label; keys found: image_raw, label"
    )


def test_labels_out_of_range_are_listed_with_the_range_found_and_allowed(tmp_path):
    write_set(tmp_path, [[record(seed, label) for seed, label in enumerate([0, 3, 4, -1])]])
    report = check_dataset(str(tmp_path), num_classes=4)
    assert found(report) == [
        ("problem", "label out of range", "train-00000-of-00001", 2),
        ("problem", "label out of range", "train-00000-of-00001", 3),
    ]
    assert [finding.text for finding in report.findings] == [
        "the label is 4; allowed: 0..3",
        "the label is -1; allowed: 0..3",
    ]
    assert report.label_range == (-1, 4)


def test_without_num_classes_the_class_names_tell_the_range(tmp_path):
    write_set(tmp_path, [[record(0, label=0), record(1, label=2), record(2, label=3)]])
    write_labels(str(tmp_path), ["cat", "dog"])
    report = check_dataset(str(tmp_path))
    assert [f.record_index for f in report.of_severity("problem")] == [2]
    assert found(check_dataset(str(tmp_path), num_classes=4))[0][0] == "warning"


def test_classes_without_a_record_are_named_by_split(tmp_path):
    write_set(tmp_path, [[record(0, label=1), record(1, label=2), record(2, label=3)]])
    write_set(tmp_path, [[record(3, label=1), record(4, label=3)]], split="validation")
    write_labels(str(tmp_path), ["a", "b", "c"])
    report = check_dataset(str(tmp_path))
    assert [str(finding) for finding in report.findings] == [
        "1 of 3 classes have no record in the split validation: b (2)"
    ]
    assert report.is_good


def test_a_truncated_jpeg_in_the_last_record_of_the_last_shard_is_named(tmp_path):
    whole = jpeg(5, 64, 64)
    cut = record(5, encoded=whole[: len(whole) * 6 // 10], height=64, width=64)
    write_set(tmp_path, [[record(0)], [record(1)], [record(2), record(3), cut]])
    report = check_dataset(str(tmp_path))
    assert found(report) == [("problem", "undecodable image", "train-00002-of-00003", 2)]
    assert "5.jpg" in report.findings[0].text


def test_a_bad_box_is_named(tmp_path):
    pixels = record(1, boxes=[schema.Box(20, 12, 240, 200)])
    write_set(tmp_path, [[record(0), pixels, record(2)]])
    report = check_dataset(str(tmp_path))
    assert found(report) == [("problem", "bad box", "train-00000-of-00001", 1)]
    assert "pixel coordinates?" in report.findings[0].text


def test_duplicates_are_named_in_pairs_also_between_shards_and_splits(tmp_path):
    write_set(tmp_path, [[record(0), record(1), record(0)], [record(1)]])
    write_set(tmp_path, [[record(2), record(0, label=2)]], split="validation")
    report = check_dataset(str(tmp_path))
    assert found(report) == [
        ("problem", "duplicate", "train-00000-of-00002", 2),
        ("problem", "duplicate", "train-00001-of-00002", 0),
        ("problem", "duplicate", "validation-00000-of-00001", 1),
    ]
    assert [finding.text for finding in report.findings] == [
        "the image (0.jpg) is that of train-00000-of-00002, record 0 (0.jpg)",
        "the image (1.jpg) is that of train-00000-of-00002, record 1 (1.jpg)",
        "the image (0.jpg) is that of train-00000-of-00002, record 0 (0.jpg), under another label: "
        "2 here, 1 there",
    ]


def test_notes_alone_leave_the_set_good(tmp_path):
    buffer = io.BytesIO()
    Image.new("L", (48, 32), 90).save(buffer, "JPEG")
    write_set(tmp_path, [[record(0, encoded=buffer.getvalue())]])
    report = check_dataset(str(tmp_path))
    assert found(report) == [("note", "not an RGB JPEG", "train-00000-of-00001", 0)]
    assert report.is_good


def test_findings_come_in_the_order_of_shards_and_records(tmp_path):
    write_set(tmp_path, [[record(10 * shard + i, label=-1) for i in range(5)] for shard in range(6)])
    report = check_dataset(str(tmp_path))
    assert [(f.shard, f.record_index) for f in report.findings] == [
        (f"train-{shard:05d}-of-00006", i) for shard in range(6) for i in range(5)
    ]


def test_progress_rises_to_the_size_of_the_shards(tmp_path):
    write_set(tmp_path, [[record(0), record(1)], [record(2)]])
    write_shard(tmp_path, "train-00001-of-00002", [record(2), record(3)], "GZIP")
    total = sum(path.stat().st_size for path in tmp_path.iterdir())
    calls = []
    check_dataset(str(tmp_path), progress=lambda done, of: calls.append((done, of)))
    assert calls[-1] == (total, total)
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)


def test_an_error_in_the_progress_callback_ends_the_check(tmp_path):
    write_set(tmp_path, [[record(seed)] for seed in range(4)])

    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check_dataset(str(tmp_path), progress=interrupt)


@pytest.mark.parametrize("num_classes", [0, -1, 2.5, True])
def test_a_number_of_classes_that_is_none_is_refused(tmp_path, num_classes):
    with pytest.raises(OptionError, match="num_classes"):
        check_dataset(str(tmp_path), num_classes=num_classes)


def test_a_missing_an_empty_and_an_other_folder_are_three_different_errors(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    write_set(tmp_path / "other", [[record(0)]], split="validation")
    with pytest.raises(DataError, match="does not exist"):
        check_dataset(str(tmp_path / "typo"))
    with pytest.raises(DataError, match="is empty"):
        check_dataset(str(tmp_path / "empty"))
    with pytest.raises(DataError, match="other splits: 'validation'"):
        check_dataset(str(tmp_path / "other"), split="train")


def test_a_missing_folder_is_said_without_waiting_for_tensorflow(tmp_path):
    code = (
        "import sys\n"
        "from pipeline.datasets.check import check_dataset\n"
        f"try: check_dataset({str(tmp_path / 'typo')!r})\n"
        "except Exception as error: print(type(error).__name__, 'tensorflow' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["DataError", "False"]


@pytest.mark.parametrize("name", ["set [v1]", "a*b"])
def test_exactly_the_named_folder_is_checked(tmp_path, name):
    for folder, count in ((name, 1), ("set v", 2), ("aXb", 3)):
        (tmp_path / folder).mkdir()
        write_set(tmp_path / folder, [[record(seed) for seed in range(count)]])
    assert check_dataset(str(tmp_path / name)).records == 1


def test_a_remote_folder_works_the_same():
    folder = "ram://check_test/set"
    tf.io.gfile.makedirs(folder)
    write_set(folder, [[record(0)], [record(1), other_tool_record()]])
    write_labels(folder, ["cat"])
    report = check_dataset(folder)
    assert found(report) == [("problem", "missing key", "train-00001-of-00002", 1)]
    assert report.records == 3
