import threading

import pytest

from echoing.errors import DataError, OptionError
from pipeline.shard_files import ShardName, find_splits, in_threads, select_shards

TRAIN = ["train-00000-of-00002", "train-00001-of-00002"]


def fill(folder, names):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_bytes(b"x")
    return str(folder)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("train-00000-of-00008", ("train", 0, 8, "")),
        ("my-val_set-00007-of-00008.tfrecord", ("my-val_set", 7, 8, ".tfrecord")),
        ("train-123456-of-200000.tfrecords", ("train", 123456, 200000, ".tfrecords")),
    ],
)
def test_a_shard_name_has_a_split_an_index_a_total_and_perhaps_a_suffix(name, parts):
    assert ShardName.parse(name) == ShardName(*parts)


@pytest.mark.parametrize(
    "name",
    [
        "README.txt",
        "train",
        "train-00000-of-00002.idx",
        ".train-00000-of-00002",
        ".train-00000-of-00002.swp",
        "train-00000-of-00002.partial",
        "train-0-of-2",
        "-00000-of-00002",
        "train-00002-of-00002",
        "train-00000-of-00000",
        "train-00000-of-00002\n",
    ],
)
def test_other_names_are_no_shard_names(name):
    assert ShardName.parse(name) is None


def test_foreign_files_and_folders_are_ignored_and_listed(tmp_path):
    folder = fill(
        tmp_path,
        [
            *TRAIN,
            "README.txt",
            "_SUCCESS",
            "train-00000-of-00002.idx",
            ".train-00000-of-00002.swp",
            "validation-00000-of-00001",
            "labels.txt",
            "dataset.json",
        ],
    )
    (tmp_path / "tmp").mkdir()
    selection = select_shards(folder, "train")
    assert selection.names == tuple(TRAIN)
    assert selection.ignored == (
        ".train-00000-of-00002.swp",
        "README.txt",
        "_SUCCESS",
        "tmp/",
        "train-00000-of-00002.idx",
    )


def test_a_folder_that_is_named_like_a_shard_is_a_missing_shard(tmp_path):
    folder = fill(tmp_path, TRAIN[:1])
    (tmp_path / TRAIN[1]).mkdir()
    with pytest.raises(DataError, match=r"1 of 2 shards .* missing .*train-00001-of-00002"):
        select_shards(folder, "train")


def test_a_split_whose_name_starts_like_another_is_not_mixed_up(tmp_path):
    folder = fill(tmp_path, [*TRAIN, "train-small-00000-of-00001"])
    assert select_shards(folder, "train").names == tuple(TRAIN)
    assert select_shards(folder, "train-small").names == ("train-small-00000-of-00001",)
    assert find_splits(folder) == ("train", "train-small")


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_missing_members_are_named(tmp_path, missing):
    names = [f"train-0000{index}-of-00003" for index in range(3)]
    folder = fill(tmp_path, [name for name in names if name != names[missing]])
    with pytest.raises(DataError, match=rf"1 of 3 shards .*: {names[missing]}\."):
        select_shards(folder, "train")


def test_many_missing_members_are_counted(tmp_path):
    folder = fill(tmp_path, ["train-00000-of-01024"])
    with pytest.raises(DataError, match=r"1023 of 1024 .*train-00005-of-01024 and 1018 more"):
        select_shards(folder, "train")


@pytest.mark.parametrize("other", ["train-00000-of-00003", "train-00000-of-00002.tfrecord"])
def test_two_sets_of_one_split_are_refused_and_both_named(tmp_path, other):
    folder = fill(tmp_path, [*TRAIN, other])
    with pytest.raises(DataError, match="more than one set") as caught:
        select_shards(folder, "train")
    assert "train-*-of-00002 (2 files)" in str(caught.value)
    assert other.replace("00000", "*", 1) in str(caught.value)


