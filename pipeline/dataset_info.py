"""`dataset.json`: what the data tools wrote beside it, so that a later loss of records is noticed."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from echoing.errors import DataError
from pipeline import filesystem

FILE_NAME = "dataset.json"
SCHEMA = "pipebench.dataset"
SCHEMA_VERSION = 1


@dataclass(frozen=True)
class ShardInfo:
    """One shard as it was written.

    Attributes:
        name: file name inside the data folder.
        records: number of records.
        size_bytes: size of the file.
    """

    name: str
    records: int
    size_bytes: int


@dataclass(frozen=True)
class DatasetInfo:
    """What was written into a data folder, and by which options.

    Attributes:
        source: `generated`, `imagefolder` or `idx`.
        splits: the shards of each split, in order.
        options: the options that made the set; whatever JSON can hold.
    """

    source: str
    splits: Mapping[str, tuple[ShardInfo, ...]]
    options: Mapping[str, Any] = field(default_factory=dict)

    def find_shard(self, name: str) -> ShardInfo | None:
        """Returns the entry of the shard of this file name, whatever its split, or None."""
        return next(
            (shard for shards in self.splits.values() for shard in shards if shard.name == name), None
        )


def with_split(info: DatasetInfo, split: str, shards: Iterable[ShardInfo]) -> DatasetInfo:
    """Returns a copy of `info` in which `split` consists of `shards`; other splits stay."""
    return dataclasses.replace(info, splits={**info.splits, split: tuple(shards)})


def write_dataset_info(data_dir: str, info: DatasetInfo) -> None:
    """Writes `dataset.json` into `data_dir`, replacing one that is there.

    Raises:
        DataError: the file cannot be written.
    """
    document = {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "source": info.source,
        "splits": {
            split: [dataclasses.asdict(shard) for shard in shards] for split, shards in info.splits.items()
        },
        "options": dict(info.options),
    }
    text = json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
    filesystem.write_text(filesystem.join(data_dir, FILE_NAME), text)


def read_dataset_info(data_dir: str) -> DatasetInfo | None:
    """Reads `dataset.json` of `data_dir`.

    Returns:
        The content, or None if there is no such file: a set from another tool has none.

    Raises:
        DataError: the file is there but is damaged or of another version.
    """
    path = filesystem.join(data_dir, FILE_NAME)
    if not filesystem.exists(path):
        return None
    try:
        document = json.loads(filesystem.read_text(path))
    except ValueError as error:
        raise DataError(
            f"{path} is damaged: it is not JSON ({error}). Make the data again, or remove the file to go "
            "without the recorded counts."
        ) from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise DataError(
            f"{path} does not describe a data set (no schema {SCHEMA!r} in it). Move it to another folder."
        )
    if document.get("schema_version") != SCHEMA_VERSION:
        raise DataError(
            f"{path} has schema version {document.get('schema_version')!r}, but this pipebench reads version "
            f"{SCHEMA_VERSION}. Use the pipebench that wrote it, or make the data again."
        )
    try:
        return DatasetInfo(
            source=_text(document["source"]),
            splits={
                _text(split): tuple(_shard(shard) for shard in shards)
                for split, shards in document["splits"].items()
            },
            options=dict(document["options"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(
            f"{path} is damaged: {error!r} does not fit the schema. Make the data again, or remove the "
            "file to go without the recorded counts."
        ) from error


def _shard(entry: Mapping[str, Any]) -> ShardInfo:
    return ShardInfo(_text(entry["name"]), _count(entry["records"]), _count(entry["size_bytes"]))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{value!r} is no count")
    return value
