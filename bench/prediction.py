"""Predicts the run from short measurements of the pipeline alone, to be set beside what the run measures."""

from __future__ import annotations

from dataclasses import dataclass

from bench.result import Phase, Prediction
from pipeline.input_pipeline import InputPipeline
from pipeline.storage import shards_dataset
from profiling.dataset_rate import measure_dataset_rate
from profiling.throughput_model import ThroughputModel

PROBE_ROUNDS = 2
"""The two probes take turns, so that a change of the machine's speed does not look like a cost."""

PROBE_SECONDS = 2.5
"""Measured time of each turn: long against a batch on a slow host, short against the run."""
PROBE_WARMUP_SECONDS = 1.0


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
    plain = pipeline.without_echo()
    batch_size = pipeline.config.batch_size
    point = pipeline.config.parsed_insert_point
    stages = plain.stages()
    shards = shards_dataset(plain.source.shards)
    if point.is_on_device:
        # All of the host's work is upstream: the repeats never leave the device.
        (whole,) = _seconds_per_element(stages(shards))
        return None if whole is None else HostCosts(whole / batch_size, 0.0)
    upstream, whole = _seconds_per_element(stages.prefix(point.stage_name)(shards), stages(shards))
    if upstream is None or whole is None:
        return None
    upstream_per_example = upstream / batch_size if point.echoes_batches else upstream
    # Noise can make the whole look faster than its part.
    return HostCosts(upstream_per_example, max(0.0, whole / batch_size - upstream_per_example))


def predict(costs: HostCosts, device_seconds: float, factor: object, run: Phase) -> Prediction:
    """Returns the predicted trained rate beside the measured one.

    Args:
        costs: of the host.
        device_seconds: device time per used example.
        factor: the echo factor.
        run: what the run measured.
    """
    model = ThroughputModel(
        # The probes ran on all cores: their times are per core already.
        upstream_cpu_seconds=costs.upstream_seconds,
        downstream_cpu_seconds=costs.downstream_seconds,
        device_seconds=device_seconds,
    )
    predicted = model.trained_examples_per_second(factor)
    measured = run.throughput.trained_examples_per_second
    return Prediction(
        trained_examples_per_second=predicted,
        measured_trained_examples_per_second=measured,
        error=None if not measured else predicted / measured - 1.0,
        basis=(
            f"host upstream of the echo {costs.upstream_seconds * 1e3:.3g} ms a fresh example and downstream "
            f"{costs.downstream_seconds * 1e3:.3g} ms a used example (measured alone, all cores), "
            f"device {device_seconds * 1e3:.3g} ms a used example"
        ),
    )


def device_seconds_per_example(phase: Phase) -> float | None:
    """Returns the device's busy time per example over the measured steps, or None without any."""
    steps = phase.steps
    measured = [index for index, warm_up in enumerate(steps.warm_up) if not warm_up]
    examples = sum(steps.trained_examples[index] for index in measured)
    if not examples:
        return None
    return sum(steps.end_seconds[index] - steps.start_seconds[index] for index in measured) / examples


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
