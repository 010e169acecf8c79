"""Maps in parallel with results in the order of the input and a bounded number of them in memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Progress = Callable[[int, int], None]
"""Called with (done, total) after each example, from the thread that called the tool."""

IN_FLIGHT_PER_WORKER = 4
"""Results that may wait for each worker: enough that none idles while the parent writes."""


def ordered_map(
    executor: Executor, function: Callable[[Item], Result], items: Iterable[Item], in_flight: int
) -> Iterator[Result]:
    """Yields `function(item)` for each item, in order.

    Unlike `Executor.map` it takes items only as results are consumed, so that they do not pile up.

    Args:
        executor: runs the calls; stays open.
        function: called in the workers. Its exception is raised here, in the place of its result.
        items: taken one by one.
        in_flight: most calls that are running, waiting, or done but not yet consumed.
    """
    pending: deque[Future[Result]] = deque()
    try:
        for item in items:
            if len(pending) >= in_flight:
                yield pending.popleft().result()
            pending.append(executor.submit(function, item))
        while pending:
            yield pending.popleft().result()
    finally:
        for future in pending:
            future.cancel()


def available_cores() -> int:
    """Returns how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
