import json

import pytest

from bench import default_data
from pipeline.data_source import open_data_source


@pytest.fixture
def few_examples(monkeypatch):
    monkeypatch.setattr(default_data, "EXAMPLES", 4)


def test_the_default_data_lies_in_the_users_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = default_data.default_data_dir()
    assert folder.startswith(f"{tmp_path}/pipebench/")
    assert not default_data.is_made(folder)
    assert not (tmp_path / "pipebench").exists()


def test_the_folders_name_says_what_is_in_it_so_that_a_change_makes_it_anew(monkeypatch):
    before = default_data.default_data_dir()
    monkeypatch.setattr(default_data, "EXAMPLES", 77)
    assert default_data.default_data_dir() != before


def test_made_data_is_whole_and_counted(few_examples, tmp_path):
    progress = []
    folder = str(tmp_path / "data")
    default_data.make_default_data(folder, lambda done, total: progress.append((done, total)))
    assert default_data.is_made(folder)
    assert open_data_source(folder).records == 4
    assert progress[-1] == (4, 4)


def test_shards_without_their_description_count_as_broken_off_and_are_made_again(few_examples, tmp_path):
    folder = tmp_path / "data"
    default_data.make_default_data(str(folder))
    whole = {path.name: path.read_bytes() for path in folder.iterdir()}
    (folder / "dataset.json").unlink()
    (folder / "train-00000-of-00004").write_bytes(b"half of it")
    assert not default_data.is_made(str(folder))
    default_data.make_default_data(str(folder))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == whole
    assert json.loads(whole["dataset.json"])["source"] == "generated"
