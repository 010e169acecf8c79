"""`pipebench bench replicas`: what a straggler costs with and without backups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bench.option_types import NON_EMPTY
from echoing.errors import DataError

if TYPE_CHECKING:
    from bench.replicas_benchmark import Measurement, Pace

EPILOG = "Example: pipebench bench replicas --rounds 5 --json"


@click.command("replicas", epilog=EPILOG)
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True, help="Pairs to measure.")
@click.option(
    "--steps", type=click.IntRange(min=10), default=40, show_default=True, help="Updates a measurement."
)
@click.option(
    "--step-milliseconds",
    type=click.FloatRange(min=1),
    default=20.0,
    show_default=True,
    help="Time that the emulated device of each replica takes for a batch.",
)
@click.option(
    "--straggler-factor",
    type=click.FloatRange(min=1),
    default=4.0,
    show_default=True,
    help="How many times as long the emulated straggler takes.",
)
@click.option("--output", type=NON_EMPTY, help="File for the figures as JSON.")
@click.option("--overwrite", is_flag=True, help="Replace an output file that exists.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON on stdout.")
def command(
    rounds: int,
    steps: int,
    step_milliseconds: float,
    straggler_factor: float,
    output: str | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Compare synchronous training on four replica threads with and without a straggler, in pairs.

    Gradients, accumulators, tokens and threads are real; the replicas' devices are emulated, and so is the
    straggler: they sleep. Takes about a minute. Exit code 1 if 3 of 4 do not keep 0.9 of their pace, or if
    4 of 4 keep more than half of theirs, as they do beside a straggler that takes little longer.
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
    from bench.replicas_benchmark import compare_paces

    emulated = (
        f"the devices of 4 replica threads: asleep {step_milliseconds:g} ms a batch, the straggler "
        f"{straggler_factor:g} times as long"
    )
    say(f"Comparing 4 of 4 with 3 of 4 replicas; emulated: {emulated}")
    paces = compare_paces(rounds, steps, step_milliseconds / 1e3, straggler_factor)
    document: dict[str, Any] = {
        "schema": "pipebench.bench_replicas",
        "schema_version": 1,
        "emulated": emulated,
        "paces": [{**asdict(one), "ratio": one.ratio, "keeps_promise": one.keeps_promise} for one in paces],
    }
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    if as_json:
        click.echo(text, nl=False)
    else:
        _print(paces, emulated)
    if output is not None:
        filesystem.write_text(output, text)
        say(f"Wrote {output}")
    click.get_current_context().exit(0 if all(one.keeps_promise for one in paces) else 1)


def _print(paces: list[Pace], emulated: str) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("an update of", "steps/s", "pace", "range", "dropped", "stale", "promised"):
        table.add_column(heading, justify="left" if heading in ("an update of", "promised") else "right")
    for one in paces:
        relation, kept = ">=" if one.keeps else "<=", "kept" if one.keeps_promise else "NOT KEPT"
        table.add_row(one.name, *_figures(one.equal, "", ""))
        table.add_row(
            "  emulated straggler",
            *_figures(one.straggling, f"{one.ratio:.2f}", f"{min(one.ratios):.2f}-{max(one.ratios):.2f}"),
            "" if one.limit is None else f"{relation} {one.limit:g} {kept}",
        )
    console = Console()
    console.print(table)
    console.print(
        "\nPace: with the straggler / without, median of the rounds. Dropped gradients and stale tokens are "
        f"per update.\nEmulated: {emulated}."
    )


def _figures(measurements: list[Measurement], *pace: str) -> list[str]:
    import statistics

    updates = sum(one.updates for one in measurements)
    return [
        f"{statistics.median(one.steps_per_second for one in measurements):.1f}",
        *pace,
        f"{sum(one.dropped for one in measurements) / updates:.2f}",
        f"{sum(one.stale_tokens for one in measurements) / updates:.2f}",
    ]
