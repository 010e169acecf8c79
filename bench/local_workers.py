"""Several workers of one training on this host, each a process of its own, on the loopback interface."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

FAILED_GRACE_SECONDS = 5.0
"""How long the others may take to end when one has failed: in a collective operation they wait for it, and
hear no signal."""
SIGNAL_GRACE_SECONDS = 600.0
"""How long they may take to save when the user or the machine ends the training."""
POLL_SECONDS = 0.2

PROGRAM = "import sys; from bench.cli import main; main(sys.argv[1:])"


def worker_commands(words: Sequence[str], hosts: Sequence[str]) -> list[list[str]]:
    """Returns the command of each worker.

    Args:
        words: those of `pipebench train`, without the subcommand's `--local-workers`.
        hosts: `host:port` of each worker.
    """
    cluster = ",".join(hosts)
    return [
        [sys.executable, "-c", PROGRAM, *words, "--cluster", cluster, "--task-index", str(index)]
        for index in range(len(hosts))
    ]


def without_option(words: Sequence[str], name: str) -> list[str]:
    """Returns the words of a command without an option and its value, in both spellings."""
    kept: list[str] = []
    skip = False
    for word in words:
        if not skip and word != name and not word.startswith(f"{name}="):
            kept.append(word)
        skip = not skip and word == name
    return kept


def free_hosts(count: int) -> list[str]:
    """Returns addresses on the loopback interface whose ports are free at this moment."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
    finally:
        for each in sockets:
            each.close()


def run_workers(
    commands: Sequence[Sequence[str]],
    write: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
    failed_grace_seconds: float = FAILED_GRACE_SECONDS,
) -> int:
    """Runs processes until all have ended, and ends all when one fails.

    SIGTERM and Ctrl-C are passed on, and waited for.

    Args:
        commands: of each process.
        write: takes each line of their output, with the number of the worker in front.
        clock: monotonic seconds.
        failed_grace_seconds: how long the others may take when one has failed.

    Returns:
        0 if all ended well; 128 plus the number of the signal that this process was sent; else the exit code
        of the first that failed.
    """
    environment = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
    processes = [
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            # A group of its own: Ctrl-C reaches it once, from here.
            start_new_session=True,
        )
        for command in commands
    ]
    readers = [
        threading.Thread(target=_copy, args=(process.stdout, index, write), daemon=True)
        for index, process in enumerate(processes)
    ]
    for reader in readers:
        reader.start()
    try:
        with _signals_noted() as noted:
            code = _supervise(processes, noted, clock, failed_grace_seconds)
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        for reader in readers:
            reader.join()
    return code


def _supervise(
    processes: Sequence[subprocess.Popen[bytes]],
    noted: list[int],
    clock: Callable[[], float],
    failed_grace_seconds: float,
) -> int:
    """Waits for all; returns the exit code of the whole."""
    first_failure = 0
    passed_on = 0
    deadline: float | None = None
    # All are polled, not only the first that runs: that is what tells that another has failed.
    while None in [process.poll() for process in processes]:
        if len(noted) > passed_on:
            _send(processes, noted[passed_on])
            passed_on += 1
            deadline = deadline or clock() + SIGNAL_GRACE_SECONDS
        failed = next((process.returncode for process in processes if process.returncode), 0)
        if failed and not first_failure:
            first_failure = failed
            if not noted:
                _send(processes, signal.SIGTERM)
            deadline = clock() + failed_grace_seconds
        if deadline is not None and clock() > deadline:
            return _exit_code(noted, first_failure)
        with suppress(subprocess.TimeoutExpired):
            next(process for process in processes if process.returncode is None).wait(POLL_SECONDS)
    failed = next((process.returncode for process in processes if process.returncode), 0)
    return _exit_code(noted, first_failure or failed)


def _exit_code(noted: Sequence[int], failure: int) -> int:
    if noted:
        return 128 + noted[0]
    # A process that was killed by a signal has the negative number of it.
    return 128 - failure if failure < 0 else failure


def _send(processes: Sequence[subprocess.Popen[bytes]], number: int) -> None:
    for process in processes:
        if process.poll() is None:
            process.send_signal(number)


def _copy(stream: Any, index: int, write: Callable[[str], None]) -> None:
    for line in stream:
        write(f"[worker {index}] {line.decode(errors='replace').rstrip()}")
    stream.close()


@contextmanager
def _signals_noted() -> Iterator[list[int]]:
    noted: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        noted.append(number)

    previous = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield noted
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
