"""`pipebench bench echo`: what the echo costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bench.option_types import NON_EMPTY
from echoing.errors import DataError

if TYPE_CHECKING:
    from bench.echo_benchmark import Comparison
    from bench.elastic_benchmark import ElasticTrace

EPILOG = "Example: pipebench bench echo --rounds 8 --json"


@click.command("echo", epilog=EPILOG)
@click.option("--rounds", type=click.IntRange(min=1), default=8, show_default=True, help="Pairs to measure.")
@click.option(
    "--elements",
    type=click.IntRange(min=100),
    default=20_000,
    show_default=True,
    help="Elements a measurement of the operator.",
)
@click.option(
    "--steps",
    type=click.IntRange(min=10),
    default=150,
    show_default=True,
    help="Steps a measurement on the emulated device.",
)
@click.option(
    "--elastic-steps",
    type=click.IntRange(min=20),
    default=300,
    show_default=True,
    help="Steps of the elastic trace at each of the two speeds of supply.",
)
@click.option("--output", type=NON_EMPTY, help="File for the figures as JSON.")
@click.option("--overwrite", is_flag=True, help="Replace an output file that exists.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON on stdout.")
def command(
    rounds: int,
    elements: int,
    steps: int,
    elastic_steps: int,
    output: str | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Compare the echo with its two-line form and with no echo, in pairs; trace the elastic echo.

    The device is emulated and the slow store of the elastic trace too. Takes about four minutes. Exit code 1
    if a promise is not kept, which a busy machine is enough for.
    """
    import json
    from dataclasses import asdict

    from bench.progress import say
    from bench.tensorflow_startup import start_tensorflow
    from pipeline import filesystem

    if output is not None:
        if filesystem.exists(output) and not overwrite:
            raise DataError(f"The output {output} exists. Name another file, or give --overwrite.")
        filesystem.write_bytes(output, b"")
    start_tensorflow()
    from bench.echo_benchmark import compare_on_device, compare_operators
    from bench.elastic_benchmark import trace_elastic

    say("Comparing the operator with its two-line form")
    comparisons = compare_operators(rounds, elements - elements % 2)
    say("Comparing steps on the emulated device with and without echo")
    comparisons += compare_on_device(rounds, steps)
    say("Tracing the elastic echo: R = 3, then 1")
    trace = trace_elastic(elastic_steps, elastic_steps)
    document: dict[str, Any] = {
        "schema": "pipebench.bench_echo",
        "schema_version": 1,
        "comparisons": [
            {**asdict(one), "ratio": one.ratio, "keeps_promise": one.keeps_promise} for one in comparisons
        ],
        "elastic": {
            **asdict(trace),
            "promises": [{"what": what, "kept": kept} for what, kept in trace.promises],
        },
    }
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    if as_json:
        click.echo(text, nl=False)
    else:
        _print(comparisons, trace)
    if output is not None:
        filesystem.write_text(output, text)
        say(f"Wrote {output}")
    kept = all(one.keeps_promise for one in comparisons) and all(kept for _, kept in trace.promises)
    click.get_current_context().exit(0 if kept else 1)


def _print(comparisons: list[Comparison], trace: ElasticTrace) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("what", "ratio", "min", "max", "promised", ""):
        table.add_column(heading, justify="left" if heading in ("what", "") else "right")
    for one in comparisons:
        table.add_row(
            one.name,
            f"{one.ratio:.3f}",
            f"{min(one.ratios):.3f}",
            f"{max(one.ratios):.3f}",
            f"<= {one.limit:.2f}",
            "kept" if one.keeps_promise else "NOT KEPT",
        )
    console = Console()
    console.print(table)
    console.print("\nElastic echo, emulated device and store:")
    for what, kept in trace.promises:
        console.print(f"  {what}: {'kept' if kept else 'NOT KEPT'}")
