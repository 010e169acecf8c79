"""Which files of a data folder are shards: the reference's name form, or a pattern that the user gives.

The folder's name is literal, whatever characters it holds; only names inside it are matched.
"""

from __future__ import annotations

import concurrent.futures
import difflib
import fnmatch
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from echoing.errors import DataError, OptionError
from pipeline import dataset_info, filesystem, labels

PARTIAL_SUFFIX = ".partial"
"""End of the name of a file that is still being written."""

_NAME_FORM = re.compile(r"(?P<split>.+)-(?P<index>\d{5,})-of-(?P<total>\d{5,})(?P<suffix>\.tfrecords?)?")
_OWN_FILES = (dataset_info.FILE_NAME, labels.FILE_NAME)
_LISTED_NAMES = 5
_THREADS = 16  # the calls wait for the disk or the network, not for the processor

_Item = TypeVar("_Item")
_Value = TypeVar("_Value")


@dataclass(frozen=True)
class ShardName:
    """A file name of the form `{split}-00000-of-00008`, also with `.tfrecord` or `.tfrecords` behind it."""

    split: str
    index: int
    total: int
    suffix: str

    @classmethod
    def parse(cls, name: str) -> ShardName | None:
        """Returns the parts of a file name, or None if it does not have the form."""
        match = _NAME_FORM.fullmatch(name)
        if match is None or name.startswith(".") or int(match["index"]) >= int(match["total"]):
            return None
        return cls(match["split"], int(match["index"]), int(match["total"]), match["suffix"] or "")


@dataclass(frozen=True)
class ShardSelection:
    """The files chosen in a data folder.

    Attributes:
        names: names of the shards, sorted.
        ignored: names that are neither shards nor files of ours, sorted; folders end with a slash.
    """

    names: tuple[str, ...]
    ignored: tuple[str, ...]


def find_splits(data_dir: str) -> tuple[str, ...]:
    """Returns the splits that have shards in `data_dir`, sorted.

    Raises:
        DataError: the folder is missing, empty, or holds no shard of the name form.
    """
    names = _list_data_folder(data_dir)
    splits = sorted({parsed.split for name in names if (parsed := ShardName.parse(name))})
    if not splits:
        raise DataError(
            f"No shard in {data_dir}: no file is named like train-00000-of-00008. Found instead: "
            f"{summarize(names)}. Name another folder, or give a file pattern."
        )
    return tuple(splits)


def select_shards(data_dir: str, split: str, file_pattern: str | None = None) -> ShardSelection:
    """Chooses the shards of a split, or the files that match a pattern.

    Args:
        data_dir: the folder, local or `scheme://`.
        split: what stands before `-00000-of-00008` in the names.
        file_pattern: shell pattern for names inside the folder, in place of the name form. Hidden and
            partial files, folders, `dataset.json` and `labels.txt` never match.

    Raises:
        OptionError: the split or the pattern is empty or holds a slash.
        DataError: the folder is missing or empty, nothing matches, or the set of shards is not one whole set.
    """
    _check_plain_name("split", split)
    if file_pattern is not None:
        _check_plain_name("file_pattern", file_pattern)
    names = _list_data_folder(data_dir)
    if file_pattern is None:
        matches = [name for name in names if (parsed := ShardName.parse(name)) and parsed.split == split]
    else:
        matches = [name for name in names if _is_candidate(name) and fnmatch.fnmatchcase(name, file_pattern)]
    others = [name for name in names if name not in _OWN_FILES and ShardName.parse(name) is None]
    # A folder may be named like a shard.
    folders = _folders(data_dir, {*matches, *others})
    chosen = [name for name in matches if name not in folders]
    if not chosen:
        raise _nothing_matches(data_dir, split, file_pattern, names)
    if file_pattern is None:
        _check_whole_set(data_dir, split, chosen)
    ignored = {*others, *matches}.difference(chosen)
    return ShardSelection(
        tuple(chosen), tuple(sorted(name + "/" if name in folders else name for name in ignored))
    )


def summarize(names: Iterable[str]) -> str:
    """Returns the first names and the count of the rest, for a message."""
    names = list(names)
    shown = ", ".join(names[:_LISTED_NAMES])
    return f"{shown} and {len(names) - _LISTED_NAMES} more" if len(names) > _LISTED_NAMES else shown


