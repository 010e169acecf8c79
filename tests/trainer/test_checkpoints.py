from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from echoing.errors import DataError, OptionError
from trainer import model_folder
from trainer.checkpoint_files import NotFiniteError
from trainer.checkpoints import CheckpointKeeper, CheckpointWarning
from trainer.metrics_log import MetricsLog

Make = Callable[..., dict[str, Any]]
FACTS = {"model": "tiny", "num_classes": 5}


def keeper_of(folder: Path | str, said: list[str] | None = None, **options: Any) -> CheckpointKeeper:
    """A keeper as a new process would make it."""
    said = [] if said is None else said
    return CheckpointKeeper(str(folder), **{"facts": FACTS, "say": said.append, **options})


def train(folder: Path | str, make: Make, *steps: int, **options: Any) -> CheckpointKeeper:
    """Resumes, and saves at each of the steps, with values equal to the step."""
    keeper = keeper_of(folder, **options)
    keeper.newest()
    for step in steps:
        keeper.save(make(step), step, {"batch": 10 * step})
    return keeper


def found(folder: Path | str, make: Make, said: list[str] | None = None) -> tuple[int, float] | None:
    """Step and values of what a new process restores; all values must be equal."""
    objects = make(-1)
    restored = keeper_of(folder, said).restore_latest(objects)
    if restored is None:
        return None
    assert restored.position == {"batch": 10 * restored.step}
    values = {*objects["model"].weights.numpy().tolist(), float(objects["model"].steps)}
    values |= {float(objects["slots"][0]), -float(objects["slots"][1])}
    assert len(values) == 1
    return restored.step, values.pop()


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def file_of(folder: Path, step: int, name: str = "state.data-00000-of-00001") -> Path:
    return folder / "checkpoints" / f"step-{step:08d}" / name


def damage(folder: Path, step: int) -> None:
    path = file_of(folder, step)
    content = bytearray(path.read_bytes())
    content[3] ^= 64
    path.write_bytes(content)


def test_empty_or_missing_folder_has_nothing_to_restore_and_stays_as_it_is(
    tmp_path: Path, tiny_objects: Make
) -> None:
    assert found(tmp_path / "none", tiny_objects) is None
    assert not (tmp_path / "none").exists()


def test_newest_of_several_is_restored(tmp_path: Path, tiny_objects: Make) -> None:
    train(tmp_path, tiny_objects, 10, 20)
    train(tmp_path, tiny_objects, 30)
    assert found(tmp_path, tiny_objects) == (30, 30.0)


@pytest.mark.parametrize(("keep", "left"), [(1, [40]), (2, [30, 40]), (5, [10, 20, 30, 40])])
def test_as_many_are_kept_as_were_asked_for(
    tmp_path: Path, tiny_objects: Make, keep: int, left: list[int]
) -> None:
    assert train(tmp_path, tiny_objects, 10, 20, 30, 40, keep=keep).steps() == left


def test_best_is_never_pushed_out(tmp_path: Path, tiny_objects: Make) -> None:
    keeper = train(tmp_path, tiny_objects, 10, keep=1)
    assert keeper.best() is None
    assert keeper.keep_best(10, 0.7)
    keeper = train(tmp_path, tiny_objects, 20, 30, keep=1)
    assert not keeper.keep_best(30, 0.6)
    best = keeper_of(tmp_path).best()
    assert best is not None
    assert (best.step, best.manifest.score, keeper.steps()) == (10, 0.7, [30])
    objects = tiny_objects(-1)
    best.read({"model": objects["model"]}, partial=True)
    assert int(objects["model"].steps) == 10
    assert found(tmp_path, tiny_objects) == (30, 30.0)


def test_damaged_or_other_best_is_an_error(tmp_path: Path, tiny_objects: Make) -> None:
    train(tmp_path, tiny_objects, 10).keep_best(10, 0.5)
    with pytest.raises(DataError, match="Checkpoint has 5 classes, you asked for 7"):
        keeper_of(tmp_path, facts={"num_classes": 7}).best()
    next((tmp_path / "checkpoints" / "best").rglob("*.data*")).write_bytes(b"")
    with pytest.raises(DataError, match=r"best checkpoint, .* is damaged: state.data"):
        keeper_of(tmp_path).best()


