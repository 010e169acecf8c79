from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from echoing.errors import OptionError, PipebenchError
from trainer.profile_window import ProfileSteps, ProfileWindow, start_profiler, stop_profiler


class Profiler:
    """Writes down how many steps were done when it was started and stopped."""

    def __init__(self) -> None:
        self.done = 0
        self.events: list[tuple[str, int]] = []

    def start(self, folder: str) -> None:
        self.events.append((f"start {folder}", self.done))

    def stop(self) -> None:
        self.events.append(("stop", self.done))


def train(steps: ProfileSteps | None, done: int, until: int, per_loop: int) -> tuple[list[int], Any, Any]:
    """Trains as the session does: returns the lengths of the loops, the profiler's events and the window."""
    profiler = Profiler()
    window = ProfileWindow(steps, "run", profiler.start, profiler.stop)
    loops = []
    while done < until:
        profiler.done = done
        loops.append(window.before(done, min(per_loop, until - done)))
        done += loops[-1]
        profiler.done = done
        window.after(done)
    window.close()
    return loops, profiler.events, window


@pytest.mark.parametrize(
    ("text", "done", "until", "loops", "events"),
    [
        ("1,1", 0, 12, [1, 5, 5, 1], [0, 1]),
        ("3,4", 0, 12, [2, 2, 5, 3], [2, 4]),
        ("4,14", 0, 20, [3, 5, 5, 1, 5, 1], [3, 14]),
        ("6,10", 0, 12, [5, 5, 2], [5, 10]),
        # Resumed before, inside and after the window.
        ("6,8", 5, 12, [3, 4], [5, 8]),
        ("6,8", 7, 12, [1, 4], [7, 8]),
        ("6,8", 8, 12, [4], []),
        # The training ends in the window, at its end, or before it.
        ("6,80", 0, 12, [5, 5, 2], [5, 12]),
        ("6,12", 0, 12, [5, 5, 2], [5, 12]),
        ("13,14", 0, 12, [5, 5, 2], []),
    ],
)
def test_profile_covers_exactly_the_steps_of_the_window(
    text: str, done: int, until: int, loops: list[int], events: list[int]
) -> None:
    found, profiler, window = train(ProfileSteps.parse(text), done, until, 5)
    assert found == loops
    assert profiler == list(zip(["start run", "stop"], events, strict=False))
    assert (window.profiled_from, window.profiled_to) == (tuple(events) or (None, None))


def test_no_window_changes_nothing() -> None:
    loops, events, window = train(None, 0, 12, 5)
    assert (loops, events, window.active) == ([5, 5, 2], [], False)


def test_profile_that_cannot_be_written_is_not_written_twice() -> None:
    calls = []

    def stop() -> None:
        calls.append(1)
        raise PipebenchError("disk full")

    window = ProfileWindow(ProfileSteps(1, 2), "run", lambda folder: None, stop)
    window.before(0, 2)
    with pytest.raises(PipebenchError):
        window.after(2)
    window.close()
    assert calls == [1]


@pytest.mark.parametrize("text", ["", "5", "5,", "a,b", "1,2,3", "-1,2", "1.5,2", "0,2", "5,4"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(OptionError, match="profile_steps is"):
        ProfileSteps.parse(text)


def test_blanks_around_the_numbers_are_allowed() -> None:
    assert ProfileSteps.parse("5, 7") == ProfileSteps(5, 7)


def test_reading_the_option_does_not_import_tensorflow() -> None:
    code = (
        "import sys; from trainer.profile_window import ProfileSteps; ProfileSteps.parse('1,2'); "
        "sys.exit('tensorflow' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_trace_of_real_steps_lies_under_the_model_folder(tmp_path: Path) -> None:
    window = ProfileWindow(ProfileSteps(2, 3), str(tmp_path))
    for done in range(4):
        assert window.before(done, 1) == 1
        tf.linalg.matmul(tf.ones([8, 8]), tf.ones([8, 8])).numpy()
        window.after(done + 1)
    (trace,) = (tmp_path / "plugins" / "profile").rglob("*.xplane.pb")
    assert b"MatMul" in trace.read_bytes()


def test_second_profiler_is_refused_with_the_way_out(tmp_path: Path) -> None:
    start_profiler(str(tmp_path))
    try:
        with pytest.raises(PipebenchError, match=r"cannot be started.*profile-steps"):
            start_profiler(str(tmp_path))
    finally:
        stop_profiler()
