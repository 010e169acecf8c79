from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from echoing.errors import DataError, OptionError
from trainer import checkpoint_files
from trainer.best_checkpoint import BestCheckpoint
from trainer.checkpoint_folder import CheckpointFolder
from trainer.checkpoint_manifest import Manifest


@pytest.fixture
def best(tmp_path: Path, tiny_objects: Any) -> BestCheckpoint:
    source = CheckpointFolder(str(tmp_path))
    for step in (1, 2, 3):
        checkpoint_files.write_checkpoint(source.checkpoint(step), tiny_objects(step), Manifest(step, {}, {}))
    return BestCheckpoint(CheckpointFolder(str(tmp_path / "best")), source)


def kept(best: BestCheckpoint) -> tuple[int, float | None] | None:
    manifest = best.manifest()
    return None if manifest is None else (manifest.step, manifest.score)


def test_nothing_is_the_best_at_first(best: BestCheckpoint) -> None:
    assert kept(best) is None


def test_higher_score_takes_the_place_and_the_first_of_equals_stays(
    best: BestCheckpoint, tmp_path: Path
) -> None:
    assert [best.keep(1, 0.5), kept(best)] == [True, (1, 0.5)]
    assert [best.keep(2, 0.5), kept(best)] == [False, (1, 0.5)]
    assert [best.keep(3, 0.6), kept(best)] == [True, (3, 0.6)]
    assert [best.keep(2, 0.1), kept(best)] == [False, (3, 0.6)]
    assert [path.name for path in (tmp_path / "best").iterdir()] == ["step-00000003"]


def test_score_of_zero_is_better_than_none(best: BestCheckpoint) -> None:
    assert [best.keep(1, 0), kept(best)] == [True, (1, 0.0)]


def test_copy_is_whole_and_independent_of_its_source(
    best: BestCheckpoint, tiny_objects: Any, tmp_path: Path
) -> None:
    best.keep(2, 0.5)
    for file in (tmp_path / "step-00000002").iterdir():
        file.write_bytes(b"")
    manifest = best.manifest()
    assert manifest is not None
    checkpoint_files.check_files(best.path(manifest), manifest)
    objects = tiny_objects(0)
    checkpoint_files.read_values(best.path(manifest), objects, partial=False)
    assert int(objects["model"].steps) == 2


def test_better_of_two_counts_after_a_kill_between_writing_and_removing(
    best: BestCheckpoint, tmp_path: Path
) -> None:
    best.keep(1, 0.5)
    first = tmp_path / "best" / "step-00000001"
    saved = {file.name: file.read_bytes() for file in first.iterdir()}
    best.keep(3, 0.7)
    first.mkdir()
    for name, content in saved.items():
        (first / name).write_bytes(content)
    assert kept(best) == (3, 0.7)


def test_failing_copy_leaves_the_best_before(best: BestCheckpoint, files_at_most: Any) -> None:
    best.keep(1, 0.5)
    with (
        files_at_most(20),
        pytest.raises(DataError, match=r"Cannot save the checkpoint of step 2.*File too large"),
    ):
        best.keep(2, 0.9)
    assert kept(best) == (1, 0.5)


@pytest.mark.parametrize("score", [float("nan"), float("inf"), -0.1, None])
def test_score_that_is_no_share_is_refused(best: BestCheckpoint, score: Any) -> None:
    with pytest.raises(OptionError, match="score"):
        best.keep(1, score)


def test_checkpoint_that_is_not_there_cannot_be_the_best(best: BestCheckpoint) -> None:
    with pytest.raises(DataError, match=r"no complete checkpoint .*step-00000007"):
        best.keep(7, 0.5)


def test_damaged_manifest_is_an_error_that_says_what_to_do(best: BestCheckpoint, tmp_path: Path) -> None:
    best.keep(1, 0.5)
    (tmp_path / "best" / "step-00000001" / "manifest.json").write_text("{")
    with pytest.raises(DataError, match=r"is damaged.*Remove it"):
        best.keep(2, 0.9)
