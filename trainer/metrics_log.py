"""`metrics.jsonl`: one line a reported step, without gaps or doubles over any number of restarts."""

from __future__ import annotations

import json
import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from echoing.checks import check_integer
from echoing.errors import DataError
from trainer import model_folder

METRICS_NAME = "metrics.jsonl"
METRICS_FIELDS = ("loss", "learning_rate", "examples_fresh", "examples_trained")
"""What every line has beside `step`; scripts rely on these names."""
EVALUATIONS_NAME = "evaluations.jsonl"


class MetricsLog:
    """Appends a JSON object a line, and takes up where the restored checkpoint stands.

    On construction, lines of steps after the checkpoint are cut off, because these steps will be done and
    reported again, and a last line that a kill has left half written goes with them. The file is replaced in
    one move, so that a kill in the middle of this leaves the old one.

    A line is handed to the operating system when it is written, so that it outlives the process. Call `flush`
    before a checkpoint is saved: then no line up to that step is missing after a power failure either. On a
    remote file system each line may upload the file anew; weeks of steps make less than a megabyte.

    It is a `trainer.summaries.MetricWriter`.

    Args:
        folder: the model folder; it is made if need be.
        step: training steps done, from the restored checkpoint; 0 at the beginning.
        name: of the file, such as `EVALUATIONS_NAME`.
        fields: names that every line must have beside `step`.

    Attributes:
        path: the file.
        last: the last line that was kept or written, or None.
        lines_cut: how many whole lines of later steps were cut off.

    Raises:
        DataError: the file cannot be read or written, or a line before the last one is no line of this log.
    """

    def __init__(
        self, folder: str, step: int, name: str = METRICS_NAME, fields: Sequence[str] = METRICS_FIELDS
    ) -> None:
        check_integer("step", step, minimum=0)
        self.path = model_folder.join(folder, name)
        self._fields = tuple(fields)
        content = model_folder.read_bytes(self.path) or b""
        lines = read_lines(content, self.path)
        kept = [line for line in lines if line["step"] <= step]
        self.lines_cut = len(lines) - len(kept)
        self.last: dict[str, Any] | None = kept[-1] if kept else None
        whole = b"".join(line + b"\n" for line in content.split(b"\n")[: len(kept)])
        with model_folder.naming("write", self.path):
            tf.io.gfile.makedirs(folder)
            if whole != content:
                model_folder.write_whole(self.path, whole)
            self._file = tf.io.gfile.GFile(self.path, "ab")
            # Opens it, so that a folder that cannot be written to is told now.
            self._file.write(b"")

    @property
    def last_step(self) -> int:
        """The step of the last line; 0 if there is none."""
        return 0 if self.last is None else int(self.last["step"])

    def write_scalars(self, step: int, scalars: Mapping[str, Any]) -> None:
        """Appends a line.

        Args:
            step: training steps done, more than that of the line before.
            scalars: finite numbers or None by name; None is written as `null`. A float keeps all its digits.

        Raises:
            ValueError: the step does not follow, a field is missing, or a value is not finite.
            DataError: it cannot be written.
        """
        if self.last is not None and step <= self.last_step:
            raise ValueError(f"Step {step} does not follow step {self.last_step} in {self.path}.")
        missing = [name for name in self._fields if name not in scalars]
        if missing:
            raise ValueError(f"A line of {self.path} needs {', '.join(missing)}.")
        line = {"step": int(step)} | {name: _number(name, value) for name, value in scalars.items()}
        with model_folder.naming("write", self.path):
            self._file.write(json.dumps(line, allow_nan=False).encode("utf-8") + b"\n")
            self._file.flush()
        self.last = line

    def flush(self) -> None:
        """Waits until the lines are on the disk."""
        with model_folder.naming("write", self.path):
            self._file.flush()
            if self.last is not None:
                model_folder.sync(self.path)

    def close(self) -> None:
        """Flushes and closes the file."""
        self.flush()
        with model_folder.naming("write", self.path):
            self._file.close()


def read_lines(content: bytes, path: str) -> list[dict[str, Any]]:
    """Returns the lines of a log; a last one that is half written is left out.

    Args:
        content: of the file.
        path: of the file, for messages.

    Raises:
        DataError: another line is no JSON object with a `step`, or its step does not follow the one before.
    """
    texts = content.split(b"\n")
    if texts[-1] == b"":
        texts.pop()
    lines: list[dict[str, Any]] = []
    for number, text in enumerate(texts, start=1):
        try:
            line = json.loads(text)
            follows = line["step"] > (lines[-1]["step"] if lines else -1)
        except (ValueError, TypeError, KeyError):
            if number == len(texts):
                break
            raise DataError(
                f"Line {number} of {path} is no line of a training's log. Repair it, or move the file away."
            ) from None
        if not follows:
            before = lines[-1]["step"] if lines else 0
            raise DataError(
                f"Line {number} of {path} has step {line['step']}, which does not follow step {before}: two "
                "trainings may have written into it. Repair it, or move it away."
            )
        lines.append(line)
    return lines


def _number(name: str, value: Any) -> int | float | None:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{name} is {number}, which JSON cannot hold.")
    return number
