"""The path of a cache's files: the same for the same content, another for any other."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from pipeline.cache_location import cache_path
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
