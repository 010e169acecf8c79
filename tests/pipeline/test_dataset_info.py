import json

import pytest

from echoing.errors import DataError
from pipeline.dataset_info import (
    DatasetInfo,
    ShardInfo,
    read_dataset_info,
    with_split,
    write_dataset_info,
)

TRAIN = (ShardInfo("train-00000-of-00002", 3, 300), ShardInfo("train-00001-of-00002", 0, 0))


def test_an_absent_file_reads_as_none(tmp_path):
    assert read_dataset_info(str(tmp_path)) is None


def test_what_was_written_is_read_back(tmp_path):
    info = DatasetInfo("generated", {"train": TRAIN}, {"seed": 7, "classes": ["a,b", "née"], "ratio": 0.5})
    write_dataset_info(str(tmp_path), info)
    assert read_dataset_info(str(tmp_path)) == info
    assert [path.name for path in tmp_path.iterdir()] == ["dataset.json"]


def test_the_file_is_versioned_json(tmp_path):
    write_dataset_info(str(tmp_path), DatasetInfo("idx", {"train": TRAIN}))
    assert json.loads((tmp_path / "dataset.json").read_text()) == {
        "schema": "pipebench.dataset",
        "schema_version": 1,
        "source": "idx",
        "splits": {
            "train": [
                {"name": "train-00000-of-00002", "records": 3, "size_bytes": 300},
                {"name": "train-00001-of-00002", "records": 0, "size_bytes": 0},
            ]
        },
        "options": {},
    }


def test_with_split_adds_or_replaces_one_split_and_keeps_the_others():
    info = DatasetInfo("idx", {"train": TRAIN}, {"seed": 1})
    validation = ShardInfo("validation-00000-of-00001", 2, 20)
    both = with_split(info, "validation", [validation])
    assert both.splits == {"train": TRAIN, "validation": (validation,)}
    assert both.options == {"seed": 1}
    assert with_split(both, "train", TRAIN[:1]).splits == {"train": TRAIN[:1], "validation": (validation,)}
    assert info.splits == {"train": TRAIN}


def test_find_shard_looks_in_every_split():
    info = with_split(DatasetInfo("idx", {"train": TRAIN}), "test", [ShardInfo("test-00000-of-00001", 2, 20)])
    assert info.find_shard("test-00000-of-00001") == ShardInfo("test-00000-of-00001", 2, 20)
    assert info.find_shard("other") is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "not JSON"),
        ('{"schema": "pipebench.dataset", "schema_ver', "not JSON"),
        ("[]", "no schema"),
        ('{"schema": "pipebench.run", "schema_version": 1}', "no schema"),
        ('{"schema": "pipebench.dataset", "schema_version": 2}', "schema version 2"),
        ('{"schema": "pipebench.dataset", "schema_version": 1}', "does not fit"),
    ],
)
def test_a_damaged_file_is_named(tmp_path, content, message):
    (tmp_path / "dataset.json").write_text(content)
    with pytest.raises(DataError, match=message) as caught:
        read_dataset_info(str(tmp_path))
    assert "dataset.json" in str(caught.value)


@pytest.mark.parametrize("records", [-1, 1.5, "3", None, True])
def test_a_count_that_is_no_count_is_refused(tmp_path, records):
    document = {
        "schema": "pipebench.dataset",
        "schema_version": 1,
        "source": "idx",
        "splits": {"train": [{"name": "train-00000-of-00001", "records": records, "size_bytes": 1}]},
        "options": {},
    }
    (tmp_path / "dataset.json").write_text(json.dumps(document))
    with pytest.raises(DataError, match="does not fit"):
        read_dataset_info(str(tmp_path))


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "dataset.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="not JSON"):
        read_dataset_info(str(tmp_path))


def test_a_remote_folder_works_the_same():
    info = DatasetInfo("idx", {"train": TRAIN}, {"seed": 1})
    write_dataset_info("ram://dataset_info_test", info)
    assert read_dataset_info("ram://dataset_info_test") == info
