"""Ctrl-C and SIGTERM at every stage of `pipebench run`, sent to a process that was seen to be there."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest
import tensorflow as tf

DEADLINE_SECONDS = 200.0

PROGRAM = """
import sys
from bench import default_data, prediction
from bench.cli import main
prediction.PROBE_SECONDS, prediction.PROBE_WARMUP_SECONDS = 0.2, 0.0
default_data.EXAMPLES = 400
main(sys.argv[1:])
"""

FAST = ["--batch-size", "4", "--image-size", "16", "--trainer", "emulated", "--step-time-seconds", "0.01"]


class Command:
    """A `pipebench` process whose stderr is a terminal, so that it shows its progress."""

    def __init__(self, *words, **environment):
        ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *map(str, words)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "200", **environment},
            # A group of its own: a terminal sends Ctrl-C to all processes of a command.
            start_new_session=True,
        )
        os.close(theirs)
        self._terminal = ours
        self._deadline = time.monotonic() + DEADLINE_SECONDS
        self.shown = ""

    def wait_for(self, pattern):
        """Waits until the terminal shows a text that matches."""
        while not re.search(pattern, self.shown):
            assert self._read(), f"ended without showing {pattern!r}: {self.shown}"

    def send(self, signal_number):
        os.killpg(self.process.pid, signal_number)

    def finish(self):
        """Returns exit code and stdout, once the process has ended."""
        while self._read():
            pass
        stdout, _ = self.process.communicate(timeout=DEADLINE_SECONDS)
        return self.process.returncode, stdout.decode()

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.process.stdout.close()
        os.close(self._terminal)

    def _read(self):
        ready, _, _ = select.select([self._terminal], [], [], max(0.0, self._deadline - time.monotonic()))
        assert ready, f"nothing happened in {DEADLINE_SECONDS:g} s: {self.shown}"
        try:
            text = os.read(self._terminal, 65536).decode(errors="replace")
        except OSError:  # Linux's way to say that the other side is closed
            return False
        self.shown += text
        return bool(text)


@pytest.fixture
def start():
    """Returns a function that starts `pipebench` with words and environment variables."""
    commands = []

    def begin(*words, **environment):
        commands.append(Command(*words, **environment))
        return commands[-1]

    yield begin
    for command in commands:
        command.close()


@pytest.mark.parametrize(
    "signal_number, exit_code, cause", [(signal.SIGINT, 130, "Ctrl-C"), (signal.SIGTERM, 143, "SIGTERM")]
)
def test_a_run_that_is_stopped_writes_what_it_measured(
    start, small_data, tmp_path, signal_number, exit_code, cause
):
    out = tmp_path / "out"
    command = start(
        "run", "--data-dir", small_data, *FAST, "--echo-factor", 2, "--seconds", 600, "--warmup-seconds", 0,
        "--no-baseline", "--output", out,
    )  # fmt: skip
    command.wait_for(r"step \d+: .*images/s")
    command.send(signal_number)
    code, stdout = command.finish()
    assert code == exit_code, command.shown
    assert "Interrupted: writing what was measured." in command.shown
    assert "Traceback" not in command.shown
    document = json.loads((out / "result.json").read_text())
    assert document["complete"] is False
    assert document["interrupted_by"] == cause
    assert document["counts"]["measured_steps"] >= 1
    assert document["counts"]["trained_examples"] == 4 * document["counts"]["steps"]
    steps = pd.read_csv(out / "steps.csv")
    assert len(steps) == document["counts"]["steps"]
    assert steps["fresh_examples"].sum() == document["counts"]["fresh_examples"]
    assert "INCOMPLETE" in (out / "report.html").read_text()
    assert "INCOMPLETE" in stdout and cause in stdout
    assert not list(out.glob("*.partial"))


@pytest.mark.slow
def test_an_interrupt_in_the_baseline_keeps_the_baselines_steps(start, small_data, tmp_path):
    out = tmp_path / "out"
    command = start(
        "run", "--data-dir", small_data, *FAST, "--echo-factor", 2, "--seconds", 5, "--warmup-seconds", 0,
        "--baseline-seconds", 600, "--output", out,
    )  # fmt: skip
    command.wait_for(r"Baseline without echo[^\n]*step \d+: ")
    command.send(signal.SIGINT)
    code, _ = command.finish()
    assert code == 130, command.shown
    document = json.loads((out / "result.json").read_text())
    assert document["complete"] is False
    assert document["counts"]["steps"] == 0
    assert document["baseline"]["counts"]["steps"] >= 1
    assert (out / "report.html").exists()


@pytest.mark.slow
def test_an_interrupt_while_images_are_generated_leaves_nothing_half_done(start, tmp_path):
    cache, out = tmp_path / "cache", tmp_path / "out"
    words = ["run", *FAST, "--epochs", 1, "--no-baseline", "--output", out]
    command = start(*words, XDG_CACHE_HOME=str(cache))
    command.wait_for(r"[1-9]\d* images ?\r?")
    command.send(signal.SIGINT)
    code, stdout = command.finish()
    assert code == 130, command.shown
    assert stdout == ""
    assert "Interrupted." in command.shown
    assert "Traceback" not in command.shown
    assert not list(cache.rglob("dataset.json"))
    for shard in cache.rglob("train-*-of-*[0-9]"):
        # A shard under its final name is whole: it reads to its end.
        assert sum(1 for _ in tf.data.TFRecordDataset(str(shard))) > 0
    assert not (out / "result.json").exists()


@pytest.mark.slow
def test_real_training_that_is_stopped_writes_its_steps(start, small_data, tmp_path):
    out = tmp_path / "out"
    command = start(
        "run", "--data-dir", small_data, "--batch-size", 4, "--image-size", 75, "--trainer", "inception_v3",
        "--width-multiplier", 0.125, "--num-classes", 4, "--steps", 100000, "--no-baseline", "--output", out,
    )  # fmt: skip
    command.wait_for(r"step \d+")
    command.send(signal.SIGINT)
    code, _ = command.finish()
    assert code == 130, command.shown
    document = json.loads((out / "result.json").read_text())
    assert document["complete"] is False
    assert document["counts"]["steps"] >= 1
    assert document["counts"]["trained_examples"] == 4 * document["counts"]["steps"]
    assert (out / "report.html").exists()
