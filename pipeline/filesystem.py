"""Paths that may be local or remote (`gs://`, `ram://`): one face over the standard library and tf.io.gfile.

Local paths never import TensorFlow, so that the command line can answer a wrong folder at once.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import IO, Any

from echoing.errors import DataError


def is_remote(path: str) -> bool:
    """Whether `path` names a file system other than the local one (`scheme://...`)."""
    return "://" in path


def _gfile() -> Any:
    import tensorflow as tf

    return tf.io.gfile


def join(folder: str, *names: str) -> str:
    """Joins path components with the separator of the file system of `folder`."""
    if is_remote(folder):
        return "/".join([folder.rstrip("/"), *names])
    return os.path.join(folder, *names)  # noqa: PTH118


def base_name(path: str) -> str:
    """Returns the last component of `path`."""
    return path.rstrip("/").rsplit("/", 1)[-1]


def exists(path: str) -> bool:
    """Whether a file or folder of this name exists."""
    if is_remote(path):
        return bool(_remote(path, "exists"))
    return os.path.exists(path)  # noqa: PTH110


def is_folder(path: str) -> bool:
    """Whether `path` is a folder."""
    if is_remote(path):
        return bool(_remote(path, "isdir"))
    return os.path.isdir(path)  # noqa: PTH112


def list_folder(path: str) -> list[str]:
    """Returns the sorted names (not paths) in a folder, without a trailing slash.

    Raises:
        DataError: the folder cannot be read.
    """
    if is_remote(path):
        return sorted(name.rstrip("/") for name in _remote(path, "listdir"))
    with reading(path):
        return sorted(os.listdir(path))  # noqa: PTH208


def size_bytes(path: str) -> int:
    """Returns the length of a file in bytes.

    Raises:
        DataError: the file cannot be read.
    """
    if is_remote(path):
        return int(_remote(path, "stat").length)
    with reading(path):
        return os.stat(path).st_size  # noqa: PTH116


def make_folder(path: str) -> None:
    """Makes a folder and its parents; one that exists is left alone.

    Raises:
        DataError: the folder cannot be made.
    """
    try:
        if is_remote(path):
            _gfile().makedirs(path)
        else:
            os.makedirs(path, exist_ok=True)  # noqa: PTH103
    except _all_errors(path) as error:
        raise DataError(
            f"Cannot make the folder {path}: {_reason(error)}. Name a folder that you may write to."
        ) from error


def open_file(path: str, mode: str = "rb") -> IO[Any]:
    """Opens a file. Text modes use UTF-8 and leave line ends as they are written."""
    if is_remote(path):
        return _gfile().GFile(path, mode)
    if "b" in mode:
        return open(path, mode)
    return open(path, mode, encoding="utf-8", newline="")


@contextlib.contextmanager
def reading(path: str) -> Iterator[None]:
    """Turns the errors of reading `path` inside the `with` block into a `DataError` that names it."""
    try:
        yield
    except _all_errors(path) as error:
        raise DataError(
            f"Cannot read {path}: {_reason(error)}. Check the name and your permissions."
        ) from error


def read_text(path: str) -> str:
    """Returns the content of a UTF-8 text file.

    Raises:
        DataError: the file cannot be read.
        UnicodeDecodeError: it is not UTF-8.
    """
    with reading(path), open_file(path, "rb") as file:
        return bytes(file.read()).decode("utf-8")


def read_bytes(path: str) -> bytes:
    """Returns the content of a file.

    Raises:
        DataError: the file cannot be read.
    """
    try:
        with open_file(path) as file:
            return bytes(file.read())
    except _all_errors(path) as error:
        raise DataError(f"Cannot read {path}: {_reason(error)}.") from error


def write_bytes(path: str, content: bytes) -> None:
    """Writes a file under a temporary name, then renames it: a final name means a complete file.

    Raises:
        DataError: the file cannot be written.
    """
    partial = path + ".partial"
    try:
        with open_file(partial, "wb") as file:
            file.write(content)
        rename(partial, path)
    except _all_errors(path) as error:
        raise DataError(
            f"Cannot write {path}: {_reason(error)}. Name a folder that you may write to."
        ) from error


def write_text(path: str, text: str) -> None:
    """Writes a UTF-8 text file as `write_bytes` does.

    Raises:
        DataError: the file cannot be written.
    """
    write_bytes(path, text.encode("utf-8"))


def rename(source: str, target: str) -> None:
    """Renames a file and replaces the target."""
    if is_remote(source):
        _gfile().rename(source, target, overwrite=True)
    else:
        os.replace(source, target)  # noqa: PTH105


def remove(path: str) -> None:
    """Removes a file."""
    if is_remote(path):
        _gfile().remove(path)
    else:
        os.remove(path)  # noqa: PTH107


def remove_empty_folder(path: str) -> None:
    """Removes a local folder if nothing is in it; a remote file system has no empty folders to speak of."""
    if not is_remote(path) and not os.listdir(path):  # noqa: PTH208
        os.rmdir(path)  # noqa: PTH106


def _remote(path: str, operation: str) -> Any:
    try:
        return getattr(_gfile(), operation)(path)
    except _remote_errors(path) as error:
        raise DataError(
            f"Cannot reach {path}: {_reason(error)}. Check the name, the network and your credentials."
        ) from error


def _all_errors(path: str) -> tuple[type[Exception], ...]:
    return (OSError, *_remote_errors(path))


def _remote_errors(path: str) -> tuple[type[Exception], ...]:
    if not is_remote(path):
        return ()
    import tensorflow as tf

    return (tf.errors.OpError,)


def _reason(error: Exception) -> str:
    text = getattr(error, "strerror", None) or getattr(error, "message", None) or str(error)
    return str(text).strip().rstrip(".")
