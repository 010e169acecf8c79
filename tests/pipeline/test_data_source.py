import subprocess
import sys

import pytest
import tensorflow as tf

from echoing.errors import DataError, RecordError
from pipeline.data_source import Shard, open_data_source
from pipeline.dataset_info import DatasetInfo, ShardInfo, write_dataset_info
from pipeline.labels import write_labels

RECORD_BYTES = 116  # a payload of 100 bytes and 16 bytes of framing


def write_shard(folder, index, total, records, compression="", split="train"):
    path = f"{folder}/{split}-{index:05d}-of-{total:05d}"
    with tf.io.TFRecordWriter(path, compression) as writer:
        for record in range(records):
            writer.write(bytes([index, record]) * 50)
    return path


def write_set(folder, counts, compression="", split="train"):
    return [write_shard(folder, i, len(counts), n, compression, split) for i, n in enumerate(counts)]


def record_set(folder, counts, split="train", added_bytes=0):
    """Writes `dataset.json` for plain shards of `write_set`."""
    shards = [
        ShardInfo(f"{split}-{i:05d}-of-{len(counts):05d}", n, n * RECORD_BYTES + added_bytes)
        for i, n in enumerate(counts)
    ]
    write_dataset_info(str(folder), DatasetInfo("generated", {split: tuple(shards)}))


def test_the_shards_their_records_and_the_class_names_are_found(tmp_path):
    paths = write_set(tmp_path, [2, 3])
    write_labels(str(tmp_path), ["cat", "dog"])
    source = open_data_source(str(tmp_path))
    assert source.shards == (Shard(paths[0], "", 2, 232), Shard(paths[1], "", 3, 348))
    assert [shard.name for shard in source.shards] == ["train-00000-of-00002", "train-00001-of-00002"]
    assert source.records == 5
    assert source.mean_record_bytes == 116.0
    assert source.labels == ("cat", "dog")
    assert source.num_classes == 3
    assert source.info is None
    assert source.warnings == ()


def test_without_class_names_the_number_of_classes_is_unknown(tmp_path):
    write_set(tmp_path, [1])
    source = open_data_source(str(tmp_path))
    assert source.labels is None
    assert source.num_classes is None


def test_another_split_is_read_by_its_name(tmp_path):
    write_set(tmp_path, [2, 3])
    write_set(tmp_path, [4], split="validation")
    assert open_data_source(str(tmp_path), "validation").records == 4


def test_foreign_files_do_not_change_the_count(tmp_path):
    write_set(tmp_path, [2, 3])
    for name in ("README.txt", "_SUCCESS", "train-00000-of-00002.idx", ".train-00000-of-00002.swp"):
        (tmp_path / name).write_text("not a record" if name == "README.txt" else "")
    (tmp_path / "tmp").mkdir()
    source = open_data_source(str(tmp_path))
    assert source.records == 5
    assert len(source.ignored) == 5


@pytest.mark.parametrize("empty", [0, 1, 2])
def test_an_empty_shard_among_good_ones_is_left_out_with_a_warning(tmp_path, empty):
    counts = [2, 2, 2]
    counts[empty] = 0
    paths = write_set(tmp_path, counts)
    source = open_data_source(str(tmp_path))
    assert source.records == 4
    assert [shard.path for shard in source.shards] == [path for i, path in enumerate(paths) if i != empty]
    assert source.warnings == (f"the shard train-0000{empty}-of-00003 is empty; not read.",)


def test_a_gzip_shard_without_records_is_empty_too(tmp_path):
    write_shard(tmp_path, 0, 2, 2)
    write_shard(tmp_path, 1, 2, 0, "GZIP")
    source = open_data_source(str(tmp_path))
    assert source.records == 2
    assert "train-00001-of-00002" in source.warnings[0]


def test_only_empty_shards_are_an_error(tmp_path):
    write_set(tmp_path, [0, 0, 0])
    with pytest.raises(DataError, match=r"no records in .*3 shards are empty \(train-00000-of-00003, "):
        open_data_source(str(tmp_path))


def test_a_shard_that_was_written_empty_needs_no_warning(tmp_path):
    write_set(tmp_path, [2, 0])
    record_set(tmp_path, [2, 0])
    source = open_data_source(str(tmp_path))
    assert source.records == 2
    assert source.warnings == ()


@pytest.mark.parametrize("record", [0, 1, 2])
@pytest.mark.parametrize("kept_bytes", [5, 60])
def test_a_truncated_shard_is_named_with_the_record(tmp_path, record, kept_bytes):
    paths = write_set(tmp_path, [3, 3])
    with open(paths[1], "r+b") as file:
        file.truncate(record * RECORD_BYTES + kept_bytes)
    with pytest.raises(RecordError, match=rf"train-00001-of-00002, record {record} .*ends inside the record"):
        open_data_source(str(tmp_path))


