"""Measures the pipelines in turn, round by round, each in a process of its own."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Sequence

from bench.pipelines.comparison import Comparison, Measured, Round
from bench.pipelines.timing import Timing
from bench.pipelines.variants import Task, Variant
from bench.pipelines.worker_process import WorkerError, WorkerProcess


def compare_pipelines(
    variants: Sequence[Variant],
    task: Task,
    rounds: int,
    timing: Timing,
    on_progress: Callable[[float, str], None] = lambda share, note: None,
) -> Comparison:
    """Measures every variant once a round; every second round in the opposite order.

    A variant whose process fails is left out from there on, with the reason, and its process is ended at
    once, so that it takes neither memory nor cores from the others. However this function ends, no process is
    left.

    Args:
        variants: what to compare.
        task: what they read.
        rounds: measurements of each.
        timing: how long they take.
        on_progress: is told the share that is done, 0 to 1, and what is going on.
    """
    measured = [Measured(variant) for variant in variants]
    steps = itertools.count()
    total = len(variants) * (rounds + 1)

    def attempt(one: Measured, note: str, work: Callable[[WorkerProcess], Round | None]) -> None:
        on_progress(next(steps) / total, note)
        if one.error:
            return
        worker = workers[one.variant.name]
        try:
            measurement = work(worker)
        except WorkerError as error:
            one.error = str(error)
            worker.stop()
            return
        if measurement is not None:
            one.rounds.append(measurement)

    with contextlib.ExitStack() as stack:
        workers: dict[str, WorkerProcess] = {}
        # One after the other: each warms up with the whole machine for itself.
        for one in measured:
            worker = WorkerProcess(one.variant, task, timing)
            stack.callback(worker.stop)
            workers[one.variant.name] = worker
            attempt(one, f"starting {one.variant.name}", WorkerProcess.wait_until_ready)
        for number in range(rounds):
            for one in measured if number % 2 == 0 else reversed(measured):
                note = f"round {number + 1} of {rounds}: {one.variant.name}"
                attempt(one, note, WorkerProcess.measure)
    return Comparison(measured)
