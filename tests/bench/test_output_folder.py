import os
import re

import pytest

from bench.output_folder import check_output_folder, default_output_folder
from echoing.errors import DataError


def test_the_default_is_in_runs_and_named_by_the_time():
    assert re.fullmatch(r"runs/\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d", default_output_folder())


def test_a_new_folder_is_made_with_its_parents_and_left_empty(tmp_path):
    check_output_folder(str(tmp_path / "a" / "b"), overwrite=False)
    assert list((tmp_path / "a" / "b").iterdir()) == []


def test_an_empty_folder_is_taken(tmp_path):
    check_output_folder(str(tmp_path), overwrite=False)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_files_is_refused_and_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(DataError, match=r"not empty.*--overwrite") as refused:
        check_output_folder(str(tmp_path), overwrite=False)
    assert str(tmp_path) in str(refused.value)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_folder_with_files_is_taken_with_overwrite_and_nothing_is_removed(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    check_output_folder(str(tmp_path), overwrite=True)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_is_refused_whether_or_not_files_may_be_overwritten(tmp_path, overwrite):
    path = tmp_path / "result"
    path.write_text("mine")
    with pytest.raises(DataError, match=r"is a file.*--output"):
        check_output_folder(str(path), overwrite)
    assert path.read_text() == "mine"


def test_a_folder_below_a_file_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"Cannot make the folder .*file/out"):
        check_output_folder(str(tmp_path / "file" / "out"), overwrite=False)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(DataError, match=r"Cannot write .*that you may write to"):
            check_output_folder(str(tmp_path), overwrite=False)
    finally:
        tmp_path.chmod(0o700)


def test_a_remote_folder_is_checked_in_the_same_way():
    folder = "ram://output-folder-test/run"
    check_output_folder(folder, overwrite=False)
    check_output_folder(folder, overwrite=False)
    from pipeline import filesystem

    filesystem.write_text(f"{folder}/result.json", "{}")
    with pytest.raises(DataError, match=r"not empty"):
        check_output_folder(folder, overwrite=False)
    check_output_folder(folder, overwrite=True)
