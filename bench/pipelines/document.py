"""The comparison of pipelines as a JSON document."""

from __future__ import annotations

import importlib.metadata
from dataclasses import asdict
from typing import Any

from bench.environment import describe_environment
from bench.pipelines.comparison import Comparison, Measured, Ratio
from bench.pipelines.timing import Timing
from bench.pipelines.variants import Task

SCHEMA = "pipebench.bench_pipeline"
SCHEMA_VERSION = 1


def comparison_document(comparison: Comparison, task: Task, timing: Timing) -> dict[str, Any]:
    """Returns everything measured, with what it was measured on; None where there is no value.

    Args:
        comparison: the figures.
        task: what was read.
        timing: how long each measurement took.
    """
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "task": {name: value for name, value in asdict(task).items() if name != "settings"},
        "timing": asdict(timing),
        "environment": describe_environment(),
        "warnings": comparison.warnings,
        "variants": [_variant(comparison, one) for one in comparison.measured],
    }


def _variant(comparison: Comparison, one: Measured) -> dict[str, Any]:
    return {
        "variant": one.variant.name,
        "description": one.variant.description,
        "output": one.variant.output,
        "settings": dict(one.variant.settings),
        "versions": {name: _version(name) for name in one.variant.distributions or ("tensorflow",)},
        "images_per_second": one.images_per_second,
        "ratio_to_reference": _ratio(comparison.ratio(one)),
        "ratio_to_crop_decode": _ratio(comparison.ratio_to_limit(one)),
        "cpu_seconds_per_image": one.cpu_seconds_per_image,
        "peak_memory_bytes": one.peak_memory_bytes,
        "rounds": [asdict(each) for each in one.rounds],
        "error": one.error,
    }


def _ratio(ratio: Ratio | None) -> dict[str, float] | None:
    return None if ratio is None else asdict(ratio)


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
