from pathlib import Path

import pytest

from echoing.errors import DataError, OptionError
from pipeline.datasets.split_files import check_split, refuse_existing, shard_splits


@pytest.mark.parametrize("split", ["train", "validation", "val_2", "my-split", "v1.0"])
def test_usual_names_are_splits(split: str) -> None:
    assert check_split(split) == split


@pytest.mark.parametrize("split", ["", " ", "a/b", "../x", ".hidden", "-x", "tr*in", "a b", None, 3])
def test_other_names_are_refused_with_the_value(split: object) -> None:
    with pytest.raises(OptionError, match=r"split is ") as caught:
        check_split(split)
    assert repr(split) in str(caught.value)


def test_shards_are_grouped_by_split_and_other_files_left_out(tmp_path: Path) -> None:
    names = ["train-00000-of-00002", "train-00001-of-00002", "my-split-00000-of-00001.tfrecord"]
    others = ["train-00000.partial", ".train-00000-of-00002", "labels.txt", "train-00000-of-00002.idx"]
    for name in names + others:
        (tmp_path / name).touch()
    assert shard_splits(str(tmp_path)) == {"train": names[:2], "my-split": names[2:]}
    assert shard_splits(str(tmp_path / "none")) == {}


def test_existing_shards_are_refused_but_for_overwrite(tmp_path: Path) -> None:
    (tmp_path / "train-00000-of-00001").touch()
    with pytest.raises(DataError, match=r"already holds 1 shard of split 'train'.*--overwrite"):
        refuse_existing(str(tmp_path), "train", overwrite=False)
    assert refuse_existing(str(tmp_path), "train", overwrite=True) == ["train-00000-of-00001"]
    assert refuse_existing(str(tmp_path), "test", overwrite=False) == []


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="is a file"):
        refuse_existing(str(tmp_path / "file"), "train", overwrite=True)
