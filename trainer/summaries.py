"""Where the numbers of a training go: one small interface, TensorBoard's files, and several at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import tensorflow as tf

from trainer import model_folder

_SCALARS_PLUGIN = "scalars"
_DATA_CLASS_SCALAR = 1
"""`DATA_CLASS_SCALAR` of tensorboard/compat/proto/summary.proto."""


class MetricWriter(Protocol):
    """Takes scalars by step; the life of a writer is construction, any number of calls, `close`."""

    def write_scalars(self, step: int, scalars: Mapping[str, Any]) -> None:
        """Writes the values of a step.

        Args:
            step: training steps done; it never goes back.
            scalars: numbers, scalar arrays or None by name, such as `loss`. None stands for a value that is
                not known at this step. The names may differ from call to call; the same name is not written
                twice for a step.
        """
        ...

    def flush(self) -> None:
        """Brings what was written to the disk."""
        ...

    def close(self) -> None:
        """Flushes, and gives up the file. Nothing is called after it."""
        ...


class MultiWriter:
    """Writes to several writers, in their order.

    Args:
        writers: it closes them when it is closed.
    """

    def __init__(self, writers: Sequence[MetricWriter]) -> None:
        self._writers = tuple(writers)

    def write_scalars(self, step: int, scalars: Mapping[str, Any]) -> None:
        """Writes the values of a step to each."""
        for writer in self._writers:
            writer.write_scalars(step, scalars)

    def flush(self) -> None:
        """Flushes each; see `close` for errors."""
        _for_each([writer.flush for writer in self._writers])

    def close(self) -> None:
        """Closes each, also if one before fails; the first error is raised at the end."""
        _for_each([writer.close for writer in self._writers])


class TensorBoardWriter:
    """Writes scalars as TensorBoard's event files.

    `tf.summary.scalar` needs the package tensorboard, which TensorFlow 2.21 does not bring along; the files
    do not. None is left out: a curve has no point there.

    Args:
        folder: of the event files; curves of one folder have one colour. It is made if need be.
        step: training steps done, from the restored checkpoint. TensorBoard drops the points that a killed
            run had written beyond it, because these steps are done again.
        clock: gives the wall-clock time in seconds.

    Raises:
        DataError: the folder cannot be written to.
    """

    def __init__(self, folder: str, step: int = 0, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        with model_folder.naming("write event files to", folder):
            if any("tfevents" in name for name in model_folder.names(folder)):
                _write_restart(folder, step, clock())
            self._writer = tf.summary.create_file_writer(folder)
        self._metadata = tf.compat.v1.SummaryMetadata(data_class=_DATA_CLASS_SCALAR)
        self._metadata.plugin_data.plugin_name = _SCALARS_PLUGIN

    def write_scalars(self, step: int, scalars: Mapping[str, Any]) -> None:
        """Writes the values of a step."""
        with model_folder.naming("write event files to", self._folder), self._writer.as_default():
            for name, value in scalars.items():
                if value is not None:
                    # The step of the log is exact; the curve's value is float32, as TensorBoard's own.
                    tf.summary.write(name, tf.cast(value, tf.float32), step, self._metadata)

    def flush(self) -> None:
        """Brings what was written to the disk."""
        with model_folder.naming("write event files to", self._folder):
            self._writer.flush()

    def close(self) -> None:
        """Flushes and closes the file."""
        with model_folder.naming("write event files to", self._folder):
            self._writer.close()


def _write_restart(folder: str, step: int, now_seconds: float) -> None:
    """Writes the event with which TensorFlow 1 began a session: it makes TensorBoard drop later points.

    It is read between the files before and those to come: readers sort them by name, which begins with the
    time, and "-" sorts before the "." that follows it in the others. See `_CheckForRestartAndMaybePurge` in
    tensorboard/backend/event_processing/plugin_event_accumulator.py.
    """
    start = tf.compat.v1.SessionLog(status=tf.compat.v1.SessionLog.START)
    events = [
        tf.compat.v1.Event(wall_time=now_seconds, file_version="brain.Event:2"),
        tf.compat.v1.Event(wall_time=now_seconds, step=step + 1, session_log=start),
    ]
    path = model_folder.join(folder, f"events.out.tfevents.{int(now_seconds):010d}-restart")
    with tf.io.TFRecordWriter(path) as file:
        for event in events:
            file.write(event.SerializeToString())


def _for_each(calls: Sequence[Callable[[], None]]) -> None:
    first: Exception | None = None
    for call in calls:
        try:
            call()
        except Exception as error:  # raised again below
            first = first or error
    if first is not None:
        raise first