def test_a_missing_an_empty_and_an_other_folder_are_three_different_errors(tmp_path):
    fill(
        tmp_path / "imagenet",
        ["validation-00000-of-00002", "validation-00001-of-00002", "test-00000-of-00001"],
    )
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"imagenett does not exist\. Beside it there is imagenet\."):
        select_shards(str(tmp_path / "imagenett"), "train")
    with pytest.raises(DataError, match="empty is empty"):
        select_shards(str(tmp_path / "empty"), "train")
    with pytest.raises(DataError) as caught:
        select_shards(str(tmp_path / "imagenet"), "train")
    assert "names like train-00000-of-00008" in str(caught.value)
    assert "'test' (1 shards), 'validation' (2 shards)" in str(caught.value)


def test_a_missing_parent_is_said(tmp_path):
    with pytest.raises(DataError, match=r"Nor does .*nowhere\."):
        select_shards(str(tmp_path / "nowhere" / "data"), "train")


def test_a_folder_of_other_files_says_what_it_holds(tmp_path):
    folder = fill(tmp_path, ["cat.jpg", "dog.jpg"])
    with pytest.raises(DataError, match=r"Found instead: cat\.jpg, dog\.jpg"):
        select_shards(folder, "train")
    with pytest.raises(DataError, match=r"Found instead: cat\.jpg, dog\.jpg"):
        find_splits(folder)


def test_a_file_in_place_of_the_folder_is_said(tmp_path):
    fill(tmp_path, TRAIN)
    with pytest.raises(DataError, match="is a file"):
        select_shards(str(tmp_path / TRAIN[0]), "train")


@pytest.mark.parametrize("name", ["set [v1]", "a*b", "what?", "{x}"])
def test_the_folder_name_is_literal(tmp_path, name):
    fill(tmp_path / "set v", ["train-00000-of-00001"])
    fill(tmp_path / "aXb", ["train-00000-of-00001"])
    folder = fill(tmp_path / name, TRAIN)
    assert select_shards(folder, "train").names == tuple(TRAIN)
    assert select_shards(folder, "train", "train-*").names == tuple(TRAIN)


def test_a_pattern_chooses_names_of_any_form_but_never_hidden_partial_own_files_or_folders(tmp_path):
    folder = fill(
        tmp_path,
        ["b.rec", "a.rec", ".c.rec", "d.rec.partial", "labels.txt", "dataset.json", "train-00000-of-00009"],
    )
    (tmp_path / "e.rec").mkdir()
    assert select_shards(folder, "train", "*.rec").names == ("a.rec", "b.rec")
    everything = select_shards(folder, "train", "*")
    assert everything.names == ("a.rec", "b.rec", "train-00000-of-00009")
    assert everything.ignored == (".c.rec", "d.rec.partial", "e.rec/")


def test_a_pattern_may_choose_a_part_of_a_set(tmp_path):
    folder = fill(tmp_path, [*TRAIN, "train-00000-of-00003"])
    assert select_shards(folder, "train", "train-00001-of-*").names == ("train-00001-of-00002",)
    assert select_shards(folder, "train", "train-0000[01]-of-00002").names == tuple(TRAIN)


def test_a_pattern_that_matches_nothing_says_what_there_is(tmp_path):
    folder = fill(tmp_path, TRAIN)
    with pytest.raises(DataError, match=r"'TRAIN-\*'\. Found instead: train-00000-of-00002"):
        select_shards(folder, "train", "TRAIN-*")


@pytest.mark.parametrize("value", ["", " ", "a/b", "../*"])
def test_a_pattern_or_split_that_is_no_name_is_refused(tmp_path, value):
    folder = fill(tmp_path, TRAIN)
    with pytest.raises(OptionError, match="file_pattern"):
        select_shards(folder, "train", value)
    with pytest.raises(OptionError, match="split"):
        select_shards(folder, value)


@pytest.mark.parametrize("value", ["", " "])
def test_an_empty_folder_name_is_refused(value):
    with pytest.raises(OptionError, match="data_dir"):
        find_splits(value)


def test_in_threads_keeps_the_order_and_raises_the_first_error_in_order():
    first_may_fail = threading.Event()

    def work(item):
        if item == 1:
            first_may_fail.wait(10)
        if item == 2:
            first_may_fail.set()
        if item in (1, 2):
            raise ValueError(item)
        return item * 10

    assert in_threads(lambda item: item * 10, list(range(100))) == list(range(0, 1000, 10))
    with pytest.raises(ValueError, match="1"):
        in_threads(work, [0, 1, 2, 3])
