"""pipebench's own input pipeline, uint8 images."""

from __future__ import annotations

from collections.abc import Iterator

from bench.pipelines.ours import open_our_batches
from bench.pipelines.variants import Task


def open_batches(task: Task) -> Iterator[int]:
    """Yields the number of images of each batch, for ever."""
    return open_our_batches(task, "uint8")
