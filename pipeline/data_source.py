"""What is known of the data before anything is built on it: its shards, their records, its class names.

The folder is inspected once, so that a wrong folder, a lost shard or a truncated one is said at once and not
in the middle of training. Local folders are inspected without TensorFlow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from echoing.errors import DataError
from pipeline import filesystem, tfrecord
from pipeline.dataset_info import DatasetInfo, ShardInfo, read_dataset_info
from pipeline.labels import read_labels
from pipeline.shard_files import in_threads, select_shards, summarize


@dataclass(frozen=True)
class Shard:
    """One shard that is read.

    Attributes:
        path: full path, local or `scheme://`.
        compression: `""` or `"GZIP"`, as TensorFlow's reader takes it.
        records: number of records; None where they were not counted.
        size_bytes: size of the file, compressed or not.
    """

    path: str
    compression: str
    records: int | None
    size_bytes: int

    @property
    def name(self) -> str:
        """File name of the shard."""
        return filesystem.base_name(self.path)


@dataclass(frozen=True)
class DataSource:
    """The data of one split.

    Attributes:
        data_dir: the folder, as given.
        split: the split, as given.
        shards: the shards that hold records, in the order of their names.
        labels: names of the classes 1, 2, ...; None without `labels.txt`.
        info: content of `dataset.json`; None without it.
        ignored: files and folders that were not taken for shards.
        warnings: what the user should know, such as empty shards.
    """

    data_dir: str
    split: str
    shards: tuple[Shard, ...]
    labels: tuple[str, ...] | None
    info: DatasetInfo | None
    ignored: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def records(self) -> int | None:
        """Number of records; None where some shard was not counted."""
        total = 0
        for shard in self.shards:
            if shard.records is None:
                return None
            total += shard.records
        return total

    @property
    def mean_record_bytes(self) -> float | None:
        """Mean bytes in storage of a record, framing included, as compressed; None where not counted."""
        records = self.records
        return sum(shard.size_bytes for shard in self.shards) / records if records else None

    @property
    def num_classes(self) -> int | None:
        """Number of class numbers, the background (0) included; None without class names."""
        return None if self.labels is None else len(self.labels) + 1


def open_data_source(
    data_dir: str, split: str = "train", file_pattern: str | None = None, count_records: bool = True
) -> DataSource:
    """Inspects a data folder.

    Records are counted by `dataset.json` where it has the shard with its present size, and else by walking
    over the record headers (10 to 20 microseconds a record; a gzip shard is decompressed). On remote file
    systems, `ram://` apart, nothing is walked: every header would be a request.

    Args:
        data_dir: the folder, local or `scheme://`; a literal name, not a pattern.
        split: what stands before `-00000-of-00008` in the names of the shards.
        file_pattern: shell pattern for names inside the folder, in place of the names of the split.
        count_records: whether to walk over shards whose count is not recorded.

    Raises:
        OptionError: the split or the pattern is no name.
        DataError: the folder is missing or empty, nothing matches, shards are missing, a shard does not have
            its recorded size, or there are no records.
        RecordError: a shard ends inside a record or is no TFRecord file.
    """
    selection = select_shards(data_dir, split, file_pattern)
    info = read_dataset_info(data_dir)
    class_names = read_labels(data_dir)
    if info is not None and file_pattern is None:
        _check_recorded_are_present(info.splits.get(split, ()), selection.names, data_dir)
    paths = [filesystem.join(data_dir, name) for name in selection.names]
    sizes = in_threads(filesystem.size_bytes, paths)
    recorded = [info.find_shard(name) if info else None for name in selection.names]
    _check_recorded_sizes(recorded, sizes)
    filled = [
        (path, size, entry) for path, size, entry in zip(paths, sizes, recorded, strict=True) if size > 0
    ]
    may_walk = count_records and (not filesystem.is_remote(data_dir) or data_dir.startswith("ram://"))
    shards = tuple(in_threads(lambda item: _inspect(*item, may_walk), filled))
    read = tuple(shard for shard in shards if shard.records != 0)
    if not read:
        raise DataError(
            f"There are no records in {data_dir}: {_are_empty(selection.names)}. What wrote them found no "
            "input; make the data again."
        )
    read_names = {shard.name for shard in read}
    empty = [
        name
        for name, entry in zip(selection.names, recorded, strict=True)
        if name not in read_names and (entry is None or entry.records > 0)
    ]
    return DataSource(
        data_dir=data_dir,
        split=split,
        shards=read,
        labels=None if class_names is None else tuple(class_names),
        info=info,
        ignored=selection.ignored,
        warnings=(f"{_are_empty(empty)}; not read.",) if empty else (),
    )


def _inspect(path: str, size_bytes: int, recorded: ShardInfo | None, may_walk: bool) -> Shard:
    compression = tfrecord.detect_compression(path)
    records = None
    if recorded is not None:
        records = recorded.records
    elif may_walk:
        records = sum(1 for _ in tfrecord.walk(path, compression))
    return Shard(path, compression, records, size_bytes)


def _are_empty(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"the shard {names[0]} is empty"
    return f"{len(names)} shards are empty ({summarize(names)})"


def _check_recorded_are_present(recorded: Sequence[ShardInfo], names: Sequence[str], data_dir: str) -> None:
    missing = [shard.name for shard in recorded if shard.name not in names]
    if missing:
        raise DataError(
            f"dataset.json lists {summarize(missing)}, which {'is' if len(missing) == 1 else 'are'} not in "
            f"{data_dir}. Copy or make the data again; if other shards are there on purpose, remove "
            "dataset.json."
        )


def _check_recorded_sizes(recorded: Sequence[ShardInfo | None], sizes: Sequence[int]) -> None:
    for entry, size in zip(recorded, sizes, strict=True):
        if entry is not None and entry.size_bytes != size:
            raise DataError(
                f"{entry.name} has {size} bytes, but dataset.json recorded {entry.size_bytes} bytes with "
                f"{entry.records} records: it was cut or changed. Copy or make the shard again; if it was "
                "changed on purpose, remove dataset.json."
            )
