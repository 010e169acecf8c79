from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from echoing.errors import OptionError
from trainer.models.batch_norm_decay import batch_norm_decay_for_replicas

REPLICAS, DECAY, STEPS = 8, 0.9997, 2000


def one_after_the_other(moments: np.ndarray[Any, Any]) -> list[float]:
    """The average after each step if every replica updates it with its own moments, `[steps, replicas]`."""
    average, history = 0.0, []
    for step in moments:
        for moment in step:
            average = DECAY * average + (1 - DECAY) * moment
        history.append(average)
    return history


def one_update_a_step(moments: np.ndarray[Any, Any], decay: float) -> list[float]:
    """The average after each step if it takes one moment, `[steps]`."""
    average, history = 0.0, []
    for moment in moments:
        average = decay * average + (1 - decay) * moment
        history.append(average)
    return history


def test_guides_decay_turns_into_the_guides_decay_at_8_replicas() -> None:
    assert batch_norm_decay_for_replicas(0.9997, 8) == pytest.approx(0.9976, abs=5e-6)


def test_one_replica_keeps_the_decay() -> None:
    assert batch_norm_decay_for_replicas(0.996, 1) == 0.996


def test_filters_agree_exactly_where_all_replicas_measure_the_same() -> None:
    signal = np.sin(np.arange(STEPS) / 300) + 2
    shared = one_after_the_other(np.repeat(signal[:, None], REPLICAS, axis=1))
    single = one_update_a_step(signal, batch_norm_decay_for_replicas(DECAY, REPLICAS))
    np.testing.assert_allclose(single, shared, rtol=1e-9)


@pytest.mark.parametrize("mean", [True, False], ids=["mean over replicas", "one replica kept"])
def test_filters_agree_within_noise_and_without_the_correction_do_not(mean: bool) -> None:
    signal = np.sin(np.arange(STEPS) / 300) + 2
    moments = signal[:, None] + np.random.default_rng(3).normal(0, 0.1, (STEPS, REPLICAS))
    shared = one_after_the_other(moments)
    taken = moments.mean(axis=1) if mean else moments[:, 0]
    corrected = one_update_a_step(taken, batch_norm_decay_for_replicas(DECAY, REPLICAS))
    # The noise of one replica's filter is 0.1 x sqrt((1 - b) / (1 + b)) = 0.0035; five times that.
    assert np.abs(np.subtract(corrected, shared)).max() < 0.0175
    assert np.abs(np.subtract(one_update_a_step(taken, DECAY), shared)).max() > 0.5


@pytest.mark.parametrize(("decay", "replicas"), [(1.1, 8), (-0.1, 8), (0.9, 0), (0.9, 1.5)])
def test_value_that_is_not_allowed_is_refused(decay: float, replicas: Any) -> None:
    with pytest.raises(OptionError):
        batch_norm_decay_for_replicas(decay, replicas)
