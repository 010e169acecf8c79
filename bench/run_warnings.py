"""What the user should know before trusting a run's figures."""

from __future__ import annotations

from bench.result import Phase
from bench.run_options import RunOptions
from echoing.errors import DataError
from echoing.shuffle_budget import mean_different_elements
from pipeline.data_source import DataSource
from pipeline.element_bytes import example_bytes

MIN_MEASURED_STEPS = 10
"""Fewer steps than this say little about a rate."""

MAX_BUFFER_SHARE = 0.5
"""Share of the machine's memory from which a shuffle buffer deserves a warning."""


def advance_warnings(options: RunOptions, source: DataSource) -> list[str]:
    """Returns what can be said before the run.

    Args:
        options: the run's options.
        source: the data.
    """
    duplicates = options.pipeline.duplicates_warning
    return [*([duplicates] if duplicates else []), *_memory(options, source)]


def run_warnings(options: RunOptions, source: DataSource, phase: Phase) -> list[str]:
    """Returns warnings about a run.

    Args:
        options: the run's options.
        source: the data.
        phase: what was measured.
    """
    warnings = advance_warnings(options, source)
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


def _memory(options: RunOptions, source: DataSource) -> list[str]:
    import psutil

    pipeline = options.pipeline
    if not pipeline.shuffles_after_echo or pipeline.shuffle_buffer_bytes or pipeline.shuffle_buffer_size <= 1:
        return []
    try:
        size_bytes = example_bytes(pipeline.parsed_insert_point, source, pipeline.image_size)
    except DataError:
        return []  # no record to learn from: nothing was buffered either
    different = mean_different_elements(pipeline.shuffle_buffer_size, pipeline.parsed_echo_factor)
    buffer_bytes = size_bytes * different
    memory_bytes = psutil.virtual_memory().total
    if buffer_bytes <= MAX_BUFFER_SHARE * memory_bytes:
        return []
    return [
        f"The shuffle buffer after the echo holds about {buffer_bytes / 1e9:.1f} GB of the machine's "
        f"{memory_bytes / 1e9:.1f} GB. Give --shuffle-buffer-bytes or an earlier --insert-point."
    ]
