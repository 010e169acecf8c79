"""The embedded default data: generated once, kept in the user's cache folder."""

from __future__ import annotations

from collections.abc import Callable

import platformdirs

from pipeline import filesystem
from pipeline.dataset_info import read_dataset_info

EXAMPLES = 1024
SEED = 0


def default_data_dir() -> str:
    """Returns the folder of the default data, whether or not it exists."""
    return filesystem.join(platformdirs.user_cache_dir("pipebench"), f"generated-{EXAMPLES}-seed{SEED}")


def is_made(data_dir: str) -> bool:
    """Whether the default data is there; `dataset.json` is written last, so it stands for all of it."""
    return filesystem.exists(data_dir) and read_dataset_info(data_dir) is not None


def make_default_data(data_dir: str, progress: Callable[[int, int], None] | None = None) -> None:
    """Generates the default data.

    Args:
        data_dir: where to.
        progress: called with the examples done and the examples in all.

    Raises:
        DataError: the folder cannot be written.
    """
    from pipeline.datasets.make import MakeOptions, make_dataset

    # Overwrites what a broken-off run may have left behind.
    make_dataset(MakeOptions(examples=EXAMPLES, seed=SEED, overwrite=True), data_dir, progress)
