"""`pipebench data`: the tools for data sets."""

from __future__ import annotations

import click

from bench.commands import data_check, data_convert, data_make


@click.group("data", epilog="Example: pipebench data convert my-photos my-data --from imagefolder")
def command() -> None:
    """Make, convert and check data sets in the ImageNet TFRecord schema."""


command.add_command(data_make.command, "make")
command.add_command(data_convert.command, "convert")
command.add_command(data_check.command, "check")
