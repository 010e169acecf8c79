"""The account of a run."""

from __future__ import annotations

from trainer.sync_replicas import ReplicaCounts, ReplicaReport


def test_totals_add_up_over_the_replicas():
    report = ReplicaReport(3, (ReplicaCounts(3, 1, 0), ReplicaCounts(3, 0, 2), ReplicaCounts()))
    assert (report.accepted, report.dropped, report.stale_tokens) == (6, 1, 2)
    assert [counts.batches for counts in report.replicas] == [4, 3, 0]


def test_text_names_every_figure_and_who_was_left_behind():
    report = ReplicaReport(2, (ReplicaCounts(2, 0, 0), ReplicaCounts(0, 1, 4)), left_behind=(1,))
    assert str(report) == (
        "2 updates from 2 gradients (by replica: 2, 0); 1 stale gradients dropped, 4 stale tokens passed "
        "over; still computing: replica 1"
    )
