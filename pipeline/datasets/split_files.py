"""Which shards of which split a data folder holds, by name; and the names that a split may have."""

from __future__ import annotations

import re

from echoing.errors import DataError, OptionError
from pipeline import filesystem
from pipeline.shard_files import ShardName, summarize

_SPLIT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def check_split(split: object) -> str:
    """Returns `split` if it can be the beginning of a file name.

    Raises:
        OptionError: it cannot.
    """
    if not isinstance(split, str) or not _SPLIT_NAME.fullmatch(split):
        raise OptionError(
            "split", split, "a name of letters, digits, '_', '-' and '.'", "Usual are train and validation."
        )
    return split


def shard_splits(data_dir: str) -> dict[str, list[str]]:
    """Returns the shard names of each split in the folder, sorted; empty if there is no folder."""
    splits: dict[str, list[str]] = {}
    if filesystem.exists(data_dir):
        for name in filesystem.list_folder(data_dir):
            parsed = ShardName.parse(name)
            if parsed is not None:
                splits.setdefault(parsed.split, []).append(name)
    return splits


def split_shards(data_dir: str, split: str) -> list[str]:
    """Returns the shard names of one split, sorted."""
    return shard_splits(data_dir).get(split, [])


def refuse_existing(data_dir: str, split: str, overwrite: bool) -> list[str]:
    """Returns the names of the shards of `split` that are in the folder.

    Raises:
        DataError: there are some and they may not be replaced, or `data_dir` is a file.
    """
    if filesystem.exists(data_dir) and not filesystem.is_folder(data_dir):
        raise DataError(f"{data_dir} is a file. Name a folder for the shards.")
    old = split_shards(data_dir, split)
    if old and not overwrite:
        noun = "shard" if len(old) == 1 else "shards"
        raise DataError(
            f"{data_dir} already holds {len(old)} {noun} of split {split!r} ({summarize(old)}). "
            "Pass --overwrite to replace them, or name another folder or split."
        )
    return old
