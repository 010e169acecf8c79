"""Optimizers and averages inside `strategy.run`: two replicas, in a process of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.slow

NAMES = ["rmsprop", "momentum", "sgd"]


@pytest.fixture(scope="module")
def histories(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the program printed: per optimizer the states of two replicas, step by step."""
    program = Path(__file__).with_name("replicated_state.py")
    folder = tmp_path_factory.mktemp("replicas")
    done = subprocess.run(
        [sys.executable, str(program), str(folder)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": "."},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def expected(name: str) -> tuple[list[Any], list[Any]]:
    """Variable and average after each of four steps, in NumPy: gradient 1.5 w, rate halved after two."""
    weights, momentum, square = np.array([1.0, -2.0]), np.zeros(2), np.ones(2)
    shadow, share = weights, 1.0
    biased = np.zeros(2)
    values, averages = [], []
    for step in range(4):
        rate, gradient = 0.165 * 0.5 ** (step // 2), 1.5 * weights
        if name == "rmsprop":
            square = 0.9 * square + 0.1 * gradient**2
            momentum = 0.9 * momentum + rate * gradient / np.sqrt(square + 1)
            weights = weights - momentum
        elif name == "momentum":
            momentum = 0.9 * momentum + gradient
            weights = weights - rate * momentum
        else:
            weights = weights - rate * gradient
        count = step + 1
        decay = min(0.9, (1 + count) / (10 + count))
        shadow = decay * shadow + (1 - decay) * weights
        biased, share = decay * biased + (1 - decay) * weights, share * decay
        values.append(weights)
        averages.append(biased / (1 - share) if name == "sgd" else shadow)
    return values, averages


@pytest.mark.parametrize("name", NAMES)
def test_replicas_train_like_a_loop_in_numpy(histories: Any, name: str) -> None:
    values, averages = expected(name)
    for state, value, average in zip(histories[name]["states"], values, averages, strict=True):
        np.testing.assert_allclose(state["variable"], [value, value], rtol=1e-5)
        np.testing.assert_allclose(state["average"], [average, average], rtol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_copies_of_all_state_stay_bitwise_equal(histories: Any, name: str) -> None:
    for state in histories[name]["states"]:
        for first, second in [state["variable"], state["average"], state["step"], *state["slots"]]:
            assert first == second


@pytest.mark.parametrize("name", NAMES)
def test_averages_are_swapped_in_and_back_exactly_though_the_evaluation_fails(
    histories: Any, name: str
) -> None:
    history = histories[name]
    before, inside = history["states"][-1], history["inside"]
    assert (inside["variable"], inside["average"]) == (before["average"], before["variable"])
    assert history["after_failure"] == before


@pytest.mark.parametrize("name", NAMES)
def test_checkpoint_restores_every_copy_and_training_goes_on_alike(histories: Any, name: str) -> None:
    history = histories[name]
    assert history["restored"] == history["states"][-1]
    assert history["resumed_next"] == history["next"]


@pytest.mark.parametrize("name", ["rmsprop", "momentum"])
def test_averages_are_updated_and_loaded_outside_the_replicas_too(histories: Any, name: str) -> None:
    before, after, loaded = (histories[name][key] for key in ("next", "updated_outside", "loaded_outside"))
    # The count is 5: a decay of 6 / 15.
    average = 0.4 * np.array(before["average"]) + 0.6 * np.array(before["variable"])
    np.testing.assert_allclose(after["average"], average, rtol=1e-6)
    assert after["average"][0] == after["average"][1]
    assert loaded["variable"] == loaded["average"] == after["average"]