def test_damaged_newest_is_said_and_the_one_before_is_taken(tmp_path: Path, tiny_objects: Make) -> None:
    train(tmp_path, tiny_objects, 10, 20, 30)
    damage(tmp_path, 30)
    file_of(tmp_path, 20, "manifest.json").write_text("{")
    said: list[str] = []
    before = snapshot(tmp_path)
    assert found(tmp_path, tiny_objects, said) == (10, 10.0)
    assert snapshot(tmp_path) == before
    assert ["step-00000030: state.data" in said[0], "step-00000020: its manifest" in said[1]] == [True, True]
    assert all("The one before, of step 10, is taken." in line for line in said)


def test_passing_over_is_a_python_warning_unless_told_otherwise(tmp_path: Path, tiny_objects: Make) -> None:
    train(tmp_path, tiny_objects, 10, 20)
    damage(tmp_path, 20)
    with pytest.warns(CheckpointWarning, match="step-00000020"):
        CheckpointKeeper(str(tmp_path), FACTS).newest()


def test_training_on_from_the_one_before_replaces_the_damaged_ones(
    tmp_path: Path, tiny_objects: Make
) -> None:
    train(tmp_path, tiny_objects, 10, 20, 30)
    damage(tmp_path, 20)
    damage(tmp_path, 30)
    assert train(tmp_path, tiny_objects, 15, keep=2).steps() == [10, 15]
    assert train(tmp_path, tiny_objects, 20, keep=2).steps() == [15, 20]
    assert found(tmp_path, tiny_objects) == (20, 20.0)


def test_none_whole_is_an_error_that_lists_them(tmp_path: Path, tiny_objects: Make) -> None:
    train(tmp_path, tiny_objects, 10, 20)
    damage(tmp_path, 10)
    file_of(tmp_path, 20).unlink()
    with pytest.raises(DataError, match=r"No checkpoint in .*step-00000020: .*missing; .*step-00000010: "):
        keeper_of(tmp_path).newest()


def test_half_written_newest_is_not_there(tmp_path: Path, tiny_objects: Make) -> None:
    train(tmp_path, tiny_objects, 10, 20)
    file_of(tmp_path, 20, "manifest.json").unlink()
    said: list[str] = []
    assert keeper_of(tmp_path).steps() == [10]
    assert found(tmp_path, tiny_objects, said) == (10, 10.0)
    assert len(said) == 1
    assert "interrupted" in said[0]


def test_kill_in_the_first_save_lets_the_training_begin_anew(tmp_path: Path, tiny_objects: Make) -> None:
    train(tmp_path, tiny_objects, 10)
    file_of(tmp_path, 10, "manifest.json").unlink()
    said: list[str] = []
    assert found(tmp_path, tiny_objects, said) is None
    assert "begins anew" in said[0]
    assert train(tmp_path, tiny_objects, 5).steps() == [5]
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-00000005"]


class Killed(BaseException):
    """Ends a save where it stands; no handler of the code under test catches it."""


