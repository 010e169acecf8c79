import itertools
from types import SimpleNamespace

import pytest

from bench import prediction
from bench.prediction import (
    DeviceCosts,
    HostCosts,
    device_costs,
    measure_host_costs,
    predict,
    smallest_sufficient_factor,
)
from pipeline.config import PipelineConfig
from pipeline.input_pipeline import InputPipeline
from profiling.dataset_rate import DatasetRate


def scripted_rates(monkeypatch, *rates):
    """Lets the probes give these (elements, seconds), in the order of asking, round after round."""
    remaining = itertools.cycle(rates)
    probed = []

    def measure(dataset, seconds, warmup_seconds):
        probed.append(dataset)
        return DatasetRate(*next(remaining))

    monkeypatch.setattr(prediction, "measure_dataset_rate", measure)
    return probed


@pytest.fixture
def pipeline_at(small_data):
    return lambda point, factor=3: InputPipeline(
        PipelineConfig(small_data, batch_size=8, image_size=16, echo_factor=factor, insert_point=point)
    )


def test_downstream_costs_what_the_whole_takes_beyond_the_upstream_part(monkeypatch, pipeline_at):
    # 100 examples a second up to the point; 5 batches of 8, so 40 examples, a second in all.
    scripted_rates(monkeypatch, (200, 2.0), (10, 2.0))
    costs = measure_host_costs(pipeline_at("after_augment"))
    assert costs.upstream_seconds == pytest.approx(0.010)
    assert costs.downstream_seconds == pytest.approx(0.025 - 0.010)


def test_where_batches_are_echoed_the_upstream_elements_are_batches(monkeypatch, pipeline_at):
    scripted_rates(monkeypatch, (10, 1.0), (5, 1.0))
    costs = measure_host_costs(pipeline_at("after_batch"))
    assert costs.upstream_seconds == pytest.approx(0.1 / 8)
    assert costs.downstream_seconds == pytest.approx(0.2 / 8 - 0.1 / 8)


def test_a_whole_that_seems_faster_than_its_part_costs_nothing_downstream(monkeypatch, pipeline_at):
    scripted_rates(monkeypatch, (100, 1.0), (13, 1.0))
    assert measure_host_costs(pipeline_at("after_read")).downstream_seconds == 0.0


@pytest.mark.parametrize("rates", [[(0, 1.0), (5, 1.0)], [(5, 1.0), (0, 0.0)]])
def test_probes_that_saw_nothing_give_no_costs(monkeypatch, pipeline_at, rates):
    scripted_rates(monkeypatch, *rates)
    assert measure_host_costs(pipeline_at("after_decode")) is None


@pytest.mark.parametrize(
    "point, has_image", [("after_read", False), ("after_decode", True), ("after_augment", True)]
)
def test_the_probes_see_the_pipeline_up_to_the_point_and_whole_and_never_the_echo(
    monkeypatch, pipeline_at, point, has_image
):
    probed = scripted_rates(monkeypatch, (1, 1.0), (1, 1.0))
    measure_host_costs(pipeline_at(point))
    upstream, whole = (dataset.element_spec for dataset in probed[:2])
    assert ("image" in upstream) == has_image
    assert "serialized" in upstream or has_image
    image = whole[0]
    assert image.shape.as_list() == [8, 16, 16, 3]
    # Over an endless pipeline, an echo would show as repeats of one record side by side.
    repeats = [element["repeat_index"] for element in probed[0].take(12).as_numpy_iterator()]
    assert repeats == [0] * 12


def test_measured_for_real_the_costs_are_above_zero(monkeypatch, pipeline_at):
    monkeypatch.setattr(prediction, "PROBE_SECONDS", 0.1)
    monkeypatch.setattr(prediction, "PROBE_WARMUP_SECONDS", 0.0)
    costs = measure_host_costs(pipeline_at("after_decode"))
    assert costs.upstream_seconds > 0
    assert costs.downstream_seconds >= 0


def measured(rate):
    return SimpleNamespace(throughput=SimpleNamespace(trained_examples_per_second=rate))


def test_a_host_bound_prediction_shares_the_host_between_both_sides():
    # e = 2: a fresh example costs the host 10 ms and twice 5 ms, so 50 fresh and 100 trained a second.
    made = predict(HostCosts(0.010, 0.005), DeviceCosts(0.002, 0.0), cores=2, factor=2, run=measured(80.0))
    assert made.trained_examples_per_second == pytest.approx(100.0)
    assert made.measured_trained_examples_per_second == 80.0
    assert made.error == pytest.approx(0.25)


def test_a_device_bound_prediction_is_the_devices_rate_whatever_the_factor():
    costs = HostCosts(0.010, 0.001)
    for factor in (1, 2, 4):
        made = predict(costs, DeviceCosts(0.05, 0.0), cores=2, factor=factor, run=measured(20.0))
        assert made.trained_examples_per_second == pytest.approx(20.0)
        assert made.error == pytest.approx(0.0)


def test_a_fraction_is_a_factor_too():
    # 10 ms + 1.5 x 4 ms = 16 ms a fresh example: 62.5 fresh, 93.75 trained.
    made = predict(HostCosts(0.010, 0.004), DeviceCosts(0.001, 0.0), cores=2, factor=1.5, run=measured(None))
    assert made.trained_examples_per_second == pytest.approx(93.75)


