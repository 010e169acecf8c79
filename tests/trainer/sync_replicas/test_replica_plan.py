"""The numbers of synchronous training with backups."""

from __future__ import annotations

import pytest

from echoing.errors import OptionError
from trainer.sync_replicas import ReplicaPlan


@pytest.mark.parametrize(
    "aggregate, total, replicas, needed, per_step, own",
    [
        (4, None, 4, 0, 4, True),
        (4, 4, 4, 0, 4, True),
        (3, 4, 4, 0, 4, True),
        (50, 52, 52, 0, 52, True),
        (1, 1, 1, 0, 1, True),
        (4, 2, 2, 2, 4, False),
        (3, 2, 2, 1, 3, False),
    ],
)
def test_numbers_follow_from_the_two_counts(aggregate, total, replicas, needed, per_step, own):
    plan = ReplicaPlan(aggregate, total)
    assert plan.replicas == replicas
    assert plan.tokens_needed == plan.tokens_at_start == needed
    assert plan.tokens_per_step == per_step
    assert plan.own_tokens is own


def test_initial_tokens_may_be_more_than_needed():
    assert ReplicaPlan(4, 2, initial_tokens=4).tokens_at_start == 4


def test_initial_tokens_fewer_than_aggregate_less_total_are_refused():
    with pytest.raises(OptionError, match="initial_tokens is 1, but must be an integer >= 2"):
        ReplicaPlan(4, 2, initial_tokens=1)


@pytest.mark.parametrize("values", [(0, 1), (1, 0), (1.5, 2), (True, 2), (2, 2, -1), (2, 2, 0, "mine")])
def test_values_out_of_range_are_refused(values):
    with pytest.raises(OptionError):
        ReplicaPlan(*values)


def test_own_tokens_must_be_dealt_evenly():
    assert ReplicaPlan(4, 2, tokens="own").own_tokens
    with pytest.raises(OptionError, match="must be shared, for 3 tokens a step"):
        ReplicaPlan(3, 2, tokens="own")
