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
    if not pipeline.echoes_examples or (
        pipeline.shuffles_after_echo and (pipeline.shuffle_buffer_bytes or pipeline.shuffle_buffer_size > 1)
    ):
        return []
    if pipeline.is_elastic:
        return ["No shuffle after the echo: the repeats of an example stand side by side in one batch."]
    distinct = max(1, round(pipeline.batch_size / float(pipeline.parsed_echo_factor)))
    return [
        f"No shuffle after the echo: a batch of {pipeline.batch_size} holds about {distinct} different "
        f"examples and {pipeline.batch_size - distinct} duplicates of them. Give --shuffle-buffer-size."
    ]


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
