"""Reads every record of one shard and collects what is in it and what is wrong with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from echoing.errors import DataError, RecordError
from pipeline import filesystem, tfrecord
from pipeline.dataset_info import ShardInfo
from pipeline.datasets.check_report import PROBLEM, WARNING, Finding, ShardCount


@dataclass(frozen=True)
class ShardTask:
    """One shard to read.

    Attributes:
        path: full path.
        split: the split that it belongs to.
        size_bytes: size of the file.
        recorded: its entry in `dataset.json`, or None.
    """

    path: str
    split: str
    size_bytes: int
    recorded: ShardInfo | None

    @property
    def name(self) -> str:
        """File name of the shard."""
        return filesystem.base_name(self.path)


@dataclass(frozen=True)
class ReadImage:
    """An image that was read, to find its duplicates."""

    digest: bytes
    record_index: int
    offset_bytes: int
    label: int | None
    filename: str


@dataclass
class ShardResult:
    """What was found in one shard.

    Attributes:
        count: name, size and number of readable records.
        findings: what is wrong or worth a note, in the order of the records.
        labels: records by class number.
        image_sizes: decoded images by (height, width) in pixels.
        record_bytes: length of each readable payload.
        images: every decoded image, to find duplicates.
    """

    count: ShardCount
    findings: list[Finding]
    labels: Counter[int] = field(default_factory=Counter)
    image_sizes: Counter[tuple[int, int]] = field(default_factory=Counter)
    record_bytes: list[int] = field(default_factory=list)
    images: list[ReadImage] = field(default_factory=list)


def read_shard(
    task: ShardTask,
    num_classes: int | None,
    add_progress: Callable[[int], None],
    is_stopped: Callable[[], bool],
) -> ShardResult:
    """Reads a shard from end to end; what is wrong becomes a finding, never an error.

    Args:
        task: the shard.
        num_classes: labels 0 to `num_classes - 1` are allowed; None allows all from 0.
        add_progress: told how many bytes more were read; adds up to the size of the file.
        is_stopped: asked before each record whether to give up.
    """
    result = ShardResult(ShardCount(task.name, task.split, 0, task.size_bytes, tfrecord.PLAIN), [])
    reported_bytes = 0
    compression = tfrecord.PLAIN
    try:
        compression = tfrecord.detect_compression(task.path)
        for index, record in enumerate(tfrecord.read_records(task.path, compression)):
            if is_stopped():
                break
            _add_record(result, index, record, num_classes)
            if compression == tfrecord.PLAIN:
                end = record.span.offset_bytes + record.span.length_bytes
                add_progress(end - reported_bytes)
                reported_bytes = end
    except RecordError as error:
        kind = "truncated shard" if isinstance(error, tfrecord.TruncatedShardError) else "unreadable record"
        text = f"{error.reason} The rest of the shard cannot be read."
        result.findings.append(
            Finding(PROBLEM, kind, text, error.shard, error.record_index, error.offset_bytes)
        )
    except DataError as error:
        result.findings.append(Finding(PROBLEM, "unreadable shard", str(error), task.name))
    add_progress(task.size_bytes - reported_bytes)
    result.count = ShardCount(task.name, task.split, len(result.record_bytes), task.size_bytes, compression)
    result.findings += _against_recorded(result.count, task.recorded, bool(result.findings))
    return result


def _add_record(result: ShardResult, index: int, record: tfrecord.RawRecord, num_classes: int | None) -> None:
    shard = result.count.name
    span = record.span
    if not record.is_intact:
        text = f"the checksum of its {span.length_bytes} bytes is wrong: the record is damaged"
        result.findings.append(Finding(PROBLEM, "unreadable record", text, shard, index, span.offset_bytes))
        return
    # Imports TensorFlow, which a wrong folder name need not wait for.
    from pipeline.datasets.record_check import check_record

    facts = check_record(record.payload, num_classes)
    result.record_bytes.append(span.length_bytes)
    for remark in facts.remarks:
        result.findings.append(
            Finding(remark.severity, remark.kind, remark.text, shard, index, span.offset_bytes)
        )
    if facts.label is not None:
        result.labels[facts.label] += 1
    if facts.image_size is not None:
        result.image_sizes[facts.image_size] += 1
    if facts.digest is not None:
        result.images.append(ReadImage(facts.digest, index, span.offset_bytes, facts.label, facts.filename))


def _against_recorded(count: ShardCount, recorded: ShardInfo | None, has_findings: bool) -> list[Finding]:
    expected = None if recorded is None else recorded.records
    if expected is not None and expected != count.records:
        text = f"{count.records} records could be read, but dataset.json recorded {expected}"
        return [Finding(PROBLEM, "count differs", text, count.name)]
    if recorded is not None and recorded.size_bytes != count.size_bytes:
        text = f"{count.size_bytes} bytes, but dataset.json recorded {recorded.size_bytes}"
        return [Finding(PROBLEM, "size differs", text, count.name)]
    if count.records == 0 and expected is None and not has_findings:
        return [Finding(WARNING, "empty shard", "the shard holds no records", count.name)]
    return []
