"""Reads every record of a data set and reports what is in it and what is wrong with it."""

from __future__ import annotations

import concurrent.futures
import os
import threading
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence

from echoing.checks import check_integer
from echoing.errors import DataError
from pipeline import filesystem
from pipeline.dataset_info import DatasetInfo, ShardInfo, read_dataset_info
from pipeline.datasets.check_report import PROBLEM, WARNING, CheckReport, Finding
from pipeline.datasets.shard_check import ReadImage, ShardResult, ShardTask, read_shard
from pipeline.labels import read_labels
from pipeline.shard_files import ShardName, find_splits, in_threads, select_shards, summarize

Progress = Callable[[int, int], None]
"""Called with the bytes read so far and the bytes of all shards; by one thread at a time, but by several."""


def check_dataset(
    data_dir: str,
    split: str | None = None,
    file_pattern: str | None = None,
    num_classes: int | None = None,
    progress: Progress | None = None,
) -> CheckReport:
    """Reads every record of a data set: framing, checksums, keys, image, label, boxes, duplicates.

    Shards are read in parallel, one thread a core; decoding the images takes nearly all of the time.

    Args:
        data_dir: the folder, local or `scheme://`.
        split: the split to check; None checks all that are there, and finds duplicates between them.
        file_pattern: shell pattern for names inside the folder, in place of the names of the splits.
        num_classes: labels 0 to `num_classes - 1` are allowed. None: 0 to the number of names in
            `labels.txt`, or any from 0 without that file.
        progress: told how far the reading has come.

    Raises:
        OptionError: an option has a value that is not allowed.
        DataError: the folder is missing or empty, nothing matches, shards are missing, or there are no
            records at all.
    """
    if num_classes is not None:
        check_integer("num_classes", num_classes, minimum=1)
    if file_pattern is not None:
        splits: tuple[str, ...] = (split or "train",)
    else:
        splits = (split,) if split is not None else find_splits(data_dir)
    selections = {name: select_shards(data_dir, name, file_pattern) for name in splits}
    info = read_dataset_info(data_dir)
    class_names = read_labels(data_dir)
    if num_classes is None and class_names is not None:
        num_classes = len(class_names) + 1
    tasks = _tasks(data_dir, {name: selections[name].names for name in splits}, info)
    shards = _read_all(tasks, num_classes, progress)
    if not any(shard.count.records or _has_problem(shard) for shard in shards):
        raise DataError(f"There are no records in {data_dir}: all of its shards are empty.")
    findings = [finding for shard in shards for finding in shard.findings]
    findings += _duplicates(shards)
    if info is not None and file_pattern is None:
        recorded = info.splits if split is None else {split: info.splits.get(split, ())}
        findings += _lost_shards(recorded, {task.name for task in tasks})
    findings += _classes_without_records(shards, class_names or ())
    lengths = [length for shard in shards for length in shard.record_bytes]
    return CheckReport(
        data_dir=data_dir,
        shards=tuple(shard.count for shard in shards),
        findings=tuple(findings),
        ignored=tuple(sorted({name for chosen in selections.values() for name in chosen.ignored})),
        class_names=None if class_names is None else tuple(class_names),
        num_classes=num_classes,
        label_counts=sum((shard.labels for shard in shards), Counter[int]()),
        image_sizes=sum((shard.image_sizes for shard in shards), Counter[tuple[int, int]]()),
        min_record_bytes=min(lengths, default=None),
        max_record_bytes=max(lengths, default=None),
        total_record_bytes=sum(lengths),
    )


class _Meter:
    """Adds up the bytes that the threads have read."""

    def __init__(self, total_bytes: int, progress: Progress | None) -> None:
        self._total_bytes = total_bytes
        self._progress = progress
        self._done_bytes = 0
        self._lock = threading.Lock()

    def add(self, count_bytes: int) -> None:
        if self._progress is not None:
            with self._lock:
                self._done_bytes += count_bytes
                self._progress(self._done_bytes, self._total_bytes)


def _tasks(data_dir: str, names: Mapping[str, Sequence[str]], info: DatasetInfo | None) -> list[ShardTask]:
    tasks = []
    for split, shard_names in names.items():
        paths = [filesystem.join(data_dir, name) for name in shard_names]
        sizes = in_threads(filesystem.size_bytes, paths)
        if not any(sizes):
            raise DataError(
                f"There are no records in the split {split!r} of {data_dir}: all of its shards are empty."
            )
        for name, path, size in zip(shard_names, paths, sizes, strict=True):
            # A file pattern may choose shards of any split.
            parsed = ShardName.parse(name)
            recorded = info.find_shard(name) if info else None
            tasks.append(ShardTask(path, parsed.split if parsed else split, size, recorded))
    return tasks


def _read_all(
    tasks: Sequence[ShardTask], num_classes: int | None, progress: Progress | None
) -> list[ShardResult]:
    meter = _Meter(sum(task.size_bytes for task in tasks), progress)
    stop = threading.Event()
    pool = concurrent.futures.ThreadPoolExecutor(min(len(tasks), os.cpu_count() or 1))
    try:
        return list(pool.map(lambda task: read_shard(task, num_classes, meter.add, stop.is_set), tasks))
    finally:
        # Set by an error or Ctrl-C: the threads give up at their next record.
        stop.set()
        pool.shutdown(cancel_futures=True)


def _has_problem(shard: ShardResult) -> bool:
    return any(finding.severity == PROBLEM for finding in shard.findings)


def _duplicates(shards: Sequence[ShardResult]) -> list[Finding]:
    first: dict[bytes, tuple[str, ReadImage]] = {}
    findings = []
    for shard in shards:
        for image in shard.images:
            if image.digest not in first:
                first[image.digest] = (shard.count.name, image)
                continue
            other_shard, other = first[image.digest]
            text = (
                f"the image{_named(image)} is that of {other_shard}, record {other.record_index}"
                f"{_named(other)}"
            )
            if image.label != other.label:
                text += f", under another label: {image.label} here, {other.label} there"
            findings.append(
                Finding(PROBLEM, "duplicate", text, shard.count.name, image.record_index, image.offset_bytes)
            )
    return findings


def _named(image: ReadImage) -> str:
    return f" ({image.filename})" if image.filename else ""


def _lost_shards(recorded: Mapping[str, Sequence[ShardInfo]], present: Container[str]) -> list[Finding]:
    return [
        Finding(
            PROBLEM,
            "lost shard",
            f"dataset.json lists it with {shard.records} records; it is gone",
            shard.name,
        )
        for shards in recorded.values()
        for shard in shards
        if shard.name not in present
    ]


def _classes_without_records(shards: Sequence[ShardResult], class_names: Sequence[str]) -> list[Finding]:
    findings = []
    labels: dict[str, Counter[int]] = {}
    for shard in shards:
        labels.setdefault(shard.count.split, Counter()).update(shard.labels)
    for split, counts in labels.items():
        absent = [f"{name} ({label})" for label, name in enumerate(class_names, start=1) if not counts[label]]
        if absent:
            text = f"{len(absent)} of {len(class_names)} classes have no record in the split {split}: "
            findings.append(Finding(WARNING, "class without records", text + summarize(absent)))
    return findings
