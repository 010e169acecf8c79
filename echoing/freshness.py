"""Freshness accounting: which of the examples trained on were fresh and which were repeats."""

from __future__ import annotations

from typing import Any

import numpy as np


def count_fresh(repeat_index: np.ndarray[Any, Any]) -> int:
    """Returns how many examples of a batch are used for the first time since they were read.

    Args:
        repeat_index: integers of any shape, 0 for the fresh use of an example, 1 and up for its repeats, as
            the echo writes them.
    """
    return int(np.count_nonzero(np.asarray(repeat_index) == 0))
