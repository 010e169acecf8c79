"""The one list of classes of a data folder, which decides the label numbers of every split in it."""

from __future__ import annotations

from collections.abc import Sequence

from echoing.errors import DataError
from pipeline import filesystem
from pipeline.labels import read_labels, read_labels_file


def known_classes(data_dir: str, labels_file: str | None, fresh: bool) -> list[str] | None:
    """Returns the class list that is fixed before the new split is looked at, or None if there is none.

    Args:
        data_dir: the folder that is written to; its `labels.txt` counts unless `fresh`.
        labels_file: a file with one class name a line, or None.
        fresh: whether the new split replaces all that is in the folder, so that its old list is of no use.

    Raises:
        DataError: the two lists differ, or one of them cannot be read.
    """
    existing = None if fresh else read_labels(data_dir)
    if labels_file is None:
        return existing
    if not filesystem.exists(labels_file):
        raise DataError(
            f"The labels file {labels_file} does not exist. Name a file with one class name a line."
        )
    given = read_labels_file(labels_file)
    if existing is not None and existing != given:
        raise DataError(
            f"{labels_file} lists other classes than the labels.txt of {data_dir}, which the splits in that "
            "folder use. Leave the option out, or write to another folder."
        )
    return given


def settle_classes(known: Sequence[str] | None, found: Sequence[str], data_dir: str) -> list[str]:
    """Returns the class list to number by: class k of the list has label k, from 1.

    Args:
        known: the list fixed before, or None.
        found: the classes of the new split, in the order that they get without a list.
        data_dir: for the message.

    Raises:
        DataError: the new split has a class that the list does not know.
    """
    if known is None:
        return list(found)
    unknown = [name for name in found if name not in set(known)]
    if unknown:
        raise DataError(
            f"{_names(unknown)} not in the class list that decides the labels in {data_dir} "
            f"({len(known)} classes: {', '.join(map(repr, known[:5]))}{', ...' if len(known) > 5 else ''}). "
            "Remove or rename the class, or write to another folder."
        )
    return list(known)


def missing_classes_warning(names: Sequence[str], present: set[str], split: str) -> list[str]:
    """Returns a warning (as a list of none or one) that names the classes without a picture in the split."""
    missing = [name for name in names if name not in present]
    if not missing:
        return []
    some = ", ".join(repr(name) for name in missing[:20]) + (", ..." if len(missing) > 20 else "")
    if len(missing) == 1:
        return [f"1 class has no picture in split {split!r} and keeps its label: {some}"]
    return [f"{len(missing)} classes have no picture in split {split!r} and keep their labels: {some}"]


def _names(names: Sequence[str]) -> str:
    quoted = ", ".join(repr(name) for name in names[:10]) + (", ..." if len(names) > 10 else "")
    return f"Class {quoted} is" if len(names) == 1 else f"Classes {quoted} are"
