"""`pipebench report`: draws the report of finished runs again, from `result.json` alone."""

from __future__ import annotations

import click

EPILOG = "Example: pipebench report runs/first runs/second"


@click.command("report", epilog=EPILOG)
@click.argument("folders", metavar="DIR...", nargs=-1, required=True)
@click.option("--output", metavar="DIR", help="Draw into this folder instead; with one DIR only.")
@click.option("--overwrite", is_flag=True, help="Draw into an --output folder that is not empty.")
@click.option("--json", "as_json", is_flag=True, help="Print what was written as JSON, and nothing else.")
def command(folders: tuple[str, ...], output: str | None, overwrite: bool, as_json: bool) -> None:
    """Draw steps.csv, the charts and report.html again from result.json.

    Each DIR is the output folder of a run. The drawn files in it are replaced, which is what this command is
    for; result.json is only read. All results are read before the first file is written.
    """
    import json

    from bench.formatting import printable
    from bench.reporters.folder import draw_report, load_result

    _check_output(folders, output, overwrite)
    results = [(folder, load_result(folder)) for folder in folders]
    reports = []
    for folder, result in results:
        problems: list[str] = []
        files = draw_report(result, output or folder, problems.append)
        reports.append({"folder": folder, "files": files, "warnings": problems})
        if not as_json:
            for path in files:
                click.echo(f"wrote {printable(path)}")
        for problem in problems:
            click.echo(f"Warning: {problem}", err=True)
    if as_json:
        click.echo(json.dumps({"reports": reports}, indent=1))


def _check_output(folders: tuple[str, ...], output: str | None, overwrite: bool) -> None:
    from echoing.errors import DataError, OptionError
    from pipeline import filesystem

    for folder in folders:
        if not folder:
            raise OptionError("DIR", folder, "the folder of a run", "Is a shell variable unset?")
    if output is None:
        if overwrite:
            raise OptionError("--overwrite", True, "used with --output", "Without it, DIR is drawn in place.")
        return
    if not output:
        raise OptionError("--output", output, "a folder", "Is a shell variable unset?")
    if len(folders) > 1:
        advice = f"{len(folders)} folders were named; call the command once for each."
        raise OptionError("--output", output, "used with one DIR", advice)
    if filesystem.is_folder(output) and filesystem.list_folder(output) and not overwrite:
        raise DataError(f"--output {output} exists and is not empty. Name another, or give --overwrite.")
