import os

import pytest

from bench import default_data
from bench.run_data import is_generated, open_run_data
from echoing.errors import DataError
from pipeline.config import PipelineConfig


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """An empty cache folder, and default data of four examples."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(default_data, "EXAMPLES", 4)
    return tmp_path / "cache"


def test_only_the_default_folder_counts_as_generated(cache, small_data):
    assert is_generated(PipelineConfig(default_data.default_data_dir()))
    assert not is_generated(PipelineConfig(small_data))


def test_the_default_data_is_generated_once_and_said_each_time(cache, capsys):
    config = PipelineConfig(default_data.default_data_dir())
    assert open_run_data(config).records == 4
    said = capsys.readouterr().err
    assert f"Generating 4 images, once, in {config.data_dir}" in said
    stamps = {path: path.stat().st_mtime_ns for path in cache.rglob("train-*")}
    assert open_run_data(config).records == 4
    assert f"Using the generated images in {config.data_dir}" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("train-*")} == stamps


def test_a_broken_off_generation_is_done_again(cache, capsys):
    config = PipelineConfig(default_data.default_data_dir())
    folder = cache / "pipebench" / os.path.basename(config.data_dir)  # noqa: PTH119
    folder.mkdir(parents=True)
    (folder / "train-00000-of-00008.partial").write_bytes(b"half")
    assert open_run_data(config).records == 4
    assert "Generating" in capsys.readouterr().err


def test_a_folder_of_the_users_own_is_never_generated(cache, tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        open_run_data(PipelineConfig(str(tmp_path / "typo")))
    assert not (tmp_path / "typo").exists()


def test_ignored_files_and_warnings_are_said(make_shards, tmp_path, capsys):
    folder = make_shards(tmp_path / "data", records=2)
    os.rename(f"{folder}/train-00000-of-00001", f"{folder}/train-00000-of-00002")  # noqa: PTH104
    (tmp_path / "data" / "train-00001-of-00002").write_bytes(b"")
    (tmp_path / "data" / "README.txt").write_text("hello")
    source = open_run_data(PipelineConfig(folder))
    assert source.records == 2
    said = capsys.readouterr()
    assert "Warning: the shard train-00001-of-00002 is empty; not read." in said.err
    assert f"Ignored in {folder}: README.txt" in said.err
    assert said.out == ""
