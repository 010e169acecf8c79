"""Where the files of a cache lie: at another path for whatever changes their content."""

from __future__ import annotations

import hashlib

from pipeline import filesystem
from pipeline.config import PipelineConfig
from pipeline.data_source import DataSource


def cache_path(config: PipelineConfig, source: DataSource, seed: int, hosts: int, host: int) -> str:
    """Returns the path of the cache's files, whose folder is made; empty for a cache in memory.

    Args:
        config: the pipeline's options.
        source: the data.
        seed: of the order of shards, which the cache keeps.
        hosts: number of hosts that share the data.
        host: which of them this is.

    Raises:
        DataError: the folder cannot be made.
    """
    if not config.cache_dir:
        return ""
    filesystem.make_folder(config.cache_dir)
    # A start in the middle counts on the order; without `deterministic` any order will do.
    order = (seed, config.cycle_length) if config.deterministic else None
    facts = (source.data_dir, source.shards, hosts, host, config.use_annotated_boxes, order)
    digest = hashlib.sha256(repr(facts).encode()).hexdigest()[:16]
    return filesystem.join(config.cache_dir, f"{source.split}-{config.cache}-{digest}")
