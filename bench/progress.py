"""Progress on the terminal while a command works: a bar on stderr, or plain lines where there is none."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Progress(Protocol):
    """Says how far a task has come."""

    def update(self, share: float, note: str = "") -> None:
        """Shows that `share`, 0 to 1, is done, with a short note."""
        ...


class _Silent:
    def update(self, share: float, note: str = "") -> None:
        pass


def say(message: str) -> None:
    """Writes one line to stderr, where everything goes that is not the result."""
    print(message, file=sys.stderr, flush=True)


@contextmanager
def progress_bar(title: str) -> Iterator[Progress]:
    """Shows a progress bar for the time of the block; without a terminal only the title is written."""
    if not sys.stderr.isatty():
        say(title)
        yield _Silent()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as RichProgress

    with RichProgress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=Console(stderr=True),
    ) as bar:
        task = bar.add_task(title, total=1.0, note="")

        class _Bar:
            def update(self, share: float, note: str = "") -> None:
                bar.update(task, completed=share, note=note)

        yield _Bar()
