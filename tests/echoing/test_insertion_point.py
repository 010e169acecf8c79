"""Names of the insertion points."""

from __future__ import annotations

import pytest

from echoing.errors import OptionError
from echoing.insertion_point import InsertionPoint


@pytest.mark.parametrize(
    ("alias", "canonical"),
    [
        ("before_decode", "after_read"),
        ("before_augment", "after_decode"),
        ("before_batch", "after_augment"),
        ("before_transfer", "after_batch"),
        ("before_step", "after_transfer"),
    ],
)
def test_alias_denotes_the_same_point_as_its_canonical_name(alias, canonical):
    assert InsertionPoint.parse(alias) is InsertionPoint.parse(canonical)
    assert InsertionPoint.parse(alias).value == canonical


def test_a_point_parses_to_itself():
    assert InsertionPoint.parse(InsertionPoint.AFTER_READ) is InsertionPoint.AFTER_READ


@pytest.mark.parametrize("name", ["", "after", "AFTER_BATCH", "after_shuffle", 3])
def test_unknown_point_is_refused_with_all_names(name):
    with pytest.raises(OptionError, match=r"after_read, .*before_augment"):
        InsertionPoint.parse(name)


def test_only_the_points_after_batching_echo_batches():
    batches = [point.value for point in InsertionPoint if point.echoes_batches]
    assert batches == ["after_batch", "after_transfer"]


def test_only_the_last_point_is_on_the_device():
    assert [point.value for point in InsertionPoint if point.is_on_device] == ["after_transfer"]


def test_each_point_ends_the_stage_of_its_name():
    assert [point.stage_name for point in InsertionPoint] == [
        "storage",
        "decode",
        "augment",
        "batch",
        "transfer",
    ]
