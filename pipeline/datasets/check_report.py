"""What `check_dataset` found, as plain data: counts, histograms and findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

PROBLEM = "problem"
WARNING = "warning"
NOTE = "note"


@dataclass(frozen=True)
class Finding:
    """Something that the user should know.

    Attributes:
        severity: `problem` (the data is bad), `warning` (probably not meant) or `note` (allowed).
        kind: what it is, in two or three words; the same for all of its kind.
        text: the facts.
        shard: file name of the shard; None if it concerns the whole set.
        record_index: position of the record in the shard, from 0; None if it concerns the whole shard.
        offset_bytes: position of the record's first byte, after decompression in a gzip shard.
    """

    severity: str
    kind: str
    text: str
    shard: str | None = None
    record_index: int | None = None
    offset_bytes: int | None = None

    def __str__(self) -> str:
        """Where it is and what it is, in one line."""
        where = self.shard or ""
        if self.record_index is not None:
            where += f", record {self.record_index} (offset {self.offset_bytes} bytes)"
        return f"{where}: {self.text}" if where else self.text


@dataclass(frozen=True)
class ShardCount:
    """One shard as it was read.

    Attributes:
        name: file name.
        split: its split.
        records: records that could be read, framing and checksums being right.
        size_bytes: size of the file.
        compression: `""` or `"GZIP"`.
    """

    name: str
    split: str
    records: int
    size_bytes: int
    compression: str


@dataclass(frozen=True)
class CheckReport:
    """The result of a check.

    Attributes:
        data_dir: the folder.
        shards: every shard, in order.
        findings: problems, warnings and notes, by split, shard and record.
        ignored: files and folders that were not taken for shards.
        class_names: names of the classes 1, 2, ...; None without `labels.txt`.
        num_classes: number of class numbers allowed, 0 included; None if any from 0 is.
        label_counts: records by class number.
        image_sizes: decoded images by (height, width) in pixels.
        min_record_bytes: length of the shortest payload; None without a record.
        max_record_bytes: length of the longest payload; None without a record.
        total_record_bytes: sum of the lengths of the payloads.
    """

    data_dir: str
    shards: tuple[ShardCount, ...]
    findings: tuple[Finding, ...]
    ignored: tuple[str, ...]
    class_names: tuple[str, ...] | None
    num_classes: int | None
    label_counts: Mapping[int, int]
    image_sizes: Mapping[tuple[int, int], int]
    min_record_bytes: int | None
    max_record_bytes: int | None
    total_record_bytes: int

    @property
    def is_good(self) -> bool:
        """Whether there is no problem; warnings and notes do not count."""
        return not self.of_severity(PROBLEM)

    @property
    def records(self) -> int:
        """Number of records that could be read."""
        return sum(shard.records for shard in self.shards)

    @property
    def mean_record_bytes(self) -> float | None:
        """Mean length of a payload in bytes, or None without a record."""
        return self.total_record_bytes / self.records if self.records else None

    @property
    def label_range(self) -> tuple[int, int] | None:
        """The smallest and the largest label found, or None."""
        return (min(self.label_counts), max(self.label_counts)) if self.label_counts else None

    def of_severity(self, severity: str) -> tuple[Finding, ...]:
        """Returns the findings of one severity, in order."""
        return tuple(finding for finding in self.findings if finding.severity == severity)

    def records_by_split(self) -> dict[str, int]:
        """Returns the number of records of each split."""
        counts: Counter[str] = Counter()
        for shard in self.shards:
            counts[shard.split] += shard.records
        return dict(counts)

    def class_name(self, label: int) -> str:
        """Returns the name of a class number, empty if it has none."""
        if label == 0:
            return "background"
        names = self.class_names or ()
        return names[label - 1] if 1 <= label <= len(names) else ""

    def size_histogram(self) -> list[tuple[int, int, int]]:
        """Returns the images by their longer side in pixels, in bins that double: (from, to, images)."""
        bins: Counter[int] = Counter()
        for (height, width), images in self.image_sizes.items():
            bins[max(height, width).bit_length()] += images
        return [(1 << (bits - 1), (1 << bits) - 1, bins[bits]) for bits in sorted(bins)]

    def size_range(self) -> dict[str, int | float | None]:
        """Returns the least, mean and greatest height and width of the images, pixels; None without one."""
        images = sum(self.image_sizes.values())
        facts: dict[str, int | float | None] = {}
        for axis, name in enumerate(("height", "width")):
            values = [size[axis] for size in self.image_sizes]
            total = sum(size[axis] * count for size, count in self.image_sizes.items())
            facts[f"min_{name}"] = min(values, default=None)
            facts[f"mean_{name}"] = total / images if images else None
            facts[f"max_{name}"] = max(values, default=None)
        return facts

    def to_dict(self) -> dict[str, Any]:
        """Returns the report as JSON can hold it."""
        return {
            "data_dir": self.data_dir,
            "good": self.is_good,
            "records": self.records,
            "splits": self.records_by_split(),
            "shards": [asdict(shard) for shard in self.shards],
            "record_bytes": {
                "min": self.min_record_bytes,
                "mean": self.mean_record_bytes,
                "max": self.max_record_bytes,
            },
            "image_sizes": {
                **self.size_range(),
                "by_longer_side": [
                    {"from": first, "to": last, "images": images}
                    for first, last, images in self.size_histogram()
                ],
            },
            "labels": {
                "found": self.label_range,
                "allowed": None if self.num_classes is None else (0, self.num_classes - 1),
                "histogram": [
                    {"label": label, "name": self.class_name(label), "records": self.label_counts[label]}
                    for label in sorted(self.label_counts)
                ],
            },
            "ignored": list(self.ignored),
            **{
                severity + "s": [asdict(finding) for finding in self.of_severity(severity)]
                for severity in (PROBLEM, WARNING, NOTE)
            },
        }
