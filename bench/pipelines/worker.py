"""The process that one pipeline runs in: takes batches when it is told to, and says how many.

A process of its own for each, so that memory, threads and settings of one do not touch the others. While it
waits to be told, its buffers fill up and it rests. Speaks lines of JSON: on stdin `{"settle_seconds": ...,
"seconds": ...}` for each measurement, and the end of stdin to stop; on stdout `{"ready": true}` once batches
come, then an answer for each measurement.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import psutil

from bench.pipelines.variants import Task

WARM_UP_SECONDS = 3.0
"""From the first batch until ready: tf.data's tuning of parallelism settles in this time."""


def main(arguments: list[str]) -> None:
    """Runs the worker.

    Args:
        arguments: the module with `open_batches`, and the fields of the task as JSON.
    """
    module, task = arguments[0], Task(**json.loads(arguments[1]))
    # Libraries print on stdout too; the answers keep it for themselves.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    batches = importlib.import_module(module).open_batches(task)
    take_for(batches, WARM_UP_SECONDS)
    _say(answers, {"ready": True})
    for line in sys.stdin:
        order = json.loads(line)
        # What was made while the process rested is no measure of its speed.
        take_for(batches, order["settle_seconds"])
        cpu_seconds = _cpu_seconds()
        images, seconds = take_for(batches, order["seconds"])
        answer = {"images": images, "seconds": seconds, "cpu_seconds": _cpu_seconds() - cpu_seconds}
        _say(answers, answer | {"peak_memory_bytes": _peak_memory_bytes()})


def take_for(batches: Iterator[int], seconds: float) -> tuple[int, float]:
    """Takes batches until the time is over; returns the images in them and the time that it took."""
    begun = time.perf_counter()
    images = 0
    while True:
        images += next(batches)
        elapsed = time.perf_counter() - begun
        if elapsed >= seconds:
            return images, elapsed


def _say(answers: Any, document: dict[str, Any]) -> None:
    answers.write(json.dumps(document) + "\n")
    answers.flush()


def _processes() -> list[psutil.Process]:
    own = psutil.Process()
    return [own, *own.children(recursive=True)]


def _cpu_seconds() -> float:
    total = 0.0
    for process in _processes():
        times = process.cpu_times()
        total += times.user + times.system
    return total


def _peak_memory_bytes() -> int | None:
    """Returns the peak of resident memory over all processes; None where the system does not say."""
    total = 0
    for process in _processes():
        try:
            with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
                kibibytes = next(line.split()[1] for line in status if line.startswith("VmHWM"))
        except (OSError, StopIteration):
            return None
        total += int(kibibytes) * 1024
    return total


if __name__ == "__main__":
    main(sys.argv[1:])
