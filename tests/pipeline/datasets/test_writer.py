import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from echoing.errors import DataError, OptionError
from pipeline import filesystem
from pipeline.dataset_info import ShardInfo, read_dataset_info
from pipeline.datasets.writer import ShardWriter
from pipeline.labels import read_labels
from pipeline.schema import Box, ImageRecord

Reader = Callable[..., list[dict[str, Any]]]


def record(number: int, boxes: tuple[Box, ...] = ()) -> ImageRecord:
    return ImageRecord(b"jpeg %d" % number, 1, "a", 4, 6, f"{number}.jpg", boxes)


def write(folder: Path | str, count: int, shards: int = 2, split: str = "train", **options: Any) -> Any:
    with ShardWriter(str(folder), split, shards, count, options.get("overwrite", False)) as writer:
        for number in range(count):
            writer.write(record(number), number)
        return writer.finish(["a"], options.get("source", "idx"), options.get("options", {}))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_records_come_back_in_order_from_shards_of_the_reference_names(
    tmp_path: Path, read_records: Reader
) -> None:
    info = write(tmp_path, 5)
    assert names(tmp_path) == ["dataset.json", "labels.txt", "train-00000-of-00002", "train-00001-of-00002"]
    records = read_records(tmp_path)
    assert [r["image/encoded"] for r in records] == [
        [b"jpeg 0"],
        [b"jpeg 1"],
        [b"jpeg 2"],
        [b"jpeg 3"],
        [b"jpeg 4"],
    ]
    assert records[3]["image/filename"] == [b"3.jpg"]
    assert (records[3]["image/height"], records[3]["image/width"]) == ([4], [6])
    sizes = [(tmp_path / f"train-0000{index}-of-00002").stat().st_size for index in range(2)]
    assert info.splits["train"] == (
        ShardInfo("train-00000-of-00002", 3, sizes[0]),
        ShardInfo("train-00001-of-00002", 2, sizes[1]),
    )
    assert read_dataset_info(str(tmp_path)) == info
    assert read_labels(str(tmp_path)) == ["a"]


@settings(max_examples=25, deadline=None)
@given(count=st.integers(1, 40), shards=st.integers(1, 40), data=st.data())
def test_shards_are_of_even_size_and_hold_every_record_once(
    tmp_path_factory: pytest.TempPathFactory, count: int, shards: int, data: st.DataObject
) -> None:
    shards = min(shards, count)
    info = write(tmp_path_factory.mktemp("even"), count, shards)
    counts = [shard.records for shard in info.splits["train"]]
    assert (len(counts), sum(counts)) == (shards, count)
    assert max(counts) - min(counts) <= 1


def test_shards_that_would_be_empty_are_left_out_and_the_rest_renumbered(tmp_path: Path) -> None:
    with ShardWriter(str(tmp_path), "train", 4, 4, False) as writer:
        for position in (0, 3):  # what lay at 1 and 2 was rejected
            writer.write(record(position), position)
        writer.finish(["a"], "idx", {})
    assert [n for n in names(tmp_path) if "train" in n] == ["train-00000-of-00002", "train-00001-of-00002"]


def test_fewer_shards_than_exactly_asked_for_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    with (
        pytest.raises(OptionError, match=r"shards is 4.*at most 1"),
        ShardWriter(str(tmp_path), "train", 4, 4, False) as writer,
    ):
        writer.write(record(0), 0)
        writer.finish(["a"], "idx", {}, exact_shards=True)
    assert names(tmp_path) == []


@pytest.mark.parametrize("error", [ValueError("broken"), KeyboardInterrupt()])
@pytest.mark.parametrize("after", [0, 1, 5])
def test_a_failed_run_leaves_no_file(tmp_path: Path, error: BaseException, after: int) -> None:
    with (
        pytest.raises(type(error)),
        ShardWriter(str(tmp_path), "train", 3, 6, False) as writer,
    ):
        for number in range(after):
            writer.write(record(number), number)
        raise error
    assert names(tmp_path) == []


def test_while_it_is_written_no_final_name_exists(tmp_path: Path) -> None:
    with ShardWriter(str(tmp_path), "train", 2, 2, False) as writer:
        writer.write(record(0), 0)
        writer.write(record(1), 1)
        assert all(name.endswith(".partial") for name in names(tmp_path))
        writer.finish(["a"], "idx", {})


def test_leaving_without_a_record_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No record"), ShardWriter(str(tmp_path), "t", 1, 1, False) as writer:
        writer.finish(["a"], "idx", {})


