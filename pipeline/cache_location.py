"""Where the files of a cache lie: at another path for whatever changes their content."""

from __future__ import annotations

import fcntl
import glob
import hashlib
from pathlib import Path
from typing import IO

from echoing.errors import DataError
from pipeline import filesystem
from pipeline.config import PipelineConfig
from pipeline.data_source import DataSource
from pipeline.preprocessing_stages import decoding_options


def cache_path(config: PipelineConfig, source: DataSource, seed: int, hosts: int, host: int) -> str:
    """Returns the path of the cache's files, whose folder is made; empty for a cache in memory.

    Args:
        config: the pipeline's options.
        source: the data.
        seed: of the order of shards, which the cache keeps.
        hosts: number of hosts that share the data.
        host: which of them this is.

    Raises:
        DataError: the folder cannot be made, or another process is writing this cache.
    """
    if not config.cache_dir:
        return ""
    filesystem.make_folder(config.cache_dir)
    # A start in the middle counts on the order; without `deterministic` any order will do.
    order = (seed, config.cycle_length) if config.deterministic else None
    decoding = decoding_options(config) if config.cache == "images" else None
    facts = (source.data_dir, source.shards, hosts, host, config.use_annotated_boxes, order, decoding)
    digest = hashlib.sha256(repr(facts).encode()).hexdigest()[:16]
    path = filesystem.join(config.cache_dir, f"{source.split}-{config.cache}-{digest}")
    if not filesystem.is_remote(path):
        _take_over(Path(path))
    return path


_owned: dict[Path, IO[str]] = {}
"""The caches that this process may write, each with the open file whose lock says so."""


def _take_over(path: Path) -> None:
    """Removes what a killed process left of an unfinished cache, which TensorFlow would refuse to write to.

    TensorFlow's own lock is a file that stays behind; ours goes with its process.

    Raises:
        DataError: another process is writing this cache.
    """
    if path in _owned:
        return
    finished = path.with_name(f"{path.name}.index").exists()
    lock = open(path.with_name(f"{path.name}.owner"), "w", encoding="ascii")  # noqa: SIM115 - kept open
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        if finished:
            return  # a finished one is only read
        raise DataError(
            f"Another process is writing the cache {path}. Wait for it, or give another --cache-dir."
        ) from None
    _owned[path] = lock
    if not finished:
        for leftover in path.parent.glob(f"{glob.escape(path.name)}_*"):
            leftover.unlink()
