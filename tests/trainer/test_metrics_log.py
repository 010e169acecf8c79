from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoing.errors import DataError, OptionError
from trainer.metrics_log import EVALUATIONS_NAME, METRICS_FIELDS, MetricsLog, read_lines


def values_at(step: int) -> dict[str, Any]:
    return {
        "loss": 1 / step,
        "learning_rate": 0.1 * step,
        "examples_fresh": 32 * step,
        "examples_trained": 64 * step,
    }


def train(folder: Path, done: int, until: int, every: int = 10) -> MetricsLog:
    """Reports as a training does that was restored at step `done`."""
    log = MetricsLog(str(folder), done)
    for step in range(done + every, until + 1, every):
        log.write_scalars(step, values_at(step))
    log.close()
    return log


def lines_in(folder: Path, name: str = "metrics.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def test_line_has_the_names_that_scripts_rely_on(tmp_path: Path) -> None:
    train(tmp_path / "run", 0, 10)
    assert (tmp_path / "run" / "metrics.jsonl").read_text() == (
        '{"step": 10, "loss": 0.1, "learning_rate": 1.0, "examples_fresh": 320, "examples_trained": 640}\n'
    )


@pytest.mark.parametrize(("restored", "cut"), [(0, 5), (10, 4), (29, 3), (30, 2), (50, 0), (70, 0)])
def test_lines_after_the_restored_step_are_cut_and_written_again(
    tmp_path: Path, restored: int, cut: int
) -> None:
    train(tmp_path, 0, 50)
    log = MetricsLog(str(tmp_path), restored)
    log.close()
    assert [line["step"] for line in lines_in(tmp_path)] == list(range(10, min(restored, 50) + 1, 10))
    assert (log.lines_cut, log.last_step) == (cut, min(restored, 50) // 10 * 10)


def test_restarts_give_the_lines_of_a_run_without_them(tmp_path: Path) -> None:
    train(tmp_path / "whole", 0, 60)
    train(tmp_path / "broken", 0, 40)
    train(tmp_path / "broken", 20, 50)
    train(tmp_path / "broken", 50, 60)
    assert (tmp_path / "broken" / "metrics.jsonl").read_text() == (
        tmp_path / "whole" / "metrics.jsonl"
    ).read_text()


@given(st.integers(0, 400), st.integers(0, 40))
def test_file_cut_at_any_byte_is_repaired(tmp_path_factory: Any, size: int, restored: int) -> None:
    folder = tmp_path_factory.mktemp("log")
    train(folder, 0, 40)
    path = folder / "metrics.jsonl"
    content = path.read_bytes()[:size]
    path.write_bytes(content)
    # What is whole is what has its closing brace, with or without the end of the line.
    whole = [json.loads(line)["step"] for line in content.split(b"\n") if line.endswith(b"}")]
    log = MetricsLog(str(folder), restored)
    log.write_scalars(50, values_at(50))
    log.close()
    assert [line["step"] for line in lines_in(folder)] == [step for step in whole if step <= restored] + [50]


def test_zeros_that_a_power_failure_leaves_at_the_end_are_cut(tmp_path: Path) -> None:
    train(tmp_path, 0, 20)
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(path.read_bytes() + bytes(100))
    train(tmp_path, 20, 30)
    assert [line["step"] for line in lines_in(tmp_path)] == [10, 20, 30]


def test_kill_in_the_cut_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train(tmp_path, 0, 50)
    before = (tmp_path / "metrics.jsonl").read_bytes()

    def killed(*arguments: Any, **keywords: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tensorflow.io.gfile.rename", killed)
    with pytest.raises(KeyboardInterrupt):
        MetricsLog(str(tmp_path), 20)
    assert (tmp_path / "metrics.jsonl").read_bytes() == before


def test_whole_file_is_not_written_again(tmp_path: Path) -> None:
    train(tmp_path, 0, 20)
    before = (tmp_path / "metrics.jsonl").stat()
    MetricsLog(str(tmp_path), 20).close()
    after = (tmp_path / "metrics.jsonl").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_line_is_with_the_operating_system_before_the_log_is_closed(tmp_path: Path) -> None:
    log = MetricsLog(str(tmp_path), 0)
    log.write_scalars(10, values_at(10))
    assert [line["step"] for line in lines_in(tmp_path)] == [10]
    log.close()


@pytest.mark.parametrize("text", ["{", "{}", "3", '{"step": "3"}', '{"step": null}', ""])
def test_other_content_before_the_end_is_an_error_with_its_line(tmp_path: Path, text: str) -> None:
    content = f'{{"step": 1}}\n{text}\n{{"step": 3}}\n'
    (tmp_path / "metrics.jsonl").write_text(content)
    with pytest.raises(DataError, match=r"Line 2 of .*metrics.jsonl is no line"):
        MetricsLog(str(tmp_path), 3)
    assert (tmp_path / "metrics.jsonl").read_text() == content


@pytest.mark.parametrize("step", [3, 2, -1])
def test_steps_that_do_not_follow_one_another_are_an_error(step: int) -> None:
    with pytest.raises(DataError, match=f"Line 2 of log has step {step}, .* step 3"):
        read_lines(b'{"step": 3}\n{"step": %d}\n' % step, "log")


def test_floats_keep_all_digits_and_numpy_numbers_are_plain(tmp_path: Path) -> None:
    log = MetricsLog(str(tmp_path), 0, fields=())
    log.write_scalars(
        1, {"loss": np.float32(0.1), "rate": 0.1 + 0.2, "count": np.int64(2**53 + 1), "au": None}
    )
    log.close()
    (line,) = lines_in(tmp_path)
    assert line == {
        "step": 1,
        "loss": 0.10000000149011612,
        "rate": 0.30000000000000004,
        "count": 9007199254740993,
        "au": None,
    }


@pytest.mark.parametrize("value", [float("nan"), float("inf"), np.float32("nan")])
def test_value_that_json_cannot_hold_is_refused(tmp_path: Path, value: Any) -> None:
    log = MetricsLog(str(tmp_path), 0, fields=())
    with pytest.raises(ValueError, match="loss"):
        log.write_scalars(1, {"loss": value})
    log.close()
    assert lines_in(tmp_path) == []


@pytest.mark.parametrize("step", [10, 9])
def test_step_must_follow(tmp_path: Path, step: int) -> None:
    log = train(tmp_path, 0, 10)
    with pytest.raises(ValueError, match=f"Step {step} does not follow step 10"):
        log.write_scalars(step, values_at(step))


@pytest.mark.parametrize("name", METRICS_FIELDS)
def test_every_field_is_needed(tmp_path: Path, name: str) -> None:
    log = MetricsLog(str(tmp_path), 0)
    values = values_at(1)
    del values[name]
    with pytest.raises(ValueError, match=f"needs {name}"):
        log.write_scalars(1, values)
    log.close()


def test_restored_step_is_a_count(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="step"):
        MetricsLog(str(tmp_path), -1)


def test_full_disk_is_an_error_with_the_file(tmp_path: Path, files_at_most: Any) -> None:
    log = train(tmp_path, 0, 10)
    log = MetricsLog(str(tmp_path), 10)
    with (
        files_at_most(150),
        pytest.raises(DataError, match=r"Cannot write .*metrics.jsonl: .*File too large"),
    ):
        log.write_scalars(20, values_at(20))
    log.close()
    train(tmp_path, 10, 20)
    assert [line["step"] for line in lines_in(tmp_path)] == [10, 20]


def test_evaluation_done_before_a_kill_is_known_and_one_beyond_the_checkpoint_is_not(tmp_path: Path) -> None:
    # Steps of evaluations: what a training that is killed after the evaluation at 20 finds when resumed.
    def log_at(step: int) -> MetricsLog:
        return MetricsLog(str(tmp_path), step, EVALUATIONS_NAME, ["top_1"])

    log = log_at(0)
    log.write_scalars(10, {"top_1": 0.1})
    log.write_scalars(20, {"top_1": 0.2})
    resumed = log_at(20)
    assert (resumed.last_step, resumed.last) == (20, {"step": 20, "top_1": 0.2})
    resumed.close()
    earlier = log_at(10)
    assert earlier.last_step == 10
    earlier.close()
    log.close()


def test_remote_file_is_appended_to(tmp_path: Path) -> None:
    folder = "ram://pipebench-metrics/run"
    for done in (0, 20):
        log = MetricsLog(folder, done)
        for step in range(done + 10, done + 31, 10):
            log.write_scalars(step, values_at(step))
        log.close()
    final = MetricsLog(folder, 50)
    assert (final.lines_cut, final.last_step) == (0, 50)
    final.close()
