"""Freshness accounting: which of the examples trained on were fresh and which were repeats."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from echoing.checks import check_integer
from echoing.errors import DataError
from echoing.recent_uses import MISSING, Integers, RecentUses

DEFAULT_WINDOW = 2**18
"""Enough for a shuffle buffer of 17,000 examples behind the echo: a use stays in a buffer of S examples for a
time of mean S (see `shuffle_budget`), so that one in e^15 = 3 million stays longer than 15 S."""


def count_fresh(repeat_index: np.ndarray[Any, Any]) -> int:
    """Returns how many examples of a batch are used for the first time since they were read.

    Args:
        repeat_index: integers of any shape, 0 for the fresh use of an example, 1 and up for its repeats, as
            the echo writes them.
    """
    return int(np.count_nonzero(np.asarray(repeat_index) == 0))


@dataclass(frozen=True)
class DistanceBin:
    """Consecutive uses of one example, `at_least` <= distance < `below`, in examples trained."""

    at_least: int
    below: int
    count: int


@dataclass(frozen=True)
class FreshnessReport:
    """What a `FreshnessTracker` counted. All counts are exact.

    `trained = fresh + repeated` always holds, and `examples = fresh - second_reads + unmatched_examples`.

    Attributes:
        trained: uses of examples, repeats included.
        fresh: uses with repeat index 0, the same number that `count_fresh` gives batch by batch.
        repeated: uses with a repeat index above 0.
        examples: different examples used; one that came back after it was forgotten counts again.
        unmatched_examples: of these, the ones of which only repeats were seen: a shuffle may let a repeat go
            first, and the fresh use is then still in its buffer, was dropped, or lies beyond the window. Over
            a whole stream that forgets nothing it is 0.
        second_reads: fresh uses of an example that had one already; above 0 the ids are not unique.
        forgotten_examples: examples whose last use lies further back than the window. A later use of such an
            example counts as a new example, without a distance.
        batches: batches with at least one example.
        batches_with_duplicates: of these, the ones that hold some example more than once.
        duplicates_within_batches: uses whose example stands earlier in the same batch.
        uses_per_example: trained / examples; None before the first.
        effective_epochs: fresh / records of the data set; None where the records are not known.
        median_distance: median of the distances between consecutive uses of one example, in examples
            trained; 1 is the next place. None without repeats.
        distances: histogram of these distances in powers of two, from 1 to the largest that occurred.
        window: how far back a use is remembered, in examples trained.
    """

    trained: int
    fresh: int
    repeated: int
    examples: int
    unmatched_examples: int
    second_reads: int
    forgotten_examples: int
    batches: int
    batches_with_duplicates: int
    duplicates_within_batches: int
    uses_per_example: float | None
    effective_epochs: float | None
    median_distance: float | None
    distances: tuple[DistanceBin, ...]
    window: int

    def to_dict(self) -> dict[str, Any]:
        """Returns the report as plain numbers, lists and dictionaries, ready for JSON."""
        return {**asdict(self), "distances": [asdict(distance) for distance in self.distances]}


class FreshnessTracker:
    """Counts fresh and repeated examples from their ids and repeat indices, batch by batch.

    A fresh example is one that was read from storage; its further uses are repeats. Which use is which is
    told by the repeat index that the echo writes: it stays right when a shuffle lets a repeat leave before
    the fresh use, and needs no memory. The ids tell the rest: duplicates, distances, different examples.

    Memory: at most 150 bytes for each example of the window, plus as much for one batch. Time in proportion
    to the batch.

    Args:
        window: how far back a use is remembered, in examples trained: a use at distance `window` of the last
            one is still linked to it. 15 times the shuffle buffer behind the echo is enough.
        records: records in the data set, for the effective epochs; None if not known.

    Raises:
        OptionError: a window or a number of records below 1.
    """

    def __init__(self, window: int = DEFAULT_WINDOW, records: int | None = None) -> None:
        self._window = check_integer("window", window, minimum=1)
        self._records = None if records is None else check_integer("records", records, minimum=1)
        # Values are 2 x position of the last use + whether the fresh use was seen.
        self._uses = RecentUses()
        self._generation_start = 0
        # Uses by distance, one by one, so that the median is exact.
        self._distance_counts: Integers = np.zeros(1024, np.int64)
        self._trained = self._fresh = self._examples = self._unmatched = self._second_reads = 0
        self._batches = self._batches_with_duplicates = self._duplicates = 0

    def update(self, example_ids: Any, repeat_index: Any) -> None:
        """Counts one batch.

        Args:
            example_ids: int64 `[batch]`, a different id for every read of a record.
            repeat_index: integers `[batch]`, 0 for the fresh use of an example, 1 and up for its repeats.

        Raises:
            DataError: the arrays hold no integers, differ in shape, or an index is negative.
        """
        ids, repeats = _checked(example_ids, repeat_index)
        if not ids.size:
            return
        if self._trained - self._generation_start >= self._window:
            self._uses.start_generation()
            self._generation_start = self._trained
        # Uses of one example stand together, in the order of the batch.
        order = np.argsort(ids, kind="stable")
        ids, positions = ids[order], self._trained + order
        is_first = np.concatenate([[True], ids[1:] != ids[:-1]])
        starts = np.flatnonzero(is_first)
        ends = np.append(starts[1:], ids.size) - 1
        fresh_uses = np.add.reduceat((repeats[order] == 0).astype(np.int64), starts)

        last = self._uses.get(ids[starts])
        gaps = positions[starts] - (last >> 1)
        known = (last != MISSING) & (gaps <= self._window)
        had_fresh = known & ((last & 1) == 1)
        has_fresh = had_fresh | (fresh_uses > 0)
        self._uses.set(ids[starts], 2 * positions[ends] + has_fresh)

        within = np.flatnonzero(~is_first)
        self._count_distances(np.concatenate([gaps[known], positions[within] - positions[within - 1]]))
        self._trained += ids.size
        self._fresh += int(fresh_uses.sum())
        self._examples += int(np.count_nonzero(~known))
        self._unmatched += int(np.count_nonzero(~has_fresh)) - int(np.count_nonzero(known & ~had_fresh))
        self._second_reads += int(np.maximum(fresh_uses + had_fresh - 1, 0).sum())
        self._batches += 1
        self._batches_with_duplicates += within.size > 0
        self._duplicates += within.size

    def report(self) -> FreshnessReport:
        """Returns what was counted so far. Takes time in proportion to the window."""
        distances, median = _summarize(self._distance_counts)
        trained, examples = self._trained, self._examples
        remembered = self._uses.count_from(2 * max(0, trained - self._window))
        return FreshnessReport(
            trained=trained,
            fresh=self._fresh,
            repeated=trained - self._fresh,
            examples=examples,
            unmatched_examples=self._unmatched,
            second_reads=self._second_reads,
            forgotten_examples=examples - remembered,
            batches=self._batches,
            batches_with_duplicates=self._batches_with_duplicates,
            duplicates_within_batches=self._duplicates,
            uses_per_example=trained / examples if examples else None,
            effective_epochs=None if self._records is None else self._fresh / self._records,
            median_distance=median,
            distances=distances,
            window=self._window,
        )

    def _count_distances(self, distances: Integers) -> None:
        if not distances.size:
            return
        longest = int(distances.max())
        counts = self._distance_counts
        if longest >= counts.size:
            self._distance_counts = np.zeros(1 << longest.bit_length(), np.int64)
            self._distance_counts[: counts.size] = counts
        np.add.at(self._distance_counts, distances, 1)


def _checked(example_ids: Any, repeat_index: Any) -> tuple[Integers, Integers]:
    ids, repeats = np.asarray(example_ids), np.asarray(repeat_index)
    advice = "Give the features example_id and repeat_index of one batch."
    if ids.shape != repeats.shape or ids.ndim != 1:
        raise DataError(
            f"example ids have shape {ids.shape} and repeat indices {repeats.shape}, "
            f"but both must be [batch]. {advice}"
        )
    if not (np.issubdtype(ids.dtype, np.integer) and np.issubdtype(repeats.dtype, np.integer)):
        raise DataError(
            f"example ids are {ids.dtype} and repeat indices {repeats.dtype}, but must be integers. {advice}"
        )
    if repeats.size and repeats.min() < 0:
        raise DataError(f"a repeat index is {repeats.min()}, but must be 0 or more. {advice}")
    return ids.astype(np.int64), repeats.astype(np.int64)


def _summarize(counts: Integers) -> tuple[tuple[DistanceBin, ...], float | None]:
    """Returns the histogram in powers of two and the median of distances counted one by one."""
    used = np.flatnonzero(counts)
    if not used.size:
        return (), None
    bins = tuple(
        DistanceBin(1 << exponent, 2 << exponent, int(counts[1 << exponent : 2 << exponent].sum()))
        for exponent in range(int(used[-1]).bit_length())
    )
    cumulated = np.cumsum(counts[used])
    total = int(cumulated[-1])
    # The two middle ones, which are the same one where the total is odd.
    middle = np.searchsorted(cumulated, [(total - 1) // 2, total // 2], side="right")
    return bins, float(used[middle].mean())
