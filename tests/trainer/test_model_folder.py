from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from echoing.errors import DataError
from trainer import model_folder


def test_names_are_sorted_and_a_missing_folder_has_none(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "a").write_text("")
    assert model_folder.names(str(tmp_path)) == ["a", "b"]
    assert model_folder.names(str(tmp_path / "none")) == []


def test_missing_file_reads_as_none_and_an_unreadable_one_is_an_error_with_its_name(tmp_path: Path) -> None:
    assert model_folder.read_bytes(str(tmp_path / "none")) is None
    with pytest.raises(DataError, match=f"Cannot read {tmp_path}"):
        model_folder.read_bytes(str(tmp_path))


def test_file_is_replaced_whole_and_leaves_no_temporary_name(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")
    model_folder.write_whole(str(path), b"after")
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("file", b"after")]


def test_failing_write_leaves_the_file_as_it_was(tmp_path: Path, files_at_most: Any) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")
    with files_at_most(1000), pytest.raises(tf.errors.OpError):
        model_folder.write_whole(str(path), b"a" * 2000)
    assert path.read_bytes() == b"before"


def test_relative_paths_are_written_and_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model_folder.write_whole("file", b"1")
    assert (tmp_path / "file").read_bytes() == b"1"


def test_remote_paths_need_no_local_sync() -> None:
    model_folder.write_whole("ram://pipebench-model-folder/file", b"1")
    assert model_folder.read_bytes("ram://pipebench-model-folder/file") == b"1"


@pytest.mark.parametrize("size", [0, 1, 100])
def test_checksum_equals_hashlibs_over_several_chunks(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_folder, "CHUNK_BYTES", 7)
    content = bytes(range(size))
    (tmp_path / "file").write_bytes(content)
    found = model_folder.size_and_sha256(str(tmp_path / "file"))
    assert found == (size, hashlib.sha256(content).hexdigest())


def test_folder_that_is_gone_already_may_be_removed(tmp_path: Path) -> None:
    model_folder.remove_folder(str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(28, "No space left on device"), "No space left on device"),
        (ValueError(""), "ValueError"),
        (
            tf.errors.OutOfRangeError(
                None, None, "{{function_node __wrapped__SaveV2}} a/b; File too large [Op:SaveV2]"
            ),
            "a/b; File too large",
        ),
    ],
)
def test_reason_is_one_line_without_tensorflows_names(error: Exception, words: str) -> None:
    assert model_folder.reason(error) == words
