"""`pipebench data check`: reads every record of a data set and says what is wrong."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from bench.option_types import NON_EMPTY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from pipeline.datasets.check_report import CheckReport, Finding

EPILOG = "Example: pipebench data check my-data --split train --num-classes 11"


@click.command("check", epilog=EPILOG)
@click.argument("data_dir", metavar="DIR", type=NON_EMPTY)
@click.option("--split", type=NON_EMPTY, help="Check this split alone.  [default: all in DIR]")
@click.option(
    "--file-pattern",
    type=NON_EMPTY,
    metavar="PATTERN",
    help="Shell pattern for names in DIR, in place of names like train-00000-of-00008.",
)
@click.option(
    "--num-classes",
    type=click.IntRange(min=1),
    help="Labels 0 to N-1 are allowed.  [default: the classes of labels.txt and the background, 0]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON, and nothing else.")
@click.option(
    "--max-listed",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="Longest list of shards, classes or findings to print; the rest is counted.",
)
@click.pass_context
def command(
    ctx: click.Context,
    data_dir: str,
    split: str | None,
    file_pattern: str | None,
    num_classes: int | None,
    as_json: bool,
    max_listed: int,
) -> None:
    """Read every record in DIR: checksums, keys, images, labels, boxes, duplicates.

    Images are decoded fully. Exit code 1 if there is any problem; warnings and notes alone do not fail.
    """
    import json

    from bench.progress import progress_bar
    from bench.tensorflow_startup import start_tensorflow
    from pipeline import filesystem
    from pipeline.datasets.check import check_dataset

    # A wrong folder is answered without TensorFlow.
    if filesystem.is_remote(data_dir) or filesystem.exists(data_dir):
        start_tensorflow()
    with progress_bar(f"Checking {data_dir}") as bar:
        report = check_dataset(
            data_dir,
            split,
            file_pattern,
            num_classes,
            lambda done_bytes, total_bytes: bar.update(done_bytes / total_bytes),
        )
    if as_json:
        click.echo(json.dumps(report.to_dict(), indent=1, allow_nan=False))
    else:
        _print(report, max_listed)
    ctx.exit(0 if report.is_good else 1)


def _print(report: CheckReport, max_listed: int) -> None:
    from rich.console import Console

    from bench.formatting import format_value, plural, printable
    from pipeline.datasets.check_report import NOTE, PROBLEM, WARNING

    console = Console(markup=False, highlight=False, emoji=False)
    for table in (_shard_table(report, max_listed), _label_table(report, max_listed), _size_table(report)):
        if table.row_count:
            console.print(table)
    sizes = report.size_range()
    if report.image_sizes:
        click.echo(
            f"image height {sizes['min_height']} to {sizes['max_height']}, mean {sizes['mean_height']:.0f}; "
            f"width {sizes['min_width']} to {sizes['max_width']}, mean {sizes['mean_width']:.0f} pixels"
        )
    click.echo(
        f"record size {format_value(report.min_record_bytes, 'bytes')} to "
        f"{format_value(report.max_record_bytes, 'bytes')}, "
        f"mean {format_value(report.mean_record_bytes, 'bytes')}"
    )
    if report.label_range is not None:
        allowed = "any from 0" if report.num_classes is None else f"0..{report.num_classes - 1}"
        click.echo(f"labels found {report.label_range[0]}..{report.label_range[1]}, allowed {allowed}")
    if report.ignored:
        click.echo(f"ignored, no shards: {printable(_shorten(report.ignored, max_listed))}")
    for severity in (NOTE, WARNING, PROBLEM):
        _print_findings(severity, report.of_severity(severity), max_listed)
    problems = len(report.of_severity(PROBLEM))
    verdict = "good" if report.is_good else f"bad: {plural(problems, 'problem')}"
    click.echo(f"{printable(report.data_dir)}: {plural(report.records, 'record')}, {verdict}")


def _print_findings(severity: str, findings: Sequence[Finding], max_listed: int) -> None:
    from bench.formatting import plural, printable

    if not findings:
        return
    kinds = Counter(finding.kind for finding in findings)
    click.echo(
        f"{plural(len(findings), severity)}: "
        + ", ".join(f"{kind} ({count:,})" for kind, count in kinds.most_common())
    )
    for finding in findings[:max_listed]:
        click.echo(f"  {printable(str(finding))}")
    if len(findings) > max_listed:
        click.echo(f"  and {len(findings) - max_listed:,} more; --max-listed or --json shows them")


def _shard_table(report: CheckReport, max_listed: int) -> Table:
    from bench.formatting import format_value, printable

    table = _new_table("split", "shard", "records", "size", "compression")
    shown = report.shards[:max_listed]
    for shard in shown:
        table.add_row(
            printable(shard.split),
            printable(shard.name),
            f"{shard.records:,}",
            format_value(shard.size_bytes, "bytes"),
            shard.compression.lower() or "none",
        )
    if len(report.shards) > len(shown):
        table.add_row("", f"and {len(report.shards) - len(shown):,} more", "", "", "")
    for split, records in report.records_by_split().items():
        table.add_row(printable(split), "all", f"{records:,}", "", "")
    return table


def _label_table(report: CheckReport, max_listed: int) -> Table:
    from bench.formatting import printable

    table = _new_table("label", "class", "records")
    labels = sorted(report.label_counts)
    for label in labels[:max_listed]:
        table.add_row(str(label), printable(report.class_name(label)), f"{report.label_counts[label]:,}")
    if len(labels) > max_listed:
        rest = sum(report.label_counts[label] for label in labels[max_listed:])
        table.add_row("", f"and {len(labels) - max_listed:,} more", f"{rest:,}")
    return table


def _size_table(report: CheckReport) -> Table:
    table = _new_table("longer side, pixels", "images")
    for first, last, images in report.size_histogram():
        table.add_row(f"{first} to {last}", f"{images:,}")
    return table


def _new_table(*columns: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for column in columns:
        is_number = column in ("records", "size", "images", "label")
        table.add_column(column, justify="right" if is_number else "left", overflow="fold")
    return table


def _shorten(names: Sequence[str], max_listed: int) -> str:
    shown = ", ".join(names[:max_listed])
    return f"{shown} and {len(names) - max_listed:,} more" if len(names) > max_listed else shown
