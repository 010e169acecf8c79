"""Counting fresh and repeated examples, against a slow count, use by use, that keeps everything."""

from __future__ import annotations

import json
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echoing.errors import DataError, OptionError
from echoing.freshness import DistanceBin, FreshnessTracker, count_fresh


@pytest.mark.parametrize(
    ("repeat_index", "fresh"), [([0, 1, 0, 2], 2), ([], 0), ([1, 1], 0), (0, 1), (np.zeros(5, np.int64), 5)]
)
def test_only_the_first_use_counts_as_fresh(repeat_index, fresh):
    assert count_fresh(np.asarray(repeat_index)) == fresh


def track(*batches, **options):
    tracker = FreshnessTracker(**options)
    for ids, repeats in batches:
        tracker.update(np.array(ids, np.int64), np.array(repeats, np.int64))
    return tracker.report()


# --- by hand -----------------------------------------------------------------------------------------------


def test_nothing_trained_gives_zeros_and_no_ratios():
    report = track()
    assert (report.trained, report.fresh, report.batches, report.forgotten_examples) == (0, 0, 0, 0)
    assert (report.uses_per_example, report.effective_epochs, report.median_distance) == (None, None, None)
    assert report.distances == ()


def test_batch_without_examples_is_not_counted():
    assert track(([], []), records=3) == track(records=3)


def test_repeats_side_by_side_are_duplicates_at_distance_one():
    report = track(([0, 0, 1, 1], [0, 1, 0, 1]), ([2, 3], [0, 0]), records=8)
    assert (report.trained, report.fresh, report.repeated, report.examples) == (6, 4, 2, 4)
    assert (report.batches, report.batches_with_duplicates, report.duplicates_within_batches) == (2, 1, 2)
    assert report.median_distance == 1
    assert report.distances == (DistanceBin(1, 2, 2),)
    assert report.uses_per_example == 1.5
    assert report.effective_epochs == 0.5


def test_batch_echo_gives_distances_of_a_batch_and_no_duplicates():
    report = track(([0, 1, 2], [0, 0, 0]), ([0, 1, 2], [1, 1, 1]))
    assert report.distances == (DistanceBin(1, 2, 0), DistanceBin(2, 4, 3))
    assert report.median_distance == 3
    assert report.duplicates_within_batches == 0


def test_repeat_that_leaves_the_shuffle_first_is_a_repeat_and_its_fresh_use_is_awaited():
    early = ([5], [1])
    report = track(early)
    assert (report.fresh, report.repeated, report.examples, report.unmatched_examples) == (0, 1, 1, 1)
    report = track(early, ([5, 5], [2, 0]))
    assert (report.fresh, report.repeated, report.examples, report.unmatched_examples) == (1, 2, 1, 0)


def test_ids_that_are_used_for_a_second_read_are_reported():
    report = track(([1, 2], [0, 0]), ([1, 1, 3], [0, 1, 0]), ([4, 4], [0, 0]))
    assert report.second_reads == 2
    assert report.fresh == 6
    assert report.examples == 4


def test_use_exactly_a_window_back_is_linked_and_one_further_back_is_forgotten():
    stream = [([1], [0]), ([2], [0]), ([3], [0]), ([1], [1])]
    assert track(*stream, window=3).median_distance == 3
    report = track(*stream, window=2)
    assert report.median_distance is None
    assert (report.examples, report.unmatched_examples, report.fresh) == (4, 1, 3)
    assert report.forgotten_examples == 2


def test_median_of_an_even_number_of_distances_is_their_middle():
    assert track(([1, 1, 2, 3, 1], [0, 1, 0, 0, 2])).median_distance == 2  # distances 1 and 3


def test_report_is_plain_data_for_json():
    report = track(([1, 1], [0, 1]), records=1, window=7)
    assert json.loads(json.dumps(report.to_dict()))["distances"] == [{"at_least": 1, "below": 2, "count": 1}]
    assert report.to_dict()["window"] == 7


# --- bad input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ids", "repeats", "message"),
    [
        ([1, 2], [0], r"shape \(2,\) and repeat indices \(1,\)"),
        ([[1]], [[0]], r"must be \[batch\]"),
        (1, 0, r"must be \[batch\]"),
        ([1.0], [0], "float64"),
        (["a"], [0], "must be integers"),
        ([1], [-1], "-1, but must be 0 or more"),
    ],
)
def test_arrays_that_are_no_tags_of_a_batch_are_refused(ids, repeats, message):
    tracker = FreshnessTracker()
    with pytest.raises(DataError, match=message):
        tracker.update(ids, repeats)
    assert tracker.report().trained == 0


