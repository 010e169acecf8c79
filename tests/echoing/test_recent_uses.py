"""The memory of recent uses, against plain dictionaries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echoing.recent_uses import MISSING, RecentUses


def int64(*values):
    return np.array(values, np.int64)


def test_id_that_was_never_stored_is_missing():
    assert RecentUses().get(int64(0, -5, 2**62)).tolist() == [MISSING] * 3


def test_stored_ids_are_found_and_overwritten():
    uses = RecentUses()
    uses.set(int64(7, 0), int64(1, 0))
    uses.set(int64(0), int64(9))
    assert uses.get(int64(0, 7, 1)).tolist() == [9, 1, MISSING]


def test_id_is_forgotten_in_the_second_generation_after_its_last_store():
    uses = RecentUses()
    uses.set(int64(1, 2), int64(10, 20))
    uses.start_generation()
    assert uses.get(int64(1, 2)).tolist() == [10, 20]
    uses.set(int64(2), int64(30))
    uses.start_generation()
    assert uses.get(int64(1, 2)).tolist() == [MISSING, 30]
    uses.start_generation()
    assert uses.get(int64(1, 2)).tolist() == [MISSING, MISSING]


@pytest.mark.parametrize("stride", [1, 2**10, 2**32, 2**53, -3])
def test_table_grows_whatever_bits_the_ids_differ_in(stride):
    uses = RecentUses()
    ids = np.arange(10_000, dtype=np.int64) * stride % 2**62
    ids = np.unique(ids)
    values = np.arange(ids.size, dtype=np.int64)
    for start in range(0, ids.size, 999):
        uses.set(ids[start : start + 999], values[start : start + 999])
    assert np.array_equal(uses.get(ids), values)
    assert uses.count_from(0) == ids.size
    assert uses.count_from(4) == max(0, ids.size - 4)


def test_memory_is_reused_from_generation_to_generation():
    uses = RecentUses()
    for generation in range(6):
        uses.set(np.arange(5000, dtype=np.int64) + 5000 * generation, np.arange(5000, dtype=np.int64))
        uses.start_generation()
    assert uses._newer.keys.nbytes == uses._older.keys.nbytes == 16384 * 8


ID = st.one_of(st.integers(0, 20), st.integers(-(2**63), 2**63 - 1))
ACTION = st.one_of(st.none(), st.dictionaries(ID, st.integers(0, 100), max_size=30))


@settings(deadline=None)
@given(st.lists(ACTION, max_size=20))
def test_table_agrees_with_dictionaries(actions):
    uses, newer, older = RecentUses(), {}, {}
    for action in actions:
        if action is None:
            uses.start_generation()
            newer, older = {}, newer
        elif action:
            uses.set(int64(*action), int64(*action.values()))
            newer.update(action)
        everything = {**older, **newer}
        ids = [*range(25), *everything]
        assert uses.get(int64(*ids)).tolist() == [everything.get(key, MISSING) for key in ids]
        assert uses.count_from(50) == sum(value >= 50 for value in everything.values())
