"""The errors that a user can cause, under one base, so that one `except` catches them all.

These classes sit in the package that imports nothing of ours because every other package raises them.
The command line prints the message of a `PipebenchError` without a traceback and exits with its code.
"""

from __future__ import annotations


class PipebenchError(Exception):
    """Base of every error that the user can correct.

    Attributes:
        exit_code: exit status of the command line.
    """

    exit_code = 2


class EchoWarning(UserWarning):
    """A legal setting that wastes what the echo is for; the message says how much, and the way out."""


class OptionError(PipebenchError, ValueError):
    """An option has a value that is not allowed.

    The message says what was wrong, the value received, what is allowed and what to do.

    Args:
        name: the option as the user knows it, such as `echo_factor`.
        value: the value received; shown with `repr`.
        allowed: what is allowed, such as `an integer >= 1`.
        advice: what to do about it; left out when the rule alone says it.
    """

    def __init__(self, name: str, value: object, allowed: str, advice: str = "") -> None:
        self.name = name
        self.value = value
        message = f"{name} is {value!r}, but must be {allowed}."
        super().__init__(f"{message} {advice}" if advice else message)


class DataError(PipebenchError):
    """The data on disk, or its absence, makes the request impossible."""


class RecordError(DataError):
    """One record of a shard is unusable.

    Args:
        shard: file name of the shard.
        record_index: position of the record in the shard, from 0.
        reason: what is wrong with it.
        offset_bytes: position of the record's first byte in the shard, where known.
    """

    def __init__(self, shard: str, record_index: int, reason: str, offset_bytes: int | None = None) -> None:
        self.shard = shard
        self.record_index = record_index
        self.reason = reason
        self.offset_bytes = offset_bytes
        where = f"{shard}, record {record_index}"
        if offset_bytes is not None:
            where += f" (offset {offset_bytes} bytes)"
        super().__init__(f"{where}: {reason}")