@pytest.mark.parametrize("options", [{"window": 0}, {"window": 2.5}, {"records": 0}])
def test_option_out_of_range_is_refused(options):
    with pytest.raises(OptionError, match=next(iter(options))):
        FreshnessTracker(**options)


# --- laws --------------------------------------------------------------------------------------------------


class SlowCount:
    """Counts use by use, with one list of everything that was seen."""

    def __init__(self, window):
        self.window = window
        self.last, self.fresh_seen = {}, {}
        self.distances, self.sightings = [], []
        self.trained = self.fresh = self.second_reads = self.duplicates = self.bad_batches = 0

    def update(self, ids, repeats):
        start = self.trained
        duplicates = len(ids) - len(set(ids))
        self.duplicates += duplicates
        self.bad_batches += duplicates > 0
        for key, repeat in zip(ids, repeats, strict=True):
            position = self.trained
            last = self.last.get(key)
            # Within one batch nothing is forgotten.
            if last is not None and (position - last <= self.window or last >= start):
                self.distances.append(position - last)
            else:
                self.sightings.append(key)
                self.fresh_seen[key] = []
            self.last[key] = position
            if repeat == 0:
                self.fresh += 1
                self.second_reads += bool(self.fresh_seen[key])
                self.fresh_seen[key].append(position)
            self.trained += 1

    @property
    def remembered(self):
        return sum(position >= self.trained - self.window for position in self.last.values())


IDS = st.one_of(st.integers(0, 8), st.sampled_from([-1, 2**40, 2**63 - 1]))
BATCHES = st.lists(st.lists(st.tuples(IDS, st.integers(0, 2)), max_size=9), max_size=12)


@settings(deadline=None)
@given(BATCHES, st.integers(1, 30))
def test_counts_agree_with_a_count_use_by_use(batches, window):
    slow, tracker = SlowCount(window), FreshnessTracker(window)
    for batch in batches:
        ids, repeats = [use[0] for use in batch], [use[1] for use in batch]
        slow.update(ids, repeats)
        tracker.update(np.array(ids, np.int64), np.array(repeats, np.int64))
    report = tracker.report()
    assert report.trained == slow.trained
    assert report.fresh == slow.fresh
    assert report.repeated == slow.trained - slow.fresh
    assert report.examples == len(slow.sightings)
    assert report.second_reads == slow.second_reads
    assert report.examples == report.fresh - report.second_reads + report.unmatched_examples
    assert report.forgotten_examples == len(slow.sightings) - slow.remembered
    assert report.batches == sum(bool(batch) for batch in batches)
    assert report.batches_with_duplicates == slow.bad_batches
    assert report.duplicates_within_batches == slow.duplicates
    assert report.median_distance == (statistics.median(slow.distances) if slow.distances else None)
    for distances in report.distances:
        inside = [distance for distance in slow.distances if distances.at_least <= distance < distances.below]
        assert distances.count == len(inside)
    assert sum(distances.count for distances in report.distances) == len(slow.distances)


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(1, 5), st.integers(1, 16), st.randoms(use_true_random=False))
def test_over_a_whole_shuffled_stream_the_sums_are_exact(examples, factor, batch_size, random):
    uses = [(example, repeat) for example in range(examples) for repeat in range(factor)]
    random.shuffle(uses)
    tracker = FreshnessTracker(records=examples)
    for start in range(0, len(uses), batch_size):
        ids, repeats = zip(*uses[start : start + batch_size], strict=True)
        tracker.update(np.array(ids), np.array(repeats))
    report = tracker.report()
    assert report.fresh == report.examples == examples
    assert report.trained == factor * examples
    assert report.unmatched_examples == report.second_reads == report.forgotten_examples == 0
    assert report.uses_per_example == factor
    assert report.effective_epochs == 1


def test_memory_stays_bounded_over_a_long_stream():
    tracker = FreshnessTracker(window=1000)
    for start in range(0, 100_000, 100):
        tracker.update(np.arange(start, start + 100), np.zeros(100, np.int64))
    tables = (tracker._uses._newer, tracker._uses._older)
    memory_bytes = sum(table.keys.nbytes + table.values.nbytes for table in tables)
    assert memory_bytes + tracker._distance_counts.nbytes <= 150 * (1000 + 100)
    assert tracker.report().forgotten_examples == 99_000