@pytest.mark.parametrize("rate", [None, 0.0])
def test_without_a_measured_rate_there_is_no_error(rate):
    assert predict(HostCosts(0.01, 0.0), DeviceCosts(0.001, 0.0), 2, 2, measured(rate)).error is None


def test_the_basis_names_the_costs():
    basis = predict(HostCosts(0.0123, 0.0045), DeviceCosts(0.0067, 0.0089), 2, 2, measured(1.0)).basis
    for cost in ("12.3 ms", "4.5 ms", "8.9 ms (one core of 2)", "6.7 ms"):
        assert cost in basis
    assert "same cores" not in basis


def test_the_copy_to_the_device_costs_one_core_for_every_use():
    # A fresh example costs the two cores 10 ms, each of two uses half of 4 ms: 14 ms, 71.4 fresh.
    made = predict(HostCosts(0.010, 0.0), DeviceCosts(0.001, 0.004), cores=2, factor=2, run=measured(None))
    assert made.trained_examples_per_second == pytest.approx(2 / 0.014)


def test_a_slow_copy_bounds_the_trained_rate():
    made = predict(HostCosts(0.001, 0.0), DeviceCosts(0.001, 0.02), cores=16, factor=4, run=measured(None))
    assert made.trained_examples_per_second == pytest.approx(50.0)


def test_a_batch_that_the_device_holds_is_copied_once():
    # 10 ms and half of 4 ms a fresh example, whatever the factor, until the device is the limit.
    device = DeviceCosts(0.001, 0.004, holds_batches=True)
    for factor, trained in ((2, 2 / 0.012), (6, 6 / 0.012), (20, 1000.0)):
        made = predict(HostCosts(0.010, 0.0), device, cores=2, factor=factor, run=measured(None))
        assert made.trained_examples_per_second == pytest.approx(trained)


def test_training_on_the_hosts_own_cores_is_paid_from_them():
    # 10 ms a fresh example and 5 ms of training for each of two uses: 20 ms.
    device = DeviceCosts(0.005, 0.0, shares_the_cores=True)
    made = predict(HostCosts(0.010, 0.0), device, cores=2, factor=2, run=measured(None))
    assert made.trained_examples_per_second == pytest.approx(100.0)
    assert made.basis.endswith("on the same cores")


def test_device_time_is_busy_time_over_examples_of_the_measured_steps(make_phase):
    # Three measured steps of 0.1 s and 8 examples; the two warm-up steps do not count.
    phase = make_phase(5, busy_seconds=0.1, wait_seconds=0.4)
    phase.steps.end_seconds[0] += 100.0
    phase.steps.transfer_seconds[:] = [9.0, 9.0, 0.02, 0.03, 0.04]
    costs = device_costs(phase, shares_the_cores=True)
    assert costs.step_seconds == pytest.approx(0.1 / 8)
    assert costs.transfer_seconds == pytest.approx(0.09 / 24)
    assert costs.shares_the_cores and not costs.holds_batches


def test_device_time_needs_a_measured_step(make_phase):
    assert device_costs(make_phase(2, busy_seconds=0.1, wait_seconds=0.4)) is None
    assert device_costs(make_phase(0, busy_seconds=0.1, wait_seconds=0.4)) is None


def test_the_two_probes_take_turns_and_their_rounds_add_up(monkeypatch, pipeline_at):
    # 300 examples in 3 s and 20 batches of 8 in 4 s.
    probed = scripted_rates(monkeypatch, (200, 2.0), (12, 2.0), (100, 1.0), (8, 2.0))
    costs = measure_host_costs(pipeline_at("after_augment"))
    assert costs.upstream_seconds == pytest.approx(0.010)
    assert costs.downstream_seconds == pytest.approx(4.0 / (20 * 8) - 0.010)
    assert probed[0] is probed[2] and probed[1] is probed[3] and probed[0] is not probed[1]


def test_on_the_device_all_of_the_host_is_upstream_and_one_probe_tells(monkeypatch, small_data):
    config = PipelineConfig(
        small_data, batch_size=8, image_size=16, echo_factor=2, insert_point="after_transfer", keep_tags=True
    )
    probed = scripted_rates(monkeypatch, (5, 1.0))
    assert measure_host_costs(InputPipeline(config)) == HostCosts(pytest.approx(0.2 / 8), 0.0)
    assert len(probed) == 2 and probed[0] is probed[1]


@pytest.mark.parametrize(
    "upstream, device, largest, factor",
    [
        (0.030, 0.010, 8.0, 2.97),  # R = 3, of which 99 % keep the device busy
        (0.005, 0.010, 8.0, 1.0),  # device-bound already
        (0.100, 0.010, 4.0, 4.0),  # not to be had within the bound
    ],
)
def test_the_smallest_sufficient_factor_fills_the_device(upstream, device, largest, factor):
    found = smallest_sufficient_factor(HostCosts(upstream, 0.0), DeviceCosts(device, 0.0), 2, largest)
    assert found == pytest.approx(factor)
