"""`pipebench bench pipeline`: input pipelines side by side."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

import click

from bench.option_types import NON_EMPTY, POSITIVE_FLOAT

if TYPE_CHECKING:
    from bench.pipelines.comparison import Comparison
    from bench.pipelines.timing import Timing
    from bench.pipelines.variants import Task, Variant

EPILOG = "Example: pipebench bench pipeline --rounds 8 --seconds 4"


@click.command("pipeline", epilog=EPILOG)
@click.option("--data-dir", type=NON_EMPTY, help="Folder of the shards [default: generated ones].")
@click.option("--split", type=NON_EMPTY, default="train", show_default=True, help="Name prefix.")
@click.option("--variants", type=NON_EMPTY, help="Comma-separated names [default: all that are installed].")
@click.option("--rounds", type=click.IntRange(min=1), default=8, show_default=True, help="Rounds to measure.")
@click.option(
    "--seconds", type=POSITIVE_FLOAT, default=4.0, show_default=True, help="Time of each measurement."
)
@click.option("--batch-size", type=click.IntRange(min=1), default=128, show_default=True)
@click.option(
    "--image-size", type=click.IntRange(min=1), default=299, show_default=True, help="Pixels a side."
)
@click.option("--output", type=NON_EMPTY, help="Folder of the result [default: runs/ and the time].")
@click.option("--overwrite", is_flag=True, help="Write into an output folder that is not empty.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON on stdout.")
def command(
    data_dir: str | None,
    split: str,
    variants: str | None,
    rounds: int,
    seconds: float,
    batch_size: int,
    image_size: int,
    output: str | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Compare input pipelines on the same images: the reference's, a tuned one, ours, other libraries'.

    Each runs in a process of its own; they are measured in turn, round by round, the others stopped. Writes
    pipeline.json, pipeline.csv and pipeline.png. Takes about four minutes for the five that need nothing more
    than pipebench, and a minute more for each other library that is installed. Exit code 1 if a variant
    failed.
    """
    from bench.default_data import default_data_dir
    from bench.environment import usable_cores
    from bench.output_folder import check_output_folder, default_output_folder
    from bench.pipelines.selection import choose_variants
    from bench.pipelines.timing import Timing
    from bench.pipelines.variants import Task, not_installed
    from pipeline import filesystem

    chosen = choose_variants(variants)
    task = Task(data_dir or default_data_dir(), split, batch_size, image_size, usable_cores())
    timing = Timing(measured_seconds=seconds)
    folder = output or default_output_folder()
    is_new = not filesystem.exists(folder)
    check_output_folder(folder, overwrite)
    try:
        with _ended_by_sigterm():
            comparison = _compare(chosen, task, rounds, timing)
    except BaseException:
        # Without figures, nothing is left behind.
        if is_new:
            filesystem.remove_empty_folder(folder)
        raise
    _report(comparison, task, timing, () if variants else not_installed(), folder, as_json)
    if any(one.error for one in comparison.measured):
        click.get_current_context().exit(1)


def _compare(chosen: Sequence[Variant], task: Task, rounds: int, timing: Timing) -> Comparison:
    """Measures, or raises a `PipebenchError` where nothing could be measured."""
    from bench.pipelines.measure import compare_pipelines
    from bench.progress import progress_bar
    from bench.run_data import open_run_data
    from echoing.errors import PipebenchError
    from pipeline.config import PipelineConfig

    # Faults of the data are said here, and not by each variant in its own words.
    open_run_data(PipelineConfig(task.data_dir, train_split=task.split))
    with progress_bar(f"Measuring {', '.join(variant.name for variant in chosen)}") as bar:
        comparison = compare_pipelines(chosen, task, rounds, timing, bar.update)
    if not any(one.rounds for one in comparison.measured):
        reasons = "; ".join(f"{one.variant.name}: {one.error}" for one in comparison.measured)
        raise PipebenchError(f"No pipeline could be measured. {reasons}")
    return comparison


def _report(
    comparison: Comparison,
    task: Task,
    timing: Timing,
    absent: Sequence[Variant],
    folder: str,
    as_json: bool,
) -> None:
    import json

    from rich.console import Console

    from bench.pipelines.document import comparison_document
    from bench.progress import say
    from bench.reporters.pipeline_comparison import comparison_table, write_comparison

    text = json.dumps(comparison_document(comparison, task, timing), indent=1, allow_nan=False) + "\n"
    written = write_comparison(comparison, text, folder, lambda warning: say(f"Warning: {warning}"))
    if as_json:
        click.echo(text, nl=False)
    else:
        Console().print(comparison_table(comparison, absent))
    say(f"Wrote {', '.join(written)}")


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Lets SIGTERM end the block as an exception, so that the pipelines' processes are ended too."""

    def terminate(signum: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + signum)

    previous = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