def in_threads(function: Callable[[_Item], _Value], items: Sequence[_Item]) -> list[_Value]:
    """Returns `function` of every item, in order; the first error cancels what has not begun."""
    pool = concurrent.futures.ThreadPoolExecutor(_THREADS)
    try:
        return list(pool.map(function, items))
    finally:
        pool.shutdown(cancel_futures=True)


def _list_data_folder(data_dir: str) -> list[str]:
    if not data_dir or not data_dir.strip():
        raise OptionError("data_dir", data_dir, "the folder of the shards")
    if not filesystem.exists(data_dir):
        raise DataError(f"The data folder {data_dir} does not exist.{_similar(data_dir)} Check the name.")
    if not filesystem.is_folder(data_dir):
        raise DataError(f"{data_dir} is a file. Name the folder that holds the shards.")
    names = filesystem.list_folder(data_dir)
    if not names:
        raise DataError(f"The data folder {data_dir} is empty. Name another, or fill it first.")
    return names


def _similar(data_dir: str) -> str:
    """Returns what is there instead of a missing local folder, as a sentence or nothing."""
    if filesystem.is_remote(data_dir):
        return ""
    parent, name = os.path.split(os.path.abspath(data_dir))  # noqa: PTH100
    if not os.path.isdir(parent):  # noqa: PTH112
        return f" Nor does {parent}."
    close = difflib.get_close_matches(name, filesystem.list_folder(parent))
    return f" Beside it there is {summarize(close)}." if close else ""


def _is_candidate(name: str) -> bool:
    return not name.startswith(".") and not name.endswith(PARTIAL_SUFFIX) and name not in _OWN_FILES


def _folders(data_dir: str, names: Iterable[str]) -> set[str]:
    names = list(names)
    are_folders = in_threads(lambda name: filesystem.is_folder(filesystem.join(data_dir, name)), names)
    return {name for name, is_folder in zip(names, are_folders, strict=True) if is_folder}


def _nothing_matches(data_dir: str, split: str, file_pattern: str | None, names: Sequence[str]) -> DataError:
    if file_pattern is not None:
        return DataError(
            f"No file in {data_dir} matches the pattern {file_pattern!r}. Found instead: {summarize(names)}. "
            "Change the pattern; it is for names inside the folder, and capitals count."
        )
    wanted = f"No shard of the split {split!r} in {data_dir} (names like {split}-00000-of-00008)."
    counts: dict[str, int] = {}
    for name in names:
        if parsed := ShardName.parse(name):
            counts[parsed.split] = counts.get(parsed.split, 0) + 1
    if counts:
        found = ", ".join(f"{other!r} ({count} shards)" for other, count in sorted(counts.items()))
        return DataError(
            f"{wanted} The folder has other splits: {found}. Name one of them, or make {split!r}."
        )
    return DataError(f"{wanted} Found instead: {summarize(names)}. Name another folder, or a file pattern.")


def _check_whole_set(data_dir: str, split: str, names: Sequence[str]) -> None:
    """Checks that the names are exactly one set of `total` shards.

    Raises:
        DataError: several sets, or members are missing.
    """
    sets: dict[tuple[int, str], set[int]] = {}
    for name in names:
        parsed = ShardName.parse(name)
        if parsed is not None:
            sets.setdefault((parsed.total, parsed.suffix), set()).add(parsed.index)
    if len(sets) > 1:
        found = " and ".join(
            f"{split}-*-of-{total:05d}{suffix} ({len(members)} files)"
            for (total, suffix), members in sorted(sets.items())
        )
        raise DataError(
            f"{data_dir} holds more than one set of shards of the split {split!r}: {found}. Remove one of "
            "them, or choose one by a file pattern."
        )
    ((total, suffix), members) = next(iter(sets.items()))
    missing = sorted(set(range(total)).difference(members))
    if missing:
        expected = summarize(f"{split}-{index:05d}-of-{total:05d}{suffix}" for index in missing)
        raise DataError(
            f"{len(missing)} of {total} shards of the split {split!r} are missing in {data_dir}: {expected}. "
            "Copy or make them again, or give a file pattern to read what is there."
        )


def _check_plain_name(option: str, value: str) -> None:
    if not value or not value.strip() or "/" in value:
        raise OptionError(option, value, "a name inside the data folder, without a slash")
