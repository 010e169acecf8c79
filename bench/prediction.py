"""Predicts the run from short measurements of the pipeline alone, to be set beside what the run measures."""

from __future__ import annotations

from dataclasses import dataclass

from bench.result import Phase, Prediction
from echoing.echo_factor import EchoFactor
from pipeline.echo_insertion import last_stage_before
from pipeline.input_pipeline import InputPipeline
from profiling.dataset_rate import measure_dataset_rate
from profiling.throughput_model import ThroughputModel

PROBE_ROUNDS = 2
"""The two probes take turns, so that a change of the machine's speed does not look like a cost."""

PROBE_SECONDS = 2.5
"""Measured time of each turn: long against a batch on a slow host, short against the run."""
PROBE_WARMUP_SECONDS = 1.0

SUFFICIENT_SHARE = 0.99
"""Share of the device's rate that counts as keeping it busy: an elastic echo aims at 1 % of waiting."""


@dataclass(frozen=True)
class HostCosts:
    """Host time per example at the run's insertion point, with the parallelism that the host gives.

    Attributes:
        upstream_seconds: up to the insertion point, per fresh example.
        downstream_seconds: after it and before the device, per used example.
    """

    upstream_seconds: float
    downstream_seconds: float


def measure_host_costs(pipeline: InputPipeline) -> HostCosts | None:
    """Measures the pipeline without its echo and without a device: up to the insertion point, and whole.

    Args:
        pipeline: the run's pipeline; it repeats the data for ever.

    Returns:
        The costs, or None where the probes ended before they could measure anything.
    """
    batch_size = pipeline.config.batch_size
    point = pipeline.config.parsed_insert_point
    stages = pipeline.stages(echoed=False)
    # With the options of the run: its order is sloppy unless asked otherwise.
    shards = pipeline.first_dataset().with_options(pipeline.options())
    if point.is_on_device:
        # All of the host's work is upstream: the repeats never leave the device.
        (whole,) = _seconds_per_element(stages(shards))
        return None if whole is None else HostCosts(whole / batch_size, 0.0)
    upstream, whole = _seconds_per_element(
        stages.prefix(last_stage_before(point, stages))(shards), stages(shards)
    )
    if upstream is None or whole is None:
        return None
    upstream_per_example = upstream / batch_size if point.echoes_batches else upstream
    # Noise can make the whole look faster than its part.
    return HostCosts(upstream_per_example, max(0.0, whole / batch_size - upstream_per_example))


@dataclass(frozen=True)
class DeviceCosts:
    """Time per used example at the device, from the baseline.

    Attributes:
        step_seconds: the device works on it.
        transfer_seconds: it is copied to the device, by one core of the host.
        shares_the_cores: whether the device is the host's own processor.
        holds_batches: whether the device serves the repeats itself, so that a batch is copied once.
    """

    step_seconds: float
    transfer_seconds: float
    shares_the_cores: bool = False
    holds_batches: bool = False


def predict(host: HostCosts, device: DeviceCosts, cores: int, factor: object, run: Phase) -> Prediction:
    """Returns the predicted trained rate beside the measured one.

    Args:
        host: costs of the pipeline.
        device: costs of the device.
        cores: processor cores of the host.
        factor: the echo factor.
        run: what the run measured.
    """
    model = _model(host, device, cores)
    predicted = model.trained_examples_per_second(factor)
    measured = run.throughput.trained_examples_per_second
    return Prediction(
        trained_examples_per_second=predicted,
        measured_trained_examples_per_second=measured,
        error=None if not measured else predicted / measured - 1.0,
        basis=_basis(host, device, cores, factor),
    )


def smallest_sufficient_factor(host: HostCosts, device: DeviceCosts, cores: int, max_factor: float) -> float:
    """Returns the smallest factor that keeps the device busy, or the largest allowed where none does.

    Args:
        host: costs of the pipeline.
        device: costs of the device.
        cores: processor cores of the host.
        max_factor: the largest factor allowed.
    """
    model = _model(host, device, cores)
    wanted = SUFFICIENT_SHARE / device.step_seconds if device.step_seconds else float("inf")
    hundredths = range(100, int(max_factor * 100) + 1)
    enough = (n / 100 for n in hundredths if model.trained_examples_per_second(n / 100) >= wanted)
    return next(enough, max_factor)


def _model(host: HostCosts, device: DeviceCosts, cores: int) -> ThroughputModel:
    upstream_seconds, downstream_seconds = host.upstream_seconds, host.downstream_seconds
    copy_seconds = device.transfer_seconds / cores
    if device.holds_batches:
        upstream_seconds += copy_seconds
    else:
        downstream_seconds += copy_seconds
    if device.shares_the_cores:
        downstream_seconds += device.step_seconds
    return ThroughputModel(
        # The probes ran on all cores: their times are per example on the whole machine already.
        upstream_cpu_seconds=upstream_seconds,
        downstream_cpu_seconds=downstream_seconds,
        # A copy that is made once a fresh example bounds the fresh rate, as storage does.
        storage_seconds=device.transfer_seconds if device.holds_batches else 0.0,
        transfer_seconds=0.0 if device.holds_batches else device.transfer_seconds,
        device_seconds=device.step_seconds,
    )


def _basis(host: HostCosts, device: DeviceCosts, cores: int, factor: object) -> str:
    return (
        f"factor {EchoFactor.parse(factor)}, host upstream of the echo {host.upstream_seconds * 1e3:.3g} ms "
        f"a fresh example, downstream {host.downstream_seconds * 1e3:.3g} ms a used one (measured alone, all "
        f"cores); copy to the device {device.transfer_seconds * 1e3:.3g} ms (one core of {cores}) and step "
        f"{device.step_seconds * 1e3:.3g} ms a used example"
        + (" on the same cores" if device.shares_the_cores else "")
    )


def device_costs(
    phase: Phase, shares_the_cores: bool = False, holds_batches: bool = False
) -> DeviceCosts | None:
    """Returns the device's costs over the measured steps of a phase, or None without any.

    Args:
        phase: the baseline.
        shares_the_cores: whether the device is the host's own processor.
        holds_batches: whether the device serves the repeats of the run itself.
    """
    steps = phase.steps
    measured = [index for index, warm_up in enumerate(steps.warm_up) if not warm_up]
    examples = sum(steps.trained_examples[index] for index in measured)
    if not examples:
        return None
    return DeviceCosts(
        step_seconds=sum(steps.end_seconds[i] - steps.start_seconds[i] for i in measured) / examples,
        transfer_seconds=sum(steps.transfer_seconds[i] for i in measured) / examples,
        shares_the_cores=shares_the_cores,
        holds_batches=holds_batches,
    )


def _seconds_per_element(*datasets: object) -> list[float | None]:
    """Returns the time per element of each dataset, measured in turn."""
    elements = [0] * len(datasets)
    seconds = [0.0] * len(datasets)
    for _ in range(PROBE_ROUNDS):
        for index, dataset in enumerate(datasets):
            rate = measure_dataset_rate(dataset, PROBE_SECONDS, PROBE_WARMUP_SECONDS)
            elements[index] += rate.elements
            seconds[index] += rate.seconds
    return [spent / count if count else None for spent, count in zip(seconds, elements, strict=True)]