def test_bad_class_names_leave_the_old_shards_in_place(tmp_path: Path, read_records: Reader) -> None:
    write(tmp_path, 2)
    before = {name: (tmp_path / name).read_bytes() for name in names(tmp_path)}
    with (
        pytest.raises(DataError, match="line break"),
        ShardWriter(str(tmp_path), "train", 1, 1, True) as writer,
    ):
        writer.write(record(9), 0)
        writer.finish(["a\nb"], "idx", {})
    assert {name: (tmp_path / name).read_bytes() for name in names(tmp_path)} == before


def test_a_failure_while_renaming_takes_the_final_names_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename, calls = filesystem.rename, []

    def failing(source: str, target: str) -> None:
        calls.append(target)
        if "00001-of" in target:
            raise OSError(28, "No space left on device")
        rename(source, target)

    monkeypatch.setattr(filesystem, "rename", failing)
    with pytest.raises(DataError, match="No space left"):
        write(tmp_path, 4)
    assert any("train-00000-of-00002" in target for target in calls)
    assert names(tmp_path) == ["labels.txt"]


def test_existing_shards_of_the_split_are_refused_and_kept(tmp_path: Path) -> None:
    write(tmp_path, 2)
    before = (tmp_path / "train-00000-of-00002").read_bytes()
    with pytest.raises(DataError, match="--overwrite"):
        write(tmp_path, 3)
    assert (tmp_path / "train-00000-of-00002").read_bytes() == before


def test_overwrite_replaces_all_shards_of_the_split_also_of_another_number(
    tmp_path: Path, read_records: Reader
) -> None:
    write(tmp_path, 6, shards=3)
    info = write(tmp_path, 2, shards=1, overwrite=True)
    assert [n for n in names(tmp_path) if "train" in n] == ["train-00000-of-00001"]
    assert len(read_records(tmp_path)) == 2
    assert list(info.splits) == ["train"] and len(info.splits["train"]) == 1


def test_a_second_split_keeps_the_entry_and_the_options_of_the_first(tmp_path: Path) -> None:
    first = write(tmp_path, 4, options={"seed": 1})
    second = write(tmp_path, 2, shards=1, split="validation", options={"seed": 2})
    assert second.splits["train"] == first.splits["train"]
    assert [shard.name for shard in second.splits["validation"]] == ["validation-00000-of-00001"]
    assert second.options == {"train": {"seed": 1}, "validation": {"seed": 2}}


def test_the_entry_of_a_split_whose_shards_are_gone_is_dropped(tmp_path: Path) -> None:
    write(tmp_path, 1, shards=1)
    (tmp_path / "train-00000-of-00001").unlink()
    assert list(write(tmp_path, 1, shards=1, split="test").splits) == ["test"]


def test_box_within_rounding_is_written_clipped(tmp_path: Path, read_records: Reader) -> None:  # SC-06
    with ShardWriter(str(tmp_path), "train", 1, 1, False) as writer:
        writer.write(record(0, (Box(0.0, 0.5, 1.0, 1.0000001),)), 0)
        writer.finish(["a"], "idx", {})
    (read,) = read_records(tmp_path)
    assert read["image/object/bbox/xmax"] == [1.0]
    assert read["image/object/bbox/xmin"] == [0.5]


def test_box_out_of_range_stops_the_writer_and_names_the_image(tmp_path: Path) -> None:  # SC-06
    with (
        pytest.raises(DataError, match=r"7\.jpg.*pixel coordinates\?"),
        ShardWriter(str(tmp_path), "train", 1, 1, False) as writer,
    ):
        writer.write(record(7, (Box(20, 12, 240, 200),)), 0)
    assert names(tmp_path) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_unwritable_folder_is_one_clear_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(DataError, match="Cannot"):
        write(tmp_path, 1)


def test_folder_below_a_file_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="Cannot make the folder"):
        write(tmp_path / "file" / "set", 1)


def test_remote_folders_work_like_local_ones(read_records: Reader) -> None:  # CL-03
    folder = "ram://writer-test/set"
    write(folder, 3)
    info = write(folder, 1, shards=1, split="test")
    assert sorted(tf.io.gfile.listdir(folder)) == [
        "dataset.json",
        "labels.txt",
        "test-00000-of-00001",
        "train-00000-of-00002",
        "train-00001-of-00002",
    ]
    assert [shard.records for shard in info.splits["train"]] == [2, 1]
    assert len(read_records(folder)) == 3
    assert not Path("ram:").exists()
