"""The files of a model folder, local or remote (`gs://`), through `tf.io.gfile`, with errors that name it."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator

import tensorflow as tf

from echoing.errors import DataError

CHUNK_BYTES = 8 << 20
"""How much of a file is in memory while its checksum is computed."""

FILE_ERRORS: tuple[type[Exception], ...] = (OSError, tf.errors.OpError)
"""What reading and writing raise: TensorFlow has errors of its own, also for local files."""


def join(folder: str, *names: str) -> str:
    """Joins path components; `tf.io.gfile.join` knows the separators of remote file systems."""
    return str(tf.io.gfile.join(folder, *names))


def reason(error: Exception) -> str:
    """Returns what an error says, in one line and without TensorFlow's device and operation names."""
    message = getattr(error, "message", None) or getattr(error, "strerror", None) or str(error)
    line = str(message).strip().splitlines()[0] if str(message).strip() else type(error).__name__
    return line.rpartition("}} ")[2].partition(" [Op:")[0].rstrip(".")


@contextlib.contextmanager
def naming(action: str, path: str) -> Iterator[None]:
    """Turns the errors of the `with` block into a `DataError` that begins with "Cannot `action` `path`"."""
    try:
        yield
    except FILE_ERRORS as error:
        raise DataError(
            f"Cannot {action} {path}: {reason(error)}. Check the name, the disk and your permissions."
        ) from error


def names(folder: str) -> list[str]:
    """Returns the sorted names in a folder; none if there is no such folder.

    Raises:
        DataError: the folder cannot be read.
    """
    with naming("list", folder):
        try:
            return sorted(name.rstrip("/") for name in tf.io.gfile.listdir(folder))
        except tf.errors.NotFoundError:
            return []


def read_bytes(path: str) -> bytes | None:
    """Returns the content of a file, or None if there is none.

    Raises:
        DataError: the file is there but cannot be read.
    """
    with naming("read", path):
        try:
            with tf.io.gfile.GFile(path, "rb") as file:
                return bytes(file.read())
        except tf.errors.NotFoundError:
            return None


def write_whole(path: str, content: bytes) -> None:
    """Writes a file under a temporary name, then renames it: the final name means a complete file.

    Raises:
        OSError, tf.errors.OpError: it cannot be written; a file that had the name before is untouched.
    """
    partial = path + ".partial"
    with tf.io.gfile.GFile(partial, "wb") as file:
        file.write(content)
    sync(partial)
    tf.io.gfile.rename(partial, path, overwrite=True)
    sync(path.rpartition("/")[0] or ".")


def sync(path: str) -> None:
    """Waits until a local file, or the names in a local folder, would outlive a power failure.

    Remote files are safe once they are closed.
    """
    if "://" in path:
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def size_and_sha256(path: str) -> tuple[int, str]:
    """Returns the length of a file in bytes and its SHA-256 in hexadecimal, as `sha256sum` prints it."""
    digest, size = hashlib.sha256(), 0
    with tf.io.gfile.GFile(path, "rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)
    return size, digest.hexdigest()


def remove_folder(path: str) -> None:
    """Removes a folder with all that is in it; one that does not exist is left alone.

    Raises:
        OSError, tf.errors.OpError: something in it cannot be removed.
    """
    with contextlib.suppress(tf.errors.NotFoundError):
        tf.io.gfile.rmtree(path)
