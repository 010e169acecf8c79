"""Where a run writes to, checked before the work starts."""

from __future__ import annotations

import datetime

from echoing.errors import DataError
from pipeline import filesystem


def default_output_folder() -> str:
    """Returns `runs/` and the local time, below the working directory."""
    return filesystem.join("runs", datetime.datetime.now().strftime("%Y-%m-%dT%H-%M-%S"))


def check_output_folder(folder: str, overwrite: bool) -> None:
    """Makes the folder and checks that it may be written to.

    Args:
        folder: the folder, which may exist if it is empty.
        overwrite: whether it may hold files already.

    Raises:
        DataError: it holds files and may not, or it cannot be written.
    """
    if filesystem.exists(folder) and not filesystem.is_folder(folder):
        raise DataError(f"The output {folder} is a file. Name a folder with --output.")
    if filesystem.exists(folder) and filesystem.list_folder(folder) and not overwrite:
        raise DataError(
            f"The output folder {folder} is not empty. Name another with --output, or give --overwrite."
        )
    filesystem.make_folder(folder)
    probe = filesystem.join(folder, ".pipebench-write-test")
    filesystem.write_bytes(probe, b"")
    filesystem.remove(probe)