def test_a_cut_between_records_is_counted_as_it_is(tmp_path):
    paths = write_set(tmp_path, [3])
    with open(paths[0], "r+b") as file:
        file.truncate(2 * RECORD_BYTES)
    assert open_data_source(str(tmp_path)).records == 2


@pytest.mark.parametrize("kept_bytes", [0, 2 * RECORD_BYTES])
def test_a_cut_between_records_is_noticed_where_the_size_was_recorded(tmp_path, kept_bytes):
    paths = write_set(tmp_path, [3])
    record_set(tmp_path, [3])
    with open(paths[0], "r+b") as file:
        file.truncate(kept_bytes)
    with pytest.raises(
        DataError, match=rf"train-00000-of-00001 has {kept_bytes} bytes, .* 348 bytes with 3 records"
    ):
        open_data_source(str(tmp_path))


def test_recorded_counts_are_taken_without_reading_the_shards(tmp_path):
    (tmp_path / "train-00000-of-00001").write_bytes(bytes(700 * RECORD_BYTES))
    record_set(tmp_path, [700])
    assert open_data_source(str(tmp_path)).records == 700


def test_a_recorded_shard_that_is_gone_is_named(tmp_path):
    write_set(tmp_path, [2])
    record_set(tmp_path, [1, 1])
    with pytest.raises(DataError, match=r"dataset\.json lists train-00000-of-00002, train-00001-of-00002"):
        open_data_source(str(tmp_path))


def test_shards_of_a_split_that_is_not_recorded_are_counted(tmp_path):
    write_set(tmp_path, [2])
    write_set(tmp_path, [4], split="validation")
    record_set(tmp_path, [2])
    assert open_data_source(str(tmp_path), "validation").records == 4


def test_gzip_shards_under_plain_names_are_read_also_mixed_with_plain_ones(tmp_path):
    write_shard(tmp_path, 0, 3, 2, "GZIP")
    write_shard(tmp_path, 1, 3, 3)
    write_shard(tmp_path, 2, 3, 4, "GZIP")
    source = open_data_source(str(tmp_path))
    assert [shard.compression for shard in source.shards] == ["GZIP", "", "GZIP"]
    assert [shard.records for shard in source.shards] == [2, 3, 4]
    read = [
        sum(1 for _ in tf.data.TFRecordDataset(shard.path, compression_type=shard.compression))
        for shard in source.shards
    ]
    assert read == [2, 3, 4]


def test_without_counting_a_count_is_given_only_where_it_is_recorded(tmp_path):
    write_set(tmp_path, [2])
    source = open_data_source(str(tmp_path), count_records=False)
    assert source.records is None
    assert source.mean_record_bytes is None
    record_set(tmp_path, [2])
    assert open_data_source(str(tmp_path), count_records=False).records == 2


def test_a_pattern_reads_files_of_any_name(tmp_path):
    write_shard(tmp_path, 0, 1, 2)
    (tmp_path / "train-00000-of-00001").rename(tmp_path / "part_a.rec")
    source = open_data_source(str(tmp_path), file_pattern="*.rec")
    assert source.records == 2


def test_a_pattern_that_also_matches_a_foreign_file_names_it(tmp_path):
    write_set(tmp_path, [2, 3])
    (tmp_path / "train-notes.txt").write_text("these are the notes of the set\n")
    with pytest.raises(RecordError, match=r"train-notes\.txt, record 0 .*no TFRecord file"):
        open_data_source(str(tmp_path), file_pattern="train-*")


@pytest.mark.parametrize("name", ["set [v1]", "a*b"])
def test_exactly_the_named_folder_is_read(tmp_path, name):
    for folder, records in ((name, 2), ("set v", 5), ("aXb", 7)):
        (tmp_path / folder).mkdir()
        write_set(tmp_path / folder, [records])
    assert open_data_source(str(tmp_path / name)).records == 2


def test_a_damaged_class_list_is_said(tmp_path):
    write_set(tmp_path, [2])
    (tmp_path / "labels.txt").write_text("cat\ncat\n")
    with pytest.raises(DataError, match=r"labels\.txt"):
        open_data_source(str(tmp_path))


def test_a_remote_folder_works_the_same():
    folder = "ram://data_source_test/set"
    tf.io.gfile.makedirs(folder)
    write_set(folder, [2, 3], "GZIP")
    write_labels(folder, ["cat"])
    source = open_data_source(folder)
    assert source.records == 5
    assert source.shards[0].path == f"{folder}/train-00000-of-00002"
    assert source.num_classes == 2
    with pytest.raises(DataError, match="does not exist"):
        open_data_source("ram://data_source_test/typo")


def test_a_local_folder_is_opened_without_tensorflow(tmp_path):
    write_shard(tmp_path, 0, 1, 3, "GZIP")
    code = (
        "import sys; from pipeline.data_source import open_data_source; "
        f"print(open_data_source({str(tmp_path)!r}).records, 'tensorflow' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["3", "False"]
