"""`pipebench bench pipeline`: input pipelines side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bench.option_types import NON_EMPTY, POSITIVE_FLOAT

if TYPE_CHECKING:
    from bench.pipelines.comparison import Comparison
    from bench.pipelines.variants import Task, Variant

EPILOG = "Example: pipebench bench pipeline --rounds 8 --seconds 4"


@click.command("pipeline", epilog=EPILOG)
@click.option("--data-dir", type=NON_EMPTY, help="Folder of the shards [default: generated ones].")
@click.option("--split", type=NON_EMPTY, default="train", show_default=True, help="Name prefix.")
@click.option("--variants", default="", help="Comma-separated names [default: all that are installed].")
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
    variants: str,
    rounds: int,
    seconds: float,
    batch_size: int,
    image_size: int,
    output: str | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Compare input pipelines on the same images: the reference's, a tuned one, ours, other libraries'.

    Each runs in a process of its own; they are measured in turn, round by round, while the others rest.
    Writes pipeline.csv, pipeline.json and pipeline.png. Takes about four minutes for the five that need
    nothing more than pipebench. Variants of other libraries join in where they are installed.
    """
    from bench.default_data import default_data_dir
    from bench.environment import usable_cores
    from bench.output_folder import check_output_folder, default_output_folder
    from bench.pipelines.variants import Task, choose_variants, not_installed
    from bench.run_data import open_run_data
    from pipeline.config import PipelineConfig

    chosen = choose_variants(variants)
    folder = output or default_output_folder()
    check_output_folder(folder, overwrite)
    data_dir = data_dir or default_data_dir()
    open_run_data(PipelineConfig(data_dir, train_split=split))
    task = Task(data_dir, split, batch_size, image_size, usable_cores())
    comparison = _compare(chosen, task, rounds, seconds)
    absent = not_installed() if not variants else ()
    _report(comparison, task, seconds, absent, folder, as_json)
    if any(not one.rounds for one in comparison.measured):
        click.get_current_context().exit(1)


def _compare(chosen: tuple[Variant, ...], task: Task, rounds: int, seconds: float) -> Comparison:
    from bench.pipelines.measure import compare_pipelines
    from bench.progress import progress_bar

    with progress_bar(f"Measuring {', '.join(variant.name for variant in chosen)}") as bar:
        return compare_pipelines(chosen, task, rounds, seconds, bar.update)


def _report(
    comparison: Comparison, task: Task, seconds: float, absent: Any, folder: str, as_json: bool
) -> None:
    import contextlib
    import json

    from rich.console import Console

    from bench.pipelines.document import comparison_document
    from bench.progress import say
    from bench.reporters.chart_canvas import NothingToDraw, chart_style, png_bytes
    from bench.reporters.pipeline_comparison import comparison_csv, comparison_figure, comparison_table
    from pipeline import filesystem

    text = json.dumps(comparison_document(comparison, task, seconds), indent=1, allow_nan=False) + "\n"
    filesystem.write_text(filesystem.join(folder, "pipeline.json"), text)
    filesystem.write_text(filesystem.join(folder, "pipeline.csv"), comparison_csv(comparison))
    with contextlib.suppress(NothingToDraw), chart_style():
        filesystem.write_bytes(
            filesystem.join(folder, "pipeline.png"), png_bytes(comparison_figure(comparison))
        )
    if as_json:
        click.echo(text, nl=False)
    else:
        Console().print(comparison_table(comparison, absent))
    say(f"Wrote {filesystem.join(folder, 'pipeline.csv')}, pipeline.json and pipeline.png")
