"""How to convert a source of pictures, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from echoing.checks import check_choice, check_integer
from pipeline.datasets.split_files import check_split

SOURCES = ("imagefolder", "idx")
DEFAULT_QUALITY = 95
"""The highest at which Pillow still quantises usefully; its documentation advises against more."""


@dataclass(frozen=True)
class ConvertOptions:
    """How to convert.

    Attributes:
        source: `imagefolder` or `idx`.
        split: name of the split to write.
        shards: number of shards; None for 8, or fewer for fewer records.
        labels_file: file with one class name a line that fixes the label numbers, or None.
        boxes_file: CSV file of boxes (see `boxes.read_boxes_csv`), or None.
        skip_bad: leave unusable pictures out instead of failing.
        overwrite: whether shards of this split may be replaced.
        seed: seed of the order of the records, which mixes the classes.
        workers: threads that read and decode; None for one a core. They do not change the result.
        quality: JPEG quality of pictures that have to be encoded again, 1 to 100.

    Raises:
        OptionError: a value is out of range.
    """

    source: str
    split: str = "train"
    shards: int | None = None
    labels_file: str | None = None
    boxes_file: str | None = None
    skip_bad: bool = False
    overwrite: bool = False
    seed: int = 0
    workers: int | None = None
    quality: int = DEFAULT_QUALITY

    def __post_init__(self) -> None:
        check_choice("from", self.source, SOURCES)
        check_split(self.split)
        check_integer("seed", self.seed, 0)
        check_integer("quality", self.quality, 1, 100)
        if self.shards is not None:
            check_integer("shards", self.shards, 1, 99_999)
        if self.workers is not None:
            check_integer("workers", self.workers, 1)


@dataclass(frozen=True)
class ConvertSummary:
    """What a conversion did.

    Attributes:
        data_dir: where the shards are.
        split: the split written.
        found: pictures found; written + rejected.
        written: records written.
        rejected: pictures left out.
        rejected_file: file that lists them with the reasons, or None without any.
        ignored: files left alone, by reason.
        changes: how many pictures were kept as they are, and how many were changed in which way.
        classes: the class list; class k has label k, from 1.
        shards: names of the shards.
        warnings: what the user should know.
    """

    data_dir: str
    split: str
    found: int
    written: int
    rejected: int
    rejected_file: str | None
    ignored: Mapping[str, int]
    changes: Mapping[str, int]
    classes: Sequence[str]
    shards: Sequence[str]
    warnings: Sequence[str]

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form."""
        return asdict(self)
