from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from echoing.errors import DataError
from trainer.checkpoint_files import (
    MANIFEST_NAME,
    NotFiniteError,
    check_files,
    folder_name,
    read_manifest,
    read_values,
    step_of,
    write_checkpoint,
)
from trainer.checkpoint_manifest import DamagedError, Manifest

MANIFEST = Manifest(3, {"batch": 3}, {"num_classes": 5})


@pytest.fixture
def path(tmp_path: Path, tiny_objects: Callable[..., dict[str, Any]]) -> Path:
    write_checkpoint(str(tmp_path / "step"), tiny_objects(3), MANIFEST)
    return tmp_path / "step"


@pytest.mark.parametrize(("step", "name"), [(0, "step-00000000"), (213000, "step-00213000")])
def test_step_stands_in_the_name(step: int, name: str) -> None:
    assert folder_name(step) == name
    assert step_of(name) == step


@pytest.mark.parametrize("name", ["best", "step-", "step-3", "step-00000003.partial", "xstep-00000003"])
def test_other_names_are_no_checkpoints(name: str) -> None:
    assert step_of(name) is None


def test_manifest_lists_the_files_as_sha256sum_would(path: Path) -> None:
    manifest = read_manifest(str(path))
    assert manifest is not None
    assert (manifest.step, manifest.position, manifest.facts) == (3, {"batch": 3}, {"num_classes": 5})
    found = {file.name: (file.size_bytes, file.sha256) for file in manifest.files}
    assert found == {
        name: (len(content), hashlib.sha256(content).hexdigest())
        for name in ("state.data-00000-of-00001", "state.index")
        for content in [(path / name).read_bytes()]
    }
    assert sorted(file.name for file in path.iterdir()) == sorted([*found, MANIFEST_NAME])


def test_values_come_back_into_other_objects(path: Path, tiny_objects: Any) -> None:
    objects = tiny_objects(0)
    read_values(str(path), objects, partial=False)
    assert objects["model"].weights.numpy().tolist() == [3.0, 3.0, 3.0]
    assert int(objects["model"].steps) == 3
    assert [float(slot) for slot in objects["slots"]] == [3.0, -3.0]


def test_part_of_a_checkpoint_is_read_only_on_request(path: Path, tiny_objects: Any) -> None:
    model = {"model": tiny_objects(0)["model"]}
    with pytest.raises(DataError, match=r"does not fit.*slots"):
        read_values(str(path), model, partial=False)
    model = {"model": tiny_objects(0)["model"]}
    read_values(str(path), model, partial=True)
    assert int(model["model"].steps) == 3


@pytest.mark.parametrize("partial", [False, True])
def test_object_without_a_value_is_refused(path: Path, tiny_objects: Any, partial: bool) -> None:
    objects = {**tiny_objects(0), "average": [tf.Variable(1.0, name="shadow")]}
    with pytest.raises(DataError, match=r"does not fit.*shadow"):
        read_values(str(path), objects, partial)


def test_other_shape_is_refused_with_both_shapes(path: Path, tiny_objects: Any) -> None:
    with pytest.raises(DataError, match=r"\(3,\).*\(4,\)"):
        read_values(str(path), tiny_objects(0, size=4), partial=False)


def test_folder_without_a_manifest_is_no_checkpoint(path: Path) -> None:
    (path / MANIFEST_NAME).unlink()
    assert read_manifest(str(path)) is None


def test_whole_files_pass(path: Path) -> None:
    check_files(str(path), read_manifest(str(path)) or MANIFEST)


def flip(content: bytes) -> bytes:
    return content[:-5] + bytes([content[-5] ^ 1]) + content[-4:]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (flip, "another checksum"),
        (lambda content: content[:-1], "bytes and was written with"),
        (lambda content: content + b"0", "bytes and was written with"),
        (None, "is missing"),
    ],
)
@pytest.mark.parametrize("name", ["state.index", "state.data-00000-of-00001"])
def test_damaged_file_is_named(path: Path, name: str, damage: Any, words: str) -> None:
    manifest = read_manifest(str(path))
    assert manifest is not None
    file = path / name
    if damage is None:
        file.unlink()
    else:
        file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(DamagedError, match=f"{name}.*{words}"):
        check_files(str(path), manifest)


def test_file_that_cannot_be_read_is_no_damage(path: Path) -> None:
    manifest = read_manifest(str(path))
    assert manifest is not None
    (path / "state.index").unlink()
    (path / "state.index").mkdir()
    with pytest.raises(DataError, match="Cannot read"):
        check_files(str(path), manifest)


@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16, tf.float64])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_not_saved(tmp_path: Path, dtype: Any, value: float) -> None:
    objects = {
        "a": tf.Variable([1.0, 2.0]),
        "b": [tf.Variable([1.0, value], dtype=dtype)],
        "c": tf.Variable(3),
    }
    with pytest.raises(NotFiniteError, match=r"step 3 is not saved: 1 of its variables .* such as b/0. "):
        write_checkpoint(str(tmp_path / "step"), objects, MANIFEST)
    assert list(tmp_path.iterdir()) == []


def test_half_written_folder_of_the_same_step_is_replaced(path: Path, tiny_objects: Any) -> None:
    (path / "left").write_text("over")
    (path / MANIFEST_NAME).unlink()
    write_checkpoint(str(path), tiny_objects(4), MANIFEST)
    objects = tiny_objects(0)
    read_values(str(path), objects, partial=False)
    assert int(objects["model"].steps) == 4
    assert not (path / "left").exists()
