from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from echoing.errors import OptionError, PipebenchError
from trainer.placement import Placement, check_divisible
from trainer.step import DeviceDescription


def placement(replicas: int, workers: int = 1, index: int = 0) -> Placement:
    device = DeviceDescription("CPU", "cpu", replicas)
    return Placement(None, "mirrored", replicas, replicas // workers, device, "", index, workers)


@pytest.mark.parametrize(
    ("batch_size", "nearest"), [(6, "8"), (20, "16 or 24"), (100, "96 or 104"), (1, "8")]
)
@pytest.mark.parametrize("name", ["batch_size", "eval_batch_size"])
def test_batch_that_eight_replicas_cannot_share_names_the_nearest(
    name: str, batch_size: int, nearest: str
) -> None:
    with pytest.raises(OptionError, match=f"{name} is {batch_size}.*multiple of 8.*nearest: {nearest}[.]"):
        check_divisible(name, batch_size, 8)


@pytest.mark.parametrize("batch_size", [8, 64])
def test_batch_that_eight_replicas_can_share_passes(batch_size: int) -> None:
    check_divisible("batch_size", batch_size, 8)


@given(st.integers(1, 10_000), st.integers(1, 600))
def test_nearest_sizes_can_be_shared_and_enclose_the_one_asked_for(batch_size: int, replicas: int) -> None:
    try:
        check_divisible("batch_size", batch_size, replicas)
    except OptionError as error:
        nearest = [int(size) for size in re.findall(r"\d+", str(error).split("nearest:")[1])]
        assert all(size > 0 and size % replicas == 0 for size in nearest)
        assert batch_size < nearest[-1] < batch_size + replicas
        assert len(nearest) == 1 or nearest[0] == nearest[1] - replicas
    else:
        assert batch_size % replicas == 0


def test_host_has_its_share_of_the_batch() -> None:
    assert placement(8, workers=4).host_batch_size("batch_size", 64) == 16
    with pytest.raises(OptionError, match="batch_size is 20"):
        placement(8, workers=4).host_batch_size("batch_size", 20)


def test_first_worker_is_the_chief() -> None:
    assert [placement(2, 2, index).is_chief for index in range(2)] == [True, False]


def test_values_of_a_single_worker_are_its_own() -> None:
    gathered = placement(4).gather([2.0**53, 0.5])
    assert gathered.dtype == np.float64
    assert gathered.tolist() == [[9007199254740992.0, 0.5]]


@pytest.mark.parametrize("kind", [tf.errors.UnavailableError, tf.errors.AbortedError])
def test_worker_that_was_lost_is_explained_to_the_others(kind: Any) -> None:
    error = kind(None, None, "Graph execution error: node loop/CollectiveReduceV2")
    lost = pytest.raises(PipebenchError, match="Worker 1 has lost another of the 2 workers")
    with lost, placement(2, 2, 1).watching_workers():
        raise error
    with pytest.raises(kind), placement(2).watching_workers():
        raise error


def test_data_that_are_not_available_are_no_lost_worker() -> None:
    with pytest.raises(tf.errors.UnavailableError), placement(2, 2, 1).watching_workers():
        raise tf.errors.UnavailableError(None, None, "storage: 503")
