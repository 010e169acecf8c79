"""What a checkpoint says about itself: a JSON file, written last, so that its presence means "complete"."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from echoing.checks import check_integer
from echoing.errors import DataError, OptionError

FORMAT = 1
"""Version of the layout of a checkpoint folder."""

Scalar = str | int | float | bool | None
"""What a position or a fact may be."""

_COUNTED = {"num_classes": "classes"}
"""Facts that a message names with the number in front: "5 classes"."""


class DamagedError(ValueError):
    """A file of a checkpoint is not what was written; the message says which one and how it differs."""


@dataclass(frozen=True)
class StoredFile:
    """One file of a checkpoint, by its name in the checkpoint's folder, which may therefore be moved."""

    name: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """Everything about a checkpoint but the values of its variables.

    Attributes:
        step: training steps done when it was made.
        position: the state of the input and the counts of examples: small, and exact as JSON.
        facts: what a model must agree with to take the values, such as `num_classes`.
        has_averages: whether the variables include moving averages (EMA weights).
        files: the other files of the folder.
        score: of the evaluation for which it was kept as the best; None for an ordinary one.

    Raises:
        OptionError: the step is negative, or a value is none that JSON keeps exactly.
    """

    step: int
    position: Mapping[str, Scalar]
    facts: Mapping[str, Scalar]
    has_averages: bool = False
    files: tuple[StoredFile, ...] = ()
    score: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", check_integer("step", self.step, minimum=0))
        object.__setattr__(self, "position", check_scalars("position", self.position))
        object.__setattr__(self, "facts", check_scalars("facts", self.facts))

    def to_json(self) -> bytes:
        """Returns the file's content: the fields, and their checksum, as a flipped bit may still parse."""
        document: dict[str, Any] = {"format": FORMAT, "checkpoint": dataclasses.asdict(self)}
        document["sha256"] = _checksum(document)
        return (json.dumps(document, indent=1, sort_keys=True, allow_nan=False) + "\n").encode("utf-8")

    @classmethod
    def from_json(cls, content: bytes) -> Manifest:
        """Reads what `to_json` wrote.

        Raises:
            DamagedError: the content is not what was written.
            DataError: it was written in a later format.
        """
        try:
            document = json.loads(content)
            if document.pop("sha256") != _checksum(document):
                raise DamagedError("its manifest has another checksum than when it was written")
            if document["format"] == FORMAT:
                fields = document["checkpoint"]
                files = tuple(StoredFile(**file) for file in fields.pop("files"))
                return cls(**fields, files=files)
        except DamagedError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise DamagedError("its manifest cannot be read") from error
        raise DataError(
            f"The checkpoint has format {document['format']!r}, and this version of pipebench knows format "
            f"{FORMAT}. Use the version that wrote it, or a later one."
        )


def check_scalars(name: str, values: Mapping[str, Any]) -> dict[str, Scalar]:
    """Returns a copy with plain Python values, so that integers of NumPy may be given.

    Raises:
        OptionError: a value is no string, boolean, None or finite number.
    """
    return {key: _scalar(f"{name}[{key!r}]", value) for key, value in values.items()}


def check_facts(manifest: Manifest, asked: Mapping[str, Scalar], where: str) -> None:
    """Refuses a checkpoint of another model; facts that are not asked for are not compared.

    Args:
        manifest: of the checkpoint.
        asked: what the model at hand is.
        where: the checkpoint's folder, for the message.

    Raises:
        DataError: a fact differs; the message names both values of each.
    """
    differences = "; ".join(
        f"checkpoint has {_words(name, manifest.facts)}, you asked for {value}"
        for name, value in asked.items()
        if name not in manifest.facts or manifest.facts[name] != value
    )
    if differences:
        raise DataError(
            f"C{differences[1:]}. The checkpoint is {where}. Ask for what it has, or name another model "
            "folder."
        )


def check_averages(manifest: Manifest, where: str, raw_option: str) -> None:
    """Refuses to evaluate moving averages that a checkpoint does not have.

    Args:
        manifest: of the checkpoint.
        where: the checkpoint's folder, for the message.
        raw_option: the command line option that asks for the raw weights, for the message.

    Raises:
        DataError: it has none.
    """
    if not manifest.has_averages:
        raise DataError(
            f"The checkpoint has no EMA weights; use raw weights with `{raw_option}`. "
            f"It is {where}, and was trained without moving averages."
        )


def _words(name: str, facts: Mapping[str, Scalar]) -> str:
    if name not in facts:
        return f"no {name} on record"
    return f"{facts[name]} {_COUNTED[name]}" if name in _COUNTED else f"{name} {facts[name]}"


def _scalar(name: str, value: Any) -> Scalar:
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real) and math.isfinite(value):
        return float(value)
    raise OptionError(name, value, "a string, boolean, None or finite number")


def _checksum(fields: Mapping[str, Any]) -> str:
    canonical = json.dumps(fields, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode("utf-8")).hexdigest()
