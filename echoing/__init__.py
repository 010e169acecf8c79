"""Data echoing for tf.data: use each element several times, at a named point, and count what is fresh.

`dataset.apply(echoing.echo(2, shuffle_buffer_size=10_000))`

Importing the package does not import TensorFlow; using `echo` does.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from echoing.echo_factor import EchoFactor
from echoing.errors import DataError, EchoWarning, OptionError, PipebenchError, RecordError
from echoing.insertion_point import InsertionPoint

if TYPE_CHECKING:
    from echoing.echo_operator import count_uses, echo
    from echoing.elastic_options import ElasticOptions
    from echoing.keras_callback import EchoCallback
    from echoing.measured_echo import MeasuredEcho

_HOMES = {
    "EchoCallback": "keras_callback",
    "ElasticOptions": "elastic_options",
    "MeasuredEcho": "measured_echo",
    "count_uses": "echo_operator",
    "echo": "echo_operator",
}

__all__ = [
    "DataError",
    "EchoCallback",
    "EchoFactor",
    "EchoWarning",
    "ElasticOptions",
    "InsertionPoint",
    "MeasuredEcho",
    "OptionError",
    "PipebenchError",
    "RecordError",
    "count_uses",
    "echo",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"echoing.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
