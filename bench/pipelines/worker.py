"""The process that one pipeline runs in: takes batches when it is told to, and says how many.

A process of its own for each, so that memory, threads and settings of one do not touch the others. While
others are measured, it is stopped. It speaks lines of JSON: on stdin
`{"settle_seconds": ..., "seconds": ...}` for each measurement, and the end of stdin to stop; on stdout
`{"ready": true}` once the pipeline is warm, then an answer for each measurement; `{"error": ...}` in place of
either, and the traceback on stderr, where the pipeline fails.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import psutil

from bench.pipelines.variants import Task

_PR_SET_PDEATHSIG = 1
"""From linux/prctl.h."""


def main(arguments: list[str]) -> int:
    """Runs the worker and returns its exit code.

    Args:
        arguments: the module with `open_batches`, the fields of the task as JSON, and for how many seconds to
            take batches before the pipeline counts as warm.
    """
    module, task, warm_up_seconds = arguments[0], Task(**json.loads(arguments[1])), float(arguments[2])
    _wake_when_the_parent_ends()
    # Libraries print on stdout too; the answers keep it for themselves.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        for answer in _answers(module, task, warm_up_seconds):
            print(json.dumps(answer), file=answers, flush=True)
    except BrokenPipeError:  # nobody measures any more
        return 1
    except Exception as error:  # whatever a library raises is what its variant failed of
        traceback.print_exc()
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps({"error": reason}), file=answers, flush=True)
        return 1
    # The library's processes are still stopped where the measuring process was killed: they must end too.
    os.killpg(0, signal.SIGCONT)
    return 0


def take_for(
    batches: Iterator[int], seconds: float, clock: Callable[[], float] = time.perf_counter
) -> tuple[int, float]:
    """Takes batches until the time is over: at least one, and the last one whole.

    Args:
        batches: the number of images of each.
        seconds: how long.
        clock: monotonic, in seconds.

    Returns:
        The images taken and the seconds that it took.

    Raises:
        RuntimeError: the batches come to an end.
    """
    begun = clock()
    images = 0
    for batch in batches:
        images += batch
        elapsed = clock() - begun
        if elapsed >= seconds:
            return images, elapsed
    raise RuntimeError("the pipeline came to its end")


def _wake_when_the_parent_ends() -> None:
    """Lets the kernel send SIGCONT should the measuring process be killed while this one is stopped.

    On Linux; elsewhere a killed measuring process may leave stopped ones behind.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGCONT)


def _answers(module: str, task: Task, warm_up_seconds: float) -> Iterator[dict[str, Any]]:
    batches = importlib.import_module(module).open_batches(task)
    take_for(batches, 0.0)
    take_for(batches, warm_up_seconds)
    yield {"ready": True}
    for line in sys.stdin:
        order = json.loads(line)
        # What was made before the process was stopped is no measure of its speed.
        take_for(batches, order["settle_seconds"])
        cpu_seconds = _cpu_seconds()
        images, seconds = take_for(batches, order["seconds"])
        yield {
            "images": images,
            "seconds": seconds,
            "cpu_seconds": _cpu_seconds() - cpu_seconds,
            "peak_memory_bytes": _peak_memory_bytes(),
        }


def _processes() -> list[psutil.Process]:
    own = psutil.Process()
    return [own, *own.children(recursive=True)]


def _cpu_seconds() -> float:
    """Returns the processor time of all processes, with that of those that have ended."""
    total = 0.0
    for process in _processes():
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def _peak_memory_bytes() -> int | None:
    """Returns the sum of the processes' peaks of resident memory; None where the system does not say.

    What processes share counts once for each, and so do pages of files that they map.
    """
    own = _peak_bytes(os.getpid())
    if own is None:
        return None
    # Of those that have ended, or end just now, nothing is known any more.
    children = (_peak_bytes(process.pid) for process in _processes()[1:])
    return own + sum(peak for peak in children if peak is not None)


def _peak_bytes(pid: int) -> int | None:
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as status:
            kibibytes = next(line.split()[1] for line in status if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return None
    return int(kibibytes) * 1024


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
