"""What the tests of the preprocessing share: operations eagerly and in a dataset, resizing by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf


def run_both_ways(operation: Callable[..., Any], *inputs: Any) -> Any:
    """Returns what `operation` gives eagerly, after checking that it gives the same in `Dataset.map`."""
    tensors = tuple(tf.convert_to_tensor(value) for value in inputs)
    eager = tf.nest.map_structure(lambda value: value.numpy(), operation(*tensors))
    mapped = next(iter(tf.data.Dataset.from_tensors(tensors).map(operation).as_numpy_iterator()))
    tf.nest.map_structure(lambda one, other: np.testing.assert_allclose(one, other, atol=1e-5), eager, mapped)
    return eager


def bilinear_weights(source: int, target: int, half_pixel_centers: bool) -> np.ndarray:
    """The matrix [target, source] of a bilinear resize of one axis, without smoothing when it shrinks."""
    index = np.arange(target)
    scale = source / target
    position = (index + 0.5) * scale - 0.5 if half_pixel_centers else index * scale
    position = np.clip(position, 0, source - 1)
    return np.maximum(1 - np.abs(position[:, None] - np.arange(source)[None, :]), 0)


def resize_by_matrices(
    image: np.ndarray, height: int, width: int, half_pixel_centers: bool = False
) -> np.ndarray:
    """Bilinear resize of [height, width, 3] in float64."""
    rows = bilinear_weights(image.shape[0], height, half_pixel_centers)
    columns = bilinear_weights(image.shape[1], width, half_pixel_centers)
    return np.einsum("ij,jkc,lk->ilc", rows, image.astype(float), columns, optimize=True)


@pytest.fixture
def both_ways() -> Callable[..., Any]:
    """Returns `run_both_ways`."""
    return run_both_ways


@pytest.fixture
def bilinear_by_hand() -> Callable[..., np.ndarray]:
    """Returns `resize_by_matrices`."""
    return resize_by_matrices


@pytest.fixture
def picture() -> Callable[..., np.ndarray]:
    """Returns a function from height, width and seed to uint8 noise [height, width, 3]."""

    def make(height: int, width: int, seed: int = 0) -> np.ndarray:
        return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)

    return make


@pytest.fixture
def words_of() -> Callable[..., np.ndarray]:
    """Returns a function that makes an example's random words: all 2**63 (the middle), but those given."""

    def make(**changes: float) -> np.ndarray:
        from pipeline.preprocessing import image_draws

        words = np.full(image_draws.WORDS, 2**63, np.uint64)
        for name, uniform in changes.items():
            position = getattr(image_draws, f"{name.upper()}_WORD")
            words[position] = np.uint64(int(uniform * 2**24) << 40)
        return words

    return make


def chi_square(values: np.ndarray, bins: int, low: float, high: float) -> float:
    """The statistic of `values` against a uniform distribution over so many equal bins of [low, high]."""
    counts, _ = np.histogram(values, bins, (low, high))
    assert counts.sum() == len(values), "values outside the range"
    expected = len(values) / bins
    return float(((counts - expected) ** 2 / expected).sum())


@pytest.fixture
def is_uniform() -> Callable[..., bool]:
    """Returns a function that tells whether values are uniform, at a level of one in a thousand."""
    # Upper 0.1 % points of the chi-square distribution, by degrees of freedom.
    critical = {1: 10.83, 3: 16.27, 9: 27.88, 29: 58.30}

    def check(values: np.ndarray, bins: int, low: float, high: float) -> bool:
        return chi_square(np.asarray(values, float), bins, low, high) < critical[bins - 1]

    return check
