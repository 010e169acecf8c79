"""Counting fresh examples."""

from __future__ import annotations

import numpy as np
import pytest

from echoing.freshness import count_fresh


@pytest.mark.parametrize(
    ("repeat_index", "fresh"), [([0, 1, 0, 2], 2), ([], 0), ([1, 1], 0), (0, 1), (np.zeros(5, np.int64), 5)]
)
def test_only_the_first_use_counts_as_fresh(repeat_index, fresh):
    assert count_fresh(np.asarray(repeat_index)) == fresh
