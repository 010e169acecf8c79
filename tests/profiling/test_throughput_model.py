"""The throughput model against hand-made cases and its laws."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoing.errors import OptionError
from profiling.throughput_model import ThroughputModel

costs = st.floats(1e-5, 1.0)


def test_upstream_limits_while_the_echo_is_free():
    # Upstream 10 ms, device 2 ms: R = 5.
    model = ThroughputModel(upstream_cpu_seconds=0.010, device_seconds=0.002)
    assert model.fresh_examples_per_second(1) == pytest.approx(100)
    assert model.trained_examples_per_second(2) == pytest.approx(200)
    assert model.trained_examples_per_second(5) == pytest.approx(500)
    # Beyond R the device limits, and fresh examples are lost.
    assert model.trained_examples_per_second(10) == pytest.approx(500)
    assert model.fresh_examples_per_second(10) == pytest.approx(50)


def test_downstream_work_of_repeats_is_paid_from_the_same_cores():
    model = ThroughputModel(upstream_cpu_seconds=0.008, downstream_cpu_seconds=0.002, cores=2)
    assert model.fresh_examples_per_second(1) == pytest.approx(200)
    assert model.fresh_examples_per_second(6) == pytest.approx(100)
    assert model.trained_examples_per_second(6) == pytest.approx(600)


@pytest.mark.parametrize(("name", "trained"), [("storage_seconds", 150), ("transfer_seconds", 50)])
def test_storage_is_paid_once_a_fresh_example_and_transfer_for_every_use(name, trained):
    model = ThroughputModel(upstream_cpu_seconds=0.001, **{name: 0.02})
    assert model.trained_examples_per_second(3) == pytest.approx(trained)


def test_a_pipeline_that_costs_nothing_is_infinitely_fast():
    assert ThroughputModel(upstream_cpu_seconds=0.0).fresh_examples_per_second(1) == math.inf


@given(costs, costs, costs, st.floats(1, 20), st.floats(1, 20))
def test_more_echo_never_reads_more_and_never_trains_less(up, down, device, one, other):
    model = ThroughputModel(up, down, device_seconds=device)
    low, high = sorted((one, other))
    assert model.fresh_examples_per_second(high) <= model.fresh_examples_per_second(low) * (1 + 1e-9)
    assert model.trained_examples_per_second(high) >= model.trained_examples_per_second(low) * (1 - 1e-6)


@pytest.mark.parametrize(
    "changes", [{"upstream_cpu_seconds": -1}, {"device_seconds": math.nan}, {"cores": 0}]
)
def test_bad_cost_is_refused(changes):
    with pytest.raises(OptionError):
        ThroughputModel(**{"upstream_cpu_seconds": 0.1, **changes})
