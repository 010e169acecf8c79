"""What the user should know before trusting a run's figures."""

from __future__ import annotations

from bench.result import Phase
from bench.run_options import RunOptions
from pipeline.data_source import DataSource

MIN_MEASURED_STEPS = 10
"""Fewer steps than this say little about a rate."""

MAX_BUFFER_SHARE = 0.5
"""Share of the machine's memory from which a shuffle buffer deserves a warning."""

_BYTES_PER_VALUE = 4
_TYPICAL_PIXELS = 500 * 375
"""ImageNet's mean image, the guess for decoded images, whose size is not known before they are read."""


def run_warnings(options: RunOptions, source: DataSource, phase: Phase) -> list[str]:
    """Returns warnings about a run.

    Args:
        options: the run's options.
        source: the data.
        phase: what was measured.
    """
    warnings = [*_duplicates(options), *_memory(options, source)]
    if phase.counts.measured_steps < MIN_MEASURED_STEPS:
        warnings.append(
            f"Only {phase.counts.measured_steps} steps were measured after the warm-up; for rates to trust, "
            f"give --seconds or --steps for at least {MIN_MEASURED_STEPS}."
        )
    if phase.counts.skipped_records:
        warnings.append(
            f"{phase.counts.skipped_records} unusable records were skipped; "
            "`pipebench data check` names them."
        )
    return warnings


def _duplicates(options: RunOptions) -> list[str]:
    pipeline = options.pipeline
    factor = pipeline.parsed_echo_factor
    if not pipeline.echoes_examples or pipeline.shuffle_buffer_size > 1:
        return []
    distinct = max(1, round(pipeline.batch_size / float(factor)))
    return [
        f"No shuffle after the echo: a batch of {pipeline.batch_size} holds about {distinct} different "
        f"examples and {pipeline.batch_size - distinct} duplicates of them. Give --shuffle-buffer-size."
    ]


def _memory(options: RunOptions, source: DataSource) -> list[str]:
    import psutil

    pipeline = options.pipeline
    if not pipeline.echoes_examples:
        return []
    element_bytes = {
        "after_read": int(source.mean_record_bytes or 0),
        "after_decode": _TYPICAL_PIXELS * 3,
        "after_augment": pipeline.image_size**2 * 3 * _BYTES_PER_VALUE,
    }[pipeline.parsed_insert_point.value]
    buffer_bytes = element_bytes * pipeline.shuffle_buffer_size
    memory_bytes = psutil.virtual_memory().total
    if buffer_bytes <= MAX_BUFFER_SHARE * memory_bytes:
        return []
    return [
        f"The shuffle buffer after the echo may hold {buffer_bytes / 1e9:.1f} GB of the machine's "
        f"{memory_bytes / 1e9:.1f} GB. Give a smaller --shuffle-buffer-size or an earlier --insert-point."
    ]