@pytest.fixture
def kill_at(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Returns a function that sets at which call to the file system the process dies."""
    left = [-1]

    def dying(call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **keywords: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                raise Killed
            return call(*arguments, **keywords)

        return counted

    for name in ("makedirs", "rename", "remove", "rmtree", "copy"):
        monkeypatch.setattr(tf.io.gfile, name, dying(getattr(tf.io.gfile, name)))
    for name in ("sync", "size_and_sha256"):
        monkeypatch.setattr(model_folder, name, dying(getattr(model_folder, name)))
    yield lambda number: left.__setitem__(0, number)
    left[0] = -1


def test_kill_at_any_call_to_the_file_system_leaves_a_whole_checkpoint(
    tmp_path: Path, tiny_objects: Make, kill_at: Callable[[int], None]
) -> None:
    outcomes = []
    for number in range(1, 100):
        folder = tmp_path / str(number)
        train(folder, tiny_objects, 10, 20, keep=2).keep_best(10, 0.5)
        keeper = train(folder, tiny_objects, keep=2)
        kill_at(number)
        try:
            keeper.save(tiny_objects(30), 30, {"batch": 300})
            keeper.keep_best(30, 0.6)
        except Killed:
            kill_at(-1)
            outcome = found(folder, tiny_objects)
            best = keeper_of(folder).best()
            assert best is not None
            outcomes.append((outcome, best.step))
            # And the training goes on as if nothing had been.
            assert train(folder, tiny_objects, 30, 40, keep=2).steps() == [30, 40]
            continue
        kill_at(-1)
        break
    assert set(outcomes) == {((20, 20.0), 10), ((30, 30.0), 10), ((30, 30.0), 30)}
    assert outcomes == sorted(outcomes)


def test_full_disk_leaves_the_earlier_ones_whole_and_the_error_says_so(
    tmp_path: Path, tiny_objects: Make, files_at_most: Any
) -> None:
    keeper = train(tmp_path, tiny_objects, 10, 20, keep=2)
    before = snapshot(tmp_path)
    with files_at_most(100_000), pytest.raises(DataError) as error:
        keeper.save(tiny_objects(30, size=50_000), 30, {"batch": 300})
    assert "Cannot save the checkpoint of step 30 in" in str(error.value)
    assert "File too large. The earlier ones are whole (steps 10, 20). Make room" in str(error.value)
    assert snapshot(tmp_path) == before
    assert found(tmp_path, tiny_objects) == (20, 20.0)
    keeper.save(tiny_objects(30), 30, {"batch": 300})
    assert found(tmp_path, tiny_objects) == (30, 30.0)


@pytest.mark.parametrize("call", ["makedirs", "rename"])
def test_error_of_the_disk_at_any_place_is_told_the_same_way(
    tmp_path: Path, tiny_objects: Make, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    keeper = train(tmp_path, tiny_objects, 10)

    def full(*arguments: Any, **keywords: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tf.io.gfile, call, full)
    with pytest.raises(DataError, match=r"step 20 .*No space left on device.* whole \(steps 10\)"):
        keeper.save(tiny_objects(20), 20, {"batch": 200})
    monkeypatch.undo()
    assert found(tmp_path, tiny_objects) == (10, 10.0)


def test_values_that_are_not_finite_push_nothing_out(tmp_path: Path, tiny_objects: Make) -> None:
    keeper = train(tmp_path, tiny_objects, 1, 2, keep=2)
    objects = tiny_objects(3)
    objects["model"].weights.assign([1.0, float("nan"), 1.0])
    with pytest.raises(NotFiniteError, match=r"step 3 is not saved: 1 of .* model/weights"):
        keeper.save(objects, 3, {"batch": 30})
    assert keeper.steps() == [1, 2]
    assert found(tmp_path, tiny_objects) == (2, 2.0)


def test_other_number_of_classes_is_refused_and_nothing_is_touched(
    tmp_path: Path, tiny_objects: Make
) -> None:
    train(tmp_path, tiny_objects, 2).keep_best(2, 0.5)
    before = snapshot(tmp_path)
    with pytest.raises(DataError, match="Checkpoint has 5 classes, you asked for 7") as error:
        keeper_of(tmp_path, facts={"model": "tiny", "num_classes": 7}).restore_latest(tiny_objects(0))
    assert error.value.exit_code != 0
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("relative", [False, True])
def test_moved_folder_is_resumed_and_its_old_place_left_alone(
    tmp_path: Path, tiny_objects: Make, monkeypatch: pytest.MonkeyPatch, relative: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    train("run1" if relative else tmp_path / "run1", tiny_objects, 2, 3).keep_best(2, 0.5)
    (tmp_path / "run1").rename(tmp_path / "run2")
    (tmp_path / "run1").mkdir()
    assert found("run2" if relative else tmp_path / "run2", tiny_objects) == (3, 3.0)
    best = keeper_of(tmp_path / "run2").best()
    assert best is not None
    assert best.step == 2
    train(tmp_path / "run2", tiny_objects, 4)
    assert list((tmp_path / "run1").iterdir()) == []
    assert all(b"run1" not in content for content, _ in snapshot(tmp_path / "run2").values())


def test_same_step_is_saved_once(tmp_path: Path, tiny_objects: Make) -> None:
    # As when SIGTERM comes right after a save, or after a start with nothing left to do.
    keeper = train(tmp_path, tiny_objects, 10)
    before = snapshot(tmp_path)
    keeper.save(tiny_objects(10), 10, {"batch": 100})
    train(tmp_path, tiny_objects, 10)
    assert snapshot(tmp_path) == before


def test_checkpoints_of_a_training_that_was_not_resumed_are_not_overwritten(
    tmp_path: Path, tiny_objects: Make
) -> None:
    train(tmp_path, tiny_objects, 10)
    with pytest.raises(DataError, match="checkpoints of another training"):
        keeper_of(tmp_path).save(tiny_objects(1), 1, {})
    assert keeper_of(tmp_path).steps() == [10]


def test_worker_that_is_not_the_chief_reads_and_writes_nothing(tmp_path: Path, tiny_objects: Make) -> None:
    train(tmp_path, tiny_objects, 10)
    before = snapshot(tmp_path)
    worker = keeper_of(tmp_path, writes=False)
    restored = worker.newest()
    assert restored is not None
    worker.save(tiny_objects(20), 20, {})
    assert [restored.step, worker.keep_best(10, 0.5)] == [10, False]
    assert snapshot(tmp_path) == before


def test_checkpoint_that_a_training_removes_while_it_is_read_gives_way_to_a_newer_one(
    tmp_path: Path, tiny_objects: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = train(tmp_path, tiny_objects, 10, keep=1)
    original = model_folder.size_and_sha256

    def meanwhile(path: str) -> tuple[int, str]:
        monkeypatch.setattr(model_folder, "size_and_sha256", original)
        training.save(tiny_objects(20), 20, {"batch": 200})
        return original(path)

    monkeypatch.setattr(model_folder, "size_and_sha256", meanwhile)
    said: list[str] = []
    assert found(tmp_path, tiny_objects, said) == (20, 20.0)
    assert said == []


def test_presence_of_averages_is_recorded(tmp_path: Path, tiny_objects: Make) -> None:
    keeper = train(tmp_path, tiny_objects, 1)
    keeper.save(tiny_objects(2), 2, {}, has_averages=True)
    restored = keeper_of(tmp_path).newest()
    assert restored is not None
    assert restored.has_averages
    file_of(tmp_path, 2, "manifest.json").unlink()
    restored = keeper_of(tmp_path).newest()
    assert restored is not None
    assert not restored.has_averages


def test_remote_folder_works_the_same_way(tiny_objects: Make) -> None:
    folder = "ram://pipebench-checkpoints/run"
    train(folder, tiny_objects, 10, 20, 30, keep=2).keep_best(20, 0.5)
    assert found(folder, tiny_objects) == (30, 30.0)
    best = keeper_of(folder).best()
    assert best is not None
    assert [best.step, keeper_of(folder).steps()] == [20, [20, 30]]


@pytest.mark.parametrize("keep", [0, -1, 1.5])
def test_keep_is_a_count(tmp_path: Path, keep: Any) -> None:
    with pytest.raises(OptionError, match="keep"):
        keeper_of(tmp_path, keep=keep)


TRAINING = """
import sys
import tensorflow as tf
from trainer.checkpoints import CheckpointKeeper
from trainer.metrics_log import MetricsLog

folder = sys.argv[1]
objects = {"weights": tf.Variable(tf.zeros([500_000])), "steps": tf.Variable(0, dtype=tf.int64)}
keeper = CheckpointKeeper(folder, {"num_classes": 5}, keep=2)
restored = keeper.restore_latest(objects)
step = 0 if restored is None else restored.step
log = MetricsLog(folder, step, fields=())
while True:
    step += 1
    objects["weights"].assign_add(tf.ones([500_000]))
    objects["steps"].assign(step)
    log.write_scalars(step, {"loss": 1 / step})
    if step % 3 == 0:
        keeper.save(objects, step, {"batch": step})
        print(step, flush=True)
"""


@pytest.mark.slow
def test_training_that_is_killed_twice_loses_nothing_that_was_saved(tmp_path: Path) -> None:
    saved = 0
    for saves in (4, 7):
        process = subprocess.Popen(
            [sys.executable, "-c", TRAINING, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        with process:
            saved_now = [int(process.stdout.readline()) for _ in range(saves)]
            os.kill(process.pid, signal.SIGKILL)
        assert saved_now[0] > saved
        saved = saved_now[-1]
    objects = {"weights": tf.Variable(tf.zeros([500_000])), "steps": tf.Variable(0, dtype=tf.int64)}
    restored = CheckpointKeeper(str(tmp_path), {"num_classes": 5}, say=print).restore_latest(objects)
    assert restored is not None
    assert restored.step >= saved
    assert objects["weights"].numpy().tolist() == [restored.step] * 500_000
    log = MetricsLog(str(tmp_path), restored.step, fields=())
    log.close()
    steps = [line.split(b",")[0] for line in Path(log.path).read_bytes().splitlines()]
    assert steps == [b'{"step": %d' % step for step in range(1, restored.step + 1)]
