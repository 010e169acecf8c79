"""`pipebench bench`: benchmarks of the toolkit itself."""

from __future__ import annotations

import click

from bench.commands import bench_echo, bench_pipeline, bench_replicas


@click.group("bench", epilog="Example: pipebench bench echo --rounds 8")
def command() -> None:
    """Measure what the toolkit costs and gains, side by side on this machine."""


command.add_command(bench_echo.command, "echo")
command.add_command(bench_replicas.command, "replicas")
command.add_command(bench_pipeline.command, "pipeline")
