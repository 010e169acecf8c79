"""`pipebench data make`: generates a photo-like labelled data set."""

from __future__ import annotations

import click

from bench.option_types import NON_EMPTY

EPILOG = "Example: pipebench data make photos --examples 2000 --classes 20"


@click.command("make", epilog=EPILOG)
@click.argument("data_dir", metavar="DIR", type=NON_EMPTY)
@click.option(
    "--examples", type=click.IntRange(min=1), default=1024, show_default=True, help="Number of images."
)
@click.option(
    "--classes",
    type=click.IntRange(1, 1080),
    default=10,
    show_default=True,
    help="Number of classes, up to 1080.",
)
@click.option(
    "--height", type=int, default=375, show_default=True, help="Typical height of a landscape image, pixels."
)
@click.option(
    "--width", type=int, default=500, show_default=True, help="Typical width of a landscape image, pixels."
)
@click.option("--fixed-size", is_flag=True, help="Give every image exactly this size; else sizes vary.")
@click.option(
    "--quality",
    type=click.IntRange(1, 100),
    default=93,
    show_default=True,
    help="JPEG quality, 1 to 100; 93 gives records of about 110 KB at 500 x 375.",
)
@click.option(
    "--shards", type=click.IntRange(min=1), help="Number of shards.  [default: 8, or one an example]"
)
@click.option("--split", type=NON_EMPTY, default="train", show_default=True, help="Name of the split.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the images.")
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="Processes that render; never changes a byte.  [default: cores]",
)
@click.option("--overwrite", is_flag=True, help="Replace shards of this split that are there.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON, and nothing else.")
def command(
    data_dir: str,
    examples: int,
    classes: int,
    height: int,
    width: int,
    fixed_size: bool,
    quality: int,
    shards: int | None,
    split: str,
    seed: int,
    workers: int | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Generate a photo-like, labelled data set in DIR.

    1/f textures as in photographs, with objects whose shape, pattern and number tell the class, and their
    boxes; JPEG records in the ImageNet schema. The images depend on the options alone: the same seed gives
    the same images, whatever the number of shards and workers. Make a second split with --split validation.
    """
    import json

    from bench.formatting import format_value, plural, printable
    from bench.progress import progress_bar
    from bench.tensorflow_startup import start_tensorflow

    start_tensorflow()
    from pipeline.datasets.make import MakeOptions, make_dataset

    options = MakeOptions(
        examples=examples,
        classes=classes,
        height=height,
        width=width,
        fixed_size=fixed_size,
        quality=quality,
        shards=shards,
        split=split,
        seed=seed,
        workers=workers,
        overwrite=overwrite,
    )
    with progress_bar(f"Making {examples} images for split {split}") as bar:
        info = make_dataset(
            options, data_dir, lambda done, total: bar.update(done / total, f"{done} of {total}")
        )
    written = info.splits[split]
    records, size_bytes = sum(shard.records for shard in written), sum(shard.size_bytes for shard in written)
    if as_json:
        summary = {
            "data_dir": data_dir,
            "split": split,
            "records": records,
            "classes": classes,
            "size_bytes": size_bytes,
            "shards": [shard.name for shard in written],
            "options": info.options[split],
        }
        click.echo(json.dumps(summary, indent=1))
        return
    click.echo(
        f"wrote {plural(records, 'image')} of {classes} {'class' if classes == 1 else 'classes'} to "
        f"{printable(data_dir)}: split {split}, "
        f"{plural(len(written), 'shard')}, {format_value(size_bytes, 'bytes')} "
        f"({format_value(size_bytes / records, 'bytes')} a record)"
    )
