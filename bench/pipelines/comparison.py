"""What the comparison of pipelines measured, and the figures that are made of it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.pipelines.variants import CROP_DECODE, REFERENCE, Variant

STEADY_SPREAD = 1.5
"""Highest over lowest rate of one variant on a machine that does nothing else: 1.1 to 1.3 is usual."""


@dataclass(frozen=True)
class Round:
    """One measurement of one variant.

    Attributes:
        images: taken from it.
        seconds: in this time.
        cpu_seconds: that its processes used meanwhile.
        peak_memory_bytes: resident, since its start, over its processes; None where it is not known.
    """

    images: int
    seconds: float
    cpu_seconds: float
    peak_memory_bytes: int | None = None

    @property
    def images_per_second(self) -> float:
        """Images a second."""
        return self.images / self.seconds


@dataclass
class Measured:
    """The rounds of one variant.

    Attributes:
        variant: which.
        rounds: its measurements in order.
        error: why it gave none, or stopped giving them; empty where all went well.
    """

    variant: Variant
    rounds: list[Round] = field(default_factory=list)
    error: str = ""

    @property
    def images_per_second(self) -> float | None:
        """Median over the rounds."""
        return _median([one.images_per_second for one in self.rounds])

    @property
    def rate_spread(self) -> float | None:
        """Highest rate / lowest rate of the rounds."""
        rates = [one.images_per_second for one in self.rounds]
        return max(rates) / min(rates) if rates else None

    @property
    def cpu_seconds_per_image(self) -> float | None:
        """Median over the rounds."""
        return _median([one.cpu_seconds / one.images for one in self.rounds])

    @property
    def peak_memory_bytes(self) -> int | None:
        """The largest of the rounds."""
        peaks = [one.peak_memory_bytes for one in self.rounds if one.peak_memory_bytes is not None]
        return max(peaks, default=None)

    def ratios(self, other: Measured | None) -> list[float]:
        """Returns the ratios of the rates, round by round; none without the other."""
        if other is None:
            return []
        pairs = zip(self.rounds, other.rounds, strict=False)  # one of them may have stopped early
        return [ours.images_per_second / theirs.images_per_second for ours, theirs in pairs]


@dataclass(frozen=True)
class Ratio:
    """A ratio of two rates over the rounds.

    Attributes:
        median: of the rounds' ratios.
        lowest: of them.
        highest: of them.
    """

    median: float
    lowest: float
    highest: float


@dataclass(frozen=True)
class Comparison:
    """All variants, measured in turn.

    Attributes:
        measured: one entry a variant, in the order of the report.
    """

    measured: Sequence[Measured]

    def ratio(self, measured: Measured, other_name: str = REFERENCE) -> Ratio | None:
        """Returns the ratio to another variant; None where one of the two was not measured."""
        other = next((one for one in self.measured if one.variant.name == other_name), None)
        ratios = measured.ratios(other)
        return Ratio(statistics.median(ratios), min(ratios), max(ratios)) if ratios else None

    def ratio_to_limit(self, measured: Measured) -> Ratio | None:
        """Returns the ratio to decoding the crop alone."""
        return self.ratio(measured, CROP_DECODE)

    @property
    def warnings(self) -> list[str]:
        """What makes the figures doubtful, and the way out."""
        unsteady = [
            f"{one.variant.name} {one.rate_spread:.1f} times"
            for one in self.measured
            if one.rate_spread is not None and one.rate_spread > STEADY_SPREAD
        ]
        if not unsteady:
            return []
        return [
            f"The fastest round is far from the slowest one ({', '.join(unsteady)}): other work ran on this "
            "machine. End it and measure again; more --rounds help little against it."
        ]


def _median(values: list[float]) -> float | None:
    return statistics.median(values) if values else None
