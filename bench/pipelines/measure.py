"""Measures the pipelines in turn, round by round, each in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import IO, Any

from bench.pipelines.comparison import Comparison, Measured, Round
from bench.pipelines.variants import Task, Variant

SETTLE_SECONDS = 1.0
"""Taken before each measurement: long enough to use up what lies ready in the buffers."""

START_SECONDS = 300.0
"""Time for a worker to get going: imports, a conversion of the data, the first batches."""

PATIENCE = 10.0
"""A measurement that takes so many times its own length, and a minute, is given up."""

ERROR_CHARACTERS = 600
"""Of a failed worker's last words that are passed on."""


class WorkerError(Exception):
    """A pipeline's process failed; the message says how."""


class Worker:
    """The process of one pipeline.

    Args:
        variant: which pipeline.
        task: what it reads.
    """

    def __init__(self, variant: Variant, task: Task) -> None:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the worker
        environment = {"TF_CPP_MIN_LOG_LEVEL": "3", **os.environ}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.pipelines.worker", variant.module, json.dumps(asdict(task))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=environment,
            text=True,
        )

    def wait_until_ready(self, seconds: float = START_SECONDS) -> None:
        """Waits until batches come.

        Raises:
            WorkerError: it ended, or the time is over.
        """
        self._answer(seconds)

    def measure(self, seconds: float) -> Round:
        """Takes batches for a while.

        Raises:
            WorkerError: it ended, or does not answer.
        """
        order = {"settle_seconds": min(SETTLE_SECONDS, seconds), "seconds": seconds}
        try:
            print(json.dumps(order), file=_pipe(self._process.stdin), flush=True)
        except OSError as error:
            raise WorkerError(self._last_words()) from error
        return Round(**self._answer(60.0 + PATIENCE * seconds))

    def stop(self) -> None:
        """Ends the process and all that it started."""
        import psutil

        with contextlib.suppress(psutil.NoSuchProcess):
            for child in psutil.Process(self._process.pid).children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.kill()
        self._process.kill()
        self._process.communicate()
        self._stderr.close()

    def _answer(self, seconds: float) -> dict[str, Any]:
        stdout = _pipe(self._process.stdout)
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            if not selector.select(seconds):
                raise WorkerError(f"it gave no answer within {seconds:.0f} seconds")
        line = stdout.readline()
        if not line:
            raise WorkerError(self._last_words())
        answer = json.loads(line)
        assert isinstance(answer, dict)
        return answer

    def _last_words(self) -> str:
        self._process.wait()
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").strip().splitlines()
        said = lines[-1] if lines else "it said nothing"
        return f"it ended with exit code {self._process.returncode}: {said[-ERROR_CHARACTERS:]}"


def compare_pipelines(
    variants: Sequence[Variant],
    task: Task,
    rounds: int,
    seconds: float,
    on_progress: Callable[[float, str], None] = lambda share, note: None,
) -> Comparison:
    """Measures every variant once a round; every second round in the opposite order.

    A variant whose process fails is left out from there on, with the reason.

    Args:
        variants: what to compare.
        task: what they read.
        rounds: measurements of each.
        seconds: length of each measurement.
        on_progress: is told the share that is done, and what is going on.
    """
    measured = [Measured(variant) for variant in variants]
    with contextlib.ExitStack() as stack:
        workers: dict[str, Worker] = {}
        total = len(variants) * (rounds + 1)
        done = _counter()
        for one in measured:
            on_progress(next(done) / total, f"starting {one.variant.name}")
            worker = Worker(one.variant, task)
            stack.callback(worker.stop)
            workers[one.variant.name] = worker
            # One after the other: what starts meanwhile would spoil nothing yet, but memory is short.
            _note_failure(one, worker.wait_until_ready)
        for number in range(rounds):
            for one in measured if number % 2 == 0 else reversed(measured):
                on_progress(next(done) / total, f"round {number + 1} of {rounds}: {one.variant.name}")
                if not one.error:
                    _note_failure(one, lambda one=one: _measure(one, workers[one.variant.name], seconds))
        return Comparison(measured)


def _measure(one: Measured, worker: Worker, seconds: float) -> None:
    one.rounds.append(worker.measure(seconds))


def _note_failure(one: Measured, work: Callable[[], None]) -> None:
    try:
        work()
    except WorkerError as error:
        one.error = str(error)


def _counter() -> Iterator[int]:
    number = 0
    while True:
        yield number
        number += 1


def _pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream
