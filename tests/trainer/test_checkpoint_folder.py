from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from echoing.errors import DataError
from trainer.checkpoint_files import MANIFEST_NAME, write_checkpoint
from trainer.checkpoint_folder import CheckpointFolder
from trainer.checkpoint_manifest import Manifest


@pytest.fixture
def folder(tmp_path: Path, tiny_objects: Any) -> CheckpointFolder:
    folder = CheckpointFolder(str(tmp_path / "checkpoints"))
    for step in (10, 9, 100):
        write_checkpoint(folder.checkpoint(step), tiny_objects(step), Manifest(step, {}, {}))
    return folder


def test_folder_that_does_not_exist_has_no_checkpoints(tmp_path: Path) -> None:
    assert CheckpointFolder(str(tmp_path / "none")).steps() == []
    assert list(tmp_path.iterdir()) == []


def test_steps_are_sorted_as_numbers_and_other_names_are_none(folder: CheckpointFolder) -> None:
    (Path(folder.path) / "best").mkdir()
    (Path(folder.path) / "notes.txt").write_text("")
    assert folder.steps() == [9, 10, 100]


def test_checkpoint_without_a_manifest_is_not_complete(folder: CheckpointFolder) -> None:
    (Path(folder.checkpoint(10)) / MANIFEST_NAME).unlink()
    assert folder.steps() == [9, 100]
    assert folder.steps(complete=False) == [9, 10, 100]


def test_all_but_the_kept_are_removed_with_what_is_half_written(folder: CheckpointFolder) -> None:
    (Path(folder.checkpoint(10)) / MANIFEST_NAME).unlink()
    folder.remove_all_but([9])
    assert folder.steps(complete=False) == [9]


@pytest.mark.parametrize(
    ("steps", "words"), [([], "There are no earlier ones"), ([9, 10], r"whole \(steps 9, 10\)")]
)
def test_failed_write_names_those_that_are_left(tmp_path: Path, steps: list[int], words: str) -> None:
    folder = CheckpointFolder(str(tmp_path))
    for step in steps:
        Path(folder.checkpoint(step)).mkdir()
        (Path(folder.checkpoint(step)) / MANIFEST_NAME).write_text("")

    def fail(path: str) -> None:
        Path(path).mkdir()
        raise OSError(28, "No space left on device")

    with pytest.raises(DataError, match=f"checkpoint of step 20 in .*: No space left on device. .*{words}"):
        folder.write(20, fail)
    assert folder.steps(complete=False) == steps
