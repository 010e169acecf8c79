"""Data echoing for tf.data: use each element several times, at a named point, and count what is fresh.

`dataset.apply(echoing.echo(2, shuffle_buffer_size=10_000))`

Importing the package does not import TensorFlow; using `echo` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from echoing.echo_factor import EchoFactor
from echoing.errors import DataError, OptionError, PipebenchError, RecordError
from echoing.insertion_point import InsertionPoint

if TYPE_CHECKING:
    from echoing.echo_operator import echo

__all__ = [
    "DataError",
    "EchoFactor",
    "InsertionPoint",
    "OptionError",
    "PipebenchError",
    "RecordError",
    "echo",
]


def __getattr__(name: str) -> Any:
    if name in ("count_uses", "echo"):
        from echoing import echo_operator

        return getattr(echo_operator, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
