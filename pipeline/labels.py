r"""`labels.txt`: line k is the name of class k.

Labels are 1-based; 0 is kept for the background and has no line. A name may hold anything but a line
break, so the file is split at `\n` alone and needs no quoting.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from echoing.errors import DataError
from pipeline import filesystem

FILE_NAME = "labels.txt"


def read_labels(data_dir: str) -> list[str] | None:
    """Reads the class names of `data_dir`.

    A byte order mark, the line ends of Windows and blank lines at the end are forgiven.

    Returns:
        The names of the classes 1, 2, ..., or None if there is no `labels.txt`.

    Raises:
        DataError: the file holds no names, a blank line between names, a name twice, or no UTF-8.
    """
    path = filesystem.join(data_dir, FILE_NAME)
    if not filesystem.exists(path):
        return None
    return read_labels_file(path)


def read_labels_file(path: str) -> list[str]:
    """Reads class names from a file of any name, by the rules of `read_labels`.

    Raises:
        DataError: as for `read_labels`.
    """
    try:
        text = filesystem.read_text(path)
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not UTF-8 text ({error}). Save it as UTF-8, one class name a line."
        ) from error
    lines = [line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n")]
    while lines and not lines[-1].strip():
        lines.pop()
    _check_names(lines, path)
    return lines


def write_labels(data_dir: str, names: Iterable[str]) -> None:
    """Writes `labels.txt` into `data_dir`, replacing one that is there.

    Args:
        data_dir: an existing folder.
        names: the names of the classes 1, 2, ...; read back to the very same names.

    Raises:
        DataError: no names, an empty name, a name twice, a line break in a name, a name that UTF-8 cannot
            hold (such as a folder name in another encoding), or the file cannot be written.
    """
    names = list(names)
    path = filesystem.join(data_dir, FILE_NAME)
    _check_names(names, path)
    filesystem.write_text(path, "".join(name + "\n" for name in names))


def _check_names(names: Sequence[str], path: str) -> None:
    if not names:
        raise DataError(
            f"{path}: there are no class names. One name a line is needed, for the classes 1, 2, ..."
        )
    first_line: dict[str, int] = {}
    for line, name in enumerate(names, start=1):
        where = f"{path}, class {line}"
        if not name.strip():
            raise DataError(
                f"{where}: the name is {name!r}. An empty name would shift or hide a class; name it."
            )
        if "\n" in name or "\r" in name:
            raise DataError(f"{where}: the name {name!r} holds a line break. Rename the class.")
        if name in first_line:
            raise DataError(
                f"{where}: the name {name!r} is that of class {first_line[name]} too. "
                "Every class needs its own."
            )
        if not _is_unicode(name):
            raise DataError(f"{where}: the name {name!r} cannot be written as UTF-8. Rename the class.")
        first_line[name] = line


def _is_unicode(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
