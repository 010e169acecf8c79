"""The path of a cache's files: the same for the same content, another for any other."""

from __future__ import annotations

import dataclasses
import fcntl
from pathlib import Path
from typing import Any

import pytest

from echoing.errors import DataError
from pipeline.cache_location import _owned, cache_path
from pipeline.config import PipelineConfig
from pipeline.data_source import DataSource, Shard

SOURCE = DataSource("data", "train", (Shard("data/a", "", 5, 90),), None, None, (), ())


def path_of(folder: Path, source: DataSource = SOURCE, seed: int = 1, **options: Any) -> str:
    config = PipelineConfig("data", cache="records", cache_dir=str(folder / "cache"), **options)
    return cache_path(config, source, seed, hosts=2, host=0)


def test_cache_in_memory_has_no_path():
    assert cache_path(PipelineConfig("data", cache="records"), SOURCE, 1, 1, 0) == ""


def test_same_content_lies_at_the_same_path_in_a_folder_that_is_made(tmp_path):
    path = path_of(tmp_path)
    assert path == path_of(tmp_path, batch_size=7)
    assert Path(path).parent.is_dir()
    assert Path(path).name.startswith("train-records-")


def test_other_shards_lie_elsewhere(tmp_path):
    longer = dataclasses.replace(SOURCE, shards=(Shard("data/a", "", 6, 99),))
    assert path_of(tmp_path, longer) != path_of(tmp_path)


@pytest.mark.parametrize("deterministic", [True, False])
def test_order_counts_only_where_it_is_promised(tmp_path, deterministic):
    def path(seed: int, cycle_length: int) -> str:
        return path_of(tmp_path, seed=seed, cycle_length=cycle_length, deterministic=deterministic)

    assert (path(1, 8) != path(2, 8)) is deterministic
    assert (path(1, 8) != path(1, 4)) is deterministic


def test_what_a_killed_process_left_is_removed_and_a_finished_cache_is_kept(tmp_path):
    path = Path(path_of(tmp_path))
    _owned.pop(path).close()  # as when that process ends
    lockfile, part = (path.with_name(f"{path.name}_{end}") for end in ("0.lockfile", "0.data-00000-of-00001"))
    for leftover in (lockfile, part):
        leftover.write_bytes(b"")
    assert path_of(tmp_path) == str(path)
    assert not lockfile.exists()
    assert not part.exists()
    _owned.pop(path).close()
    finished = path.with_name(f"{path.name}.index")
    for file in (finished, part):
        file.write_bytes(b"")
    path_of(tmp_path)
    assert part.exists()


def test_two_processes_do_not_write_one_cache(tmp_path):
    path = Path(path_of(tmp_path))
    _owned.pop(path).close()
    with path.with_name(f"{path.name}.owner").open("w") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)  # another open file: to the system it is another owner
        with pytest.raises(DataError, match="Another process is writing"):
            path_of(tmp_path)
        path.with_name(f"{path.name}.index").write_bytes(b"")
        assert path_of(tmp_path) == str(path)  # finished: it is only read
