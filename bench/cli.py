"""The `pipebench` command: groups the subcommands and turns user errors into one line and an exit code."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Sequence

import click

from echoing.errors import PipebenchError

DEBUG = "--debug"

SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "Measure": {
        "run": ("bench.commands.run", "pipebench run --echo-factor 2 --insert-point after_augment"),
        "bench": ("bench.commands.bench", "pipebench bench echo"),
    },
    "Train": {
        "train": ("bench.commands.train", "pipebench train --data-dir my-data --model-dir my-model"),
        "eval": ("bench.commands.eval", "pipebench eval --model-dir my-model --data-dir my-data"),
    },
    "Results": {"report": ("bench.commands.report", "pipebench report runs/2026-01-31T12-00-00")},
    "Data": {"data": ("bench.commands.data", "pipebench data make my-data --examples 2000")},
}
"""Subcommands by section: the module that holds each, and an example of its use."""


class SectionedGroup(click.Group):
    """A group that imports a subcommand when it is needed and lists its subcommands in sections."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the names of the subcommands in the order of the sections."""
        return [name for section in SECTIONS.values() for name in section]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Returns a subcommand, or None if there is none of this name."""
        for section in SECTIONS.values():
            if cmd_name in section:
                command = importlib.import_module(section[cmd_name][0]).command
                assert isinstance(command, click.Command)
                return command
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the subcommands section by section, each with an example."""
        for title, section in SECTIONS.items():
            rows = []
            for name, (_, example) in section.items():
                command = self.get_command(ctx, name)
                summary = command.get_short_help_str(limit=80) if command else ""
                rows += [(name, summary), ("", f"$ {example}")]
            with formatter.section(title):
                formatter.write_dl(rows)


@click.group(cls=SectionedGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, help="Show the traceback of an error (anywhere on the line).")
@click.version_option(package_name="pipebench", prog_name="pipebench")
def cli(debug: bool) -> None:
    """Find out whether your accelerator waits for data, and let data echoing fill the wait.

    Every command answers --help with its options and an example.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line and exits.

    Args:
        arguments: in place of those of the process, for tests.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    # Accepted behind the subcommand too, where one thinks of it.
    debug = DEBUG in words
    words = [word for word in words if word != DEBUG]
    try:
        sys.exit(cli.main(words, prog_name="pipebench", standalone_mode=False, obj=words) or 0)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        click.echo("Interrupted.", err=True)
        sys.exit(130)
    except PipebenchError as error:
        if debug:
            traceback.print_exc()
        click.echo(f"Error: {error}", err=True)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of our output, such as `head`, has seen enough.
        sys.stdout = None
        sys.exit(141)
