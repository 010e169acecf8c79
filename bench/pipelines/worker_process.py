"""The measuring side of a pipeline's process: starts it, asks it to measure, lets it rest, ends it."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
from dataclasses import asdict
from typing import IO, Any

from bench.pipelines.comparison import Round
from bench.pipelines.timing import Timing
from bench.pipelines.variants import Task, Variant

ERROR_CHARACTERS = 600
"""Of a failed worker's last words that are passed on."""


class WorkerError(Exception):
    """A pipeline's process failed; the message says how."""


class WorkerProcess:
    """The process of one pipeline, and all processes that it starts.

    Between two measurements they are stopped by the system (SIGSTOP). Left to themselves they would go on to
    fill their buffers, for seconds of all cores, while the next pipeline is measured.

    They are a session of their own: Ctrl-C reaches the measuring process alone, which then ends them. Should
    that be killed, they come to the end of their stdin and end too. What they put into the folder for
    temporary files is removed with them.

    Args:
        variant: which pipeline.
        task: what it reads.
        timing: how long it warms up, measures and is waited for.
    """

    def __init__(self, variant: Variant, task: Task, timing: Timing) -> None:
        self._timing = timing
        self._scratch = tempfile.TemporaryDirectory(prefix="pipebench-", ignore_cleanup_errors=True)
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `stop`
        words = [
            variant.module,
            json.dumps(asdict(task) | {"settings": dict(variant.settings)}),
            str(timing.warm_up_seconds),
        ]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.pipelines.worker", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env={"TF_CPP_MIN_LOG_LEVEL": "3", **os.environ, "TMPDIR": self._scratch.name},
            text=True,
            start_new_session=True,
        )

    def wait_until_ready(self) -> None:
        """Waits until the pipeline is warm, then lets it rest.

        Raises:
            WorkerError: it failed, or the time is over.
        """
        self._answer(self._timing.start_patience_seconds)
        self._signal(signal.SIGSTOP)

    def measure(self) -> Round:
        """Wakes the pipeline, takes batches for a while, and lets it rest again.

        Raises:
            WorkerError: it failed, or does not answer.
        """
        order = {
            "settle_seconds": self._timing.settle_seconds,
            "seconds": self._timing.measured_seconds,
        }
        self._signal(signal.SIGCONT)
        # A process that has ended says why when it is asked for its answer.
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(order), file=_pipe(self._process.stdin), flush=True)
        measured = Round(**self._answer(self._timing.answer_seconds))
        self._signal(signal.SIGSTOP)
        return measured

    def stop(self) -> None:
        """Ends the process and all that it started; more than once does nothing."""
        if self._stderr.closed:
            return
        try:
            self._signal(signal.SIGCONT)
            with contextlib.suppress(OSError):
                _pipe(self._process.stdin).close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(self._timing.stop_patience_seconds)
        finally:
            # The group outlives its first process where that left others behind.
            self._signal(signal.SIGKILL)
            self._process.wait()
            _pipe(self._process.stdout).close()
            self._stderr.close()
            self._scratch.cleanup()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):  # all have ended
            os.killpg(self._process.pid, number)

    def _answer(self, patience_seconds: float) -> dict[str, Any]:
        stdout = _pipe(self._process.stdout)
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            if not selector.select(patience_seconds):
                raise WorkerError(f"it gave no answer within {patience_seconds:g} seconds")
        line = stdout.readline()
        if not line:
            raise WorkerError(self._last_words())
        answer = json.loads(line)
        assert isinstance(answer, dict)
        if "error" in answer:
            raise WorkerError(_shortened(answer["error"]))
        return answer

    def _last_words(self) -> str:
        code = self._process.wait()
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").strip().splitlines()
        said = _shortened(lines[-1]) if lines else "it said nothing"
        how = f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
        return f"it ended with {how}: {said}"


def _shortened(text: str) -> str:
    return text if len(text) <= ERROR_CHARACTERS else text[: ERROR_CHARACTERS - 3] + "..."


def _pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream
