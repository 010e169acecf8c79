"""`pipebench data convert`: converts an image folder or IDX files into shards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bench.option_types import NON_EMPTY

if TYPE_CHECKING:
    from pipeline.datasets.convert_options import ConvertSummary

EPILOG = "Example: pipebench data convert photos/train shards --from imagefolder --split train"


@click.command("convert", epilog=EPILOG)
@click.argument("src", metavar="SRC", type=NON_EMPTY)
@click.argument("data_dir", metavar="DIR", type=NON_EMPTY)
@click.option(
    "--from",
    "source",
    type=click.Choice(["imagefolder", "idx"]),
    required=True,
    help="imagefolder: one sub-folder a class; idx: the files of MNIST or Fashion-MNIST.",
)
@click.option(
    "--split",
    type=NON_EMPTY,
    default="train",
    show_default=True,
    help="Name of the split. From idx, train reads train-*, validation and test read t10k-*.",
)
@click.option("--shards", type=click.IntRange(min=1), help="Number of shards.  [default: 8, or one a record]")
@click.option(
    "--labels",
    "labels_file",
    metavar="FILE",
    type=NON_EMPTY,
    help="Class names, one a line; line k has label k.",
)
@click.option(
    "--boxes",
    "boxes_file",
    metavar="FILE.csv",
    type=NON_EMPTY,
    help="Boxes: columns filename,xmin,ymin,xmax,ymax, in fractions of the upright picture.",
)
@click.option("--skip-bad", is_flag=True, help="Leave unusable pictures out instead of failing.")
@click.option("--overwrite", is_flag=True, help="Replace shards of this split that are there.")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of the order of the records.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="Threads that decode; never changes a byte.  [default: cores]",
)
@click.option(
    "--quality",
    type=click.IntRange(1, 100),
    default=95,
    show_default=True,
    help="JPEG quality of what must be encoded again, 1 to 100.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON, and nothing else.")
def command(
    src: str,
    data_dir: str,
    source: str,
    split: str,
    shards: int | None,
    labels_file: str | None,
    boxes_file: str | None,
    skip_bad: bool,
    overwrite: bool,
    seed: int,
    workers: int | None,
    quality: int,
    as_json: bool,
) -> None:
    """Convert the pictures in SRC into one split of a data set in DIR.

    RGB JPEGs are kept byte for byte; PNG, GIF, BMP, WebP, grey and CMYK pictures become RGB JPEG, and
    pictures with an EXIF orientation are turned upright. Every picture is decoded; unusable ones are in
    DIR/rejected-SPLIT.tsv and fail the command unless --skip-bad is given. A class list that is in DIR
    already (from another split) decides the label numbers.
    """
    import json

    from bench.progress import progress_bar
    from bench.tensorflow_startup import start_tensorflow

    start_tensorflow()
    from pipeline.datasets.convert import convert_dataset
    from pipeline.datasets.convert_options import ConvertOptions

    options = ConvertOptions(
        source=source,
        split=split,
        shards=shards,
        labels_file=labels_file,
        boxes_file=boxes_file,
        skip_bad=skip_bad,
        overwrite=overwrite,
        seed=seed,
        workers=workers,
        quality=quality,
    )
    with progress_bar(f"Converting {src} into split {split}") as bar:
        summary = convert_dataset(
            options, src, data_dir, lambda done, total: bar.update(done / total, f"{done} of {total}")
        )
    if as_json:
        click.echo(json.dumps(summary.to_dict(), indent=1))
    else:
        _print(summary)


def _print(summary: ConvertSummary) -> None:
    from bench.formatting import plural, printable

    click.echo(f"found {summary.found:,}, written {summary.written:,}, rejected {summary.rejected:,}")
    for change, count in sorted(summary.changes.items()):
        click.echo(f"  {change}: {count:,}")
    for reason, count in sorted(summary.ignored.items()):
        click.echo(f"  ignored, {reason}: {count:,}")
    click.echo(
        f"wrote {plural(len(summary.shards), 'shard')} of split {summary.split} with "
        f"{len(summary.classes):,} {'class' if len(summary.classes) == 1 else 'classes'} to "
        f"{printable(summary.data_dir)}"
    )
    if summary.rejected_file is not None:
        click.echo(f"rejected pictures and reasons: {printable(summary.rejected_file)}")
    for warning in summary.warnings:
        click.echo(f"Warning: {printable(warning)}", err=True)
