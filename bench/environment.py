"""What a result was measured on: versions, processor, memory, and the command that repeats it."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shlex
from collections.abc import Sequence
from typing import Any

_CPU_INFO = "/proc/cpuinfo"


def describe_environment() -> dict[str, Any]:
    """Returns versions, processor, cores usable by this process and memory, for the result record."""
    import psutil

    packages = ("pipebench", "tensorflow", "numpy", "keras")
    return {
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in packages}},
        "platform": platform.platform(),
        "cpu": _cpu_model(),
        "cpu_cores": usable_cores(),
        "memory_bytes": psutil.virtual_memory().total,
    }


def usable_cores() -> int:
    """Returns the number of processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def repeat_command(arguments: Sequence[str]) -> str:
    """Returns the shell line that repeats a command.

    Args:
        arguments: those after the program's name.
    """
    return shlex.join(["pipebench", *arguments])


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cpu_model() -> str:
    try:
        with open(_CPU_INFO, encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
