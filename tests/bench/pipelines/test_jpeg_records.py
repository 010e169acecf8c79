import gzip
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf

from bench.pipelines import jpeg_records
from bench.pipelines.jpeg_records import JpegRecords, find_images, plain_shards
from bench.pipelines.variants import Task
from echoing.errors import DataError
from pipeline import schema
from pipeline.preprocessing import crop


def images_and_labels(folder):
    found = []
    for path in sorted(Path(folder).glob("train-*")):
        for record in tf.data.TFRecordDataset(str(path)):
            feature = tf.train.Example.FromString(record.numpy()).features.feature
            found.append(
                (
                    feature["image/encoded"].bytes_list.value[0],
                    feature["image/class/label"].int64_list.value[0],
                )
            )
    return found


def test_what_is_written_again_here_is_what_the_pipeline_uses():
    assert (jpeg_records.ENCODED, jpeg_records.LABEL) == (schema.ENCODED, schema.LABEL)
    assert jpeg_records.AREA_RANGE == crop.AREA_RANGE
    assert jpeg_records.ASPECT_RATIO_RANGE == crop.ASPECT_RATIO_RANGE


def test_images_are_found_where_they_lie(small_data):
    found = find_images(small_data, "train", 100)
    read = []
    for one in found:
        content = Path(one.shard).read_bytes()
        read.append((content[one.offset_bytes : one.offset_bytes + one.length_bytes], one.label))
    assert read == images_and_labels(small_data)
    assert len(read) == 8


def test_no_more_are_looked_for_than_asked(small_data):
    assert find_images(small_data, "train", 3) == find_images(small_data, "train", 100)[:3]


def test_compressed_shards_are_refused(small_data, tmp_path):
    for path in Path(small_data).glob("train-*"):
        (tmp_path / path.name).write_bytes(gzip.compress(path.read_bytes()))
    with pytest.raises(DataError, match="compressed shards"):
        plain_shards(str(tmp_path), "train")


def test_remote_folder_is_refused():
    with pytest.raises(DataError, match="gs://bucket/data is no local folder"):
        plain_shards("gs://bucket/data", "train")


def test_damaged_record_is_named(small_data, tmp_path):
    for path in Path(small_data).glob("train-*"):
        content = bytearray(path.read_bytes())
        content[200] ^= 1
        (tmp_path / path.name).write_bytes(content)
    with pytest.raises(DataError, match=r"train-00000-of-00002, record 0: .* checksum"):
        find_images(str(tmp_path), "train", 100)


def test_record_without_an_image_is_named(put_shards, make_record, tmp_path):
    example = tf.train.Example()
    example.features.feature["image/class/label"].int64_list.value.append(1)
    put_shards(tmp_path / "data", [[make_record(0), example.SerializeToString()]])
    with pytest.raises(DataError, match="record 1: it has 0 values of image/encoded and 1 of"):
        find_images(str(tmp_path / "data"), "train", 100)


PROGRAM = """
import sys
from bench.pipelines.jpeg_records import JpegRecords
from bench.pipelines.variants import Task
if __name__ == "__main__":
    records = JpegRecords(Task(sys.argv[1]))
    print(len(records), [label for _, label in map(records.__getitem__, range(8))], records[7][0][:2])
    print("tensorflow" in sys.modules)
"""


@pytest.mark.slow
def test_images_are_read_in_any_order_without_tensorflow_in_the_process(small_data, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    words = [sys.executable, str(tmp_path / "program.py"), small_data]
    lines = subprocess.check_output(words, text=True, timeout=120).splitlines()
    labels = [label for _, label in images_and_labels(small_data)]
    assert lines == [f"8 {labels} {bytes([0xFF, 0xD8])!r}", "False"]


@pytest.mark.slow
def test_damage_reaches_the_process_that_asked(small_data, tmp_path):
    # From the process that finds the images, where errors with more than a message are lost.
    for path in Path(small_data).glob("train-*"):
        content = bytearray(path.read_bytes())
        content[200] ^= 1
        (tmp_path / path.name).write_bytes(content)
    with pytest.raises(DataError, match="checksum"):
        JpegRecords(Task(str(tmp_path)))
