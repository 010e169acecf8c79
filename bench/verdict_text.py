"""The verdict in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.result import Phase
from trainer.step import DeviceDescription


def verdict_text(
    phase: Phase, baseline: Phase | None, device: DeviceDescription, echo: Mapping[str, Any]
) -> str:
    """Returns what the run showed, as a short paragraph.

    Args:
        phase: the run.
        baseline: the same without echo, or None.
        device: what the steps ran on.
        echo: `factor`, `mean_factor` and `insert_point`, as in `RunResult`.
    """
    name = f"the emulated {device.name}" if device.emulated else device.name
    utilization = phase.accelerator_utilization
    trained = phase.throughput.trained_examples_per_second
    fresh = phase.throughput.fresh_examples_per_second
    if phase.verdict is None or utilization is None or trained is None or fresh is None:
        return "No verdict: no step was finished after the warm-up, so there is nothing to measure."
    waiting = 1.0 - utilization
    sentences = [
        f"{phase.verdict.capitalize()}: {name} waits for data {waiting:.1%} of the time "
        f"(AU {utilization:.1%}). It trains {trained:,.1f} images/s, {fresh:,.1f} of them fresh."
    ]
    if baseline is not None:
        sentences += _against(baseline, trained, fresh, echo)
    return " ".join(sentences)


def _against(baseline: Phase, trained: float, fresh: float, echo: Mapping[str, Any]) -> list[str]:
    plain = baseline.throughput.trained_examples_per_second
    utilization = baseline.accelerator_utilization
    if not plain or utilization is None:
        return ["The baseline without echo was too short to compare with."]
    without = f"Without echo it trains {plain:,.1f} images/s, all fresh (AU {utilization:.1%})"
    if echo["factor"] == 1:
        return [f"{without}: the run itself has no echo, so the difference is noise."]
    sentences = [
        f"{without}: {_echo_label(echo)} at {echo['insert_point']} trains {trained / plain:.2f} x as many "
        f"images and reads {fresh / plain:.2f} x as many fresh ones."
    ]
    if fresh < 0.95 * plain:
        sentences.append("The echo costs fresh images here: a smaller factor would read more.")
    return sentences


def _echo_label(echo: Mapping[str, Any]) -> str:
    if isinstance(echo["factor"], str):
        return f"{echo['factor']} echo ({echo['mean_factor']:.3g} on average)"
    return f"echo {echo['factor']:g}"
