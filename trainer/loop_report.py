"""What a compiled loop says when it returns, and of each of its steps."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


class LoopStatus(enum.IntEnum):
    """Why a loop returned."""

    LIMIT_REACHED = 0
    DATASET_ENDED = 1
    LABELS_OUTSIDE = 2
    LOSS_NOT_FINITE = 3
    USES_BELOW_ONE = 4
    BATCH_UNEVEN = 5


@dataclass(frozen=True)
class TimedStep:
    """What the compiled loop reports of one step; times are wall-clock seconds (`tf.timestamp`).

    Attributes:
        arrived_seconds: the batch was taken from the iterator.
        started_seconds: it lay in the device's memory and the step could begin.
        ended_seconds: the loss was computed and the variables were updated.
        loss: the training loss.
        examples: examples of the batch.
        tags: features beside image, label and `device_uses`.
        device_repeat: how many steps had used the batch before.
    """

    arrived_seconds: float
    started_seconds: float
    ended_seconds: float
    loss: float
    examples: int
    tags: Mapping[str, np.ndarray[Any, Any]]
    device_repeat: int
