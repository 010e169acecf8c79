"""What a converter finds before it decodes anything: pictures with their classes, rejects, ignored files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from pipeline.datasets.image_bytes import JpegImage


@dataclass(frozen=True)
class Candidate:
    """A picture that may become a record.

    Attributes:
        filename: tells it apart within the source; stored in the record.
        class_index: from 0, into `SourceListing.class_names`.
        load: reads and decodes it, called with the JPEG quality; raises `RejectedImage`.
    """

    filename: str
    class_index: int
    load: Callable[[int], JpegImage]


@dataclass(frozen=True)
class Reject:
    """A picture that cannot become a record.

    Attributes:
        filename: as in `Candidate`.
        reason: why.
    """

    filename: str
    reason: str


@dataclass
class SourceListing:
    """Everything found in a source.

    Attributes:
        class_names: names of the classes found, in the order that gives them their numbers without a list.
        candidates: in a fixed order that depends on the names only.
        rejects: pictures that are refused already by where or what they are.
        ignored: number of files (or whole hidden folders) left alone, by reason.
    """

    class_names: list[str] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    ignored: Counter[str] = field(default_factory=Counter)

    @property
    def found(self) -> int:
        """Number of pictures found, usable or not."""
        return len(self.candidates) + len(self.rejects)
