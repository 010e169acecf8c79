"""`pipebench run`: the main job."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import Any

import click

from bench.environment import repeat_command
from bench.option_conflicts import refuse_conflicts
from bench.option_types import ECHO_FACTOR, INSERT_POINT, NON_EMPTY, POSITIVE_FLOAT
from bench.output_folder import check_output_folder, default_output_folder
from bench.pipeline_flags import pipeline_options
from bench.progress import say
from bench.run_flags import trainer_options
from echoing.errors import PipebenchError
from pipeline import filesystem

EPILOG = "Example: pipebench run --echo-factor 2 --insert-point after_augment"


@click.command("run", epilog=EPILOG)
@click.option(
    "--echo-factor",
    type=ECHO_FACTOR,
    default=1,
    show_default=True,
    help="Uses of each element, or elastic: follows what the device would wait for.",
)
@click.option(
    "--max-echo-factor",
    type=click.FloatRange(min=1),
    default=8.0,
    show_default=True,
    help="Upper bound of the elastic factor.",
)
@click.option(
    "--insert-point",
    type=INSERT_POINT,
    default="after_augment",
    show_default=True,
    help="Where the echo stands: after_read, after_decode (= before_augment), after_augment "
    "(= before_batch), after_batch (= before_transfer) or after_transfer (= before_step, on the device).",
)
@click.option(
    "--echo-shuffle",
    type=click.Choice(["auto", "none"]),
    default="auto",
    show_default=True,
    help="Whether the example shuffle stands after an echo of examples.",
)
@click.option(
    "--reaugment-on-device", is_flag=True, help="Distort the repeats at after_transfer: flip, shift, colour."
)
@click.option("--seconds", type=POSITIVE_FLOAT, help="Measured time after the warm-up [default: 25].")
@click.option("--steps", type=click.IntRange(min=1), help="Training steps, in place of --seconds.")
@click.option("--epochs", type=click.IntRange(min=1), help="Passes over the data, in place of --seconds.")
@click.option(
    "--warmup-steps",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="Steps left out of the rates; with --steps or --epochs only the first is, unless given.",
)
@click.option(
    "--warmup-seconds",
    type=click.FloatRange(min=0),
    default=5.0,
    show_default=True,
    help="Time left out of the rates, with --seconds.",
)
@click.option("--baseline/--no-baseline", default=True, help="Measure the same pipeline without echo first.")
@click.option("--baseline-seconds", type=POSITIVE_FLOAT, help="Measured time of the baseline [default: 12].")
@pipeline_options
@trainer_options
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), help="Seed of shuffles, augmentation and weights.")
@click.option("--output", type=NON_EMPTY, help="Folder of the result [default: runs/ and the time].")
@click.option("--overwrite", is_flag=True, help="Write into an output folder that is not empty.")
@click.option("--json", "as_json", is_flag=True, help="Print the result record on stdout.")
@click.pass_context
def command(ctx: click.Context, /, output: str | None, overwrite: bool, as_json: bool, **given: Any) -> None:
    """Train with data echoing and report what the accelerator waited for.

    Without --data-dir it uses images that it generates once, and where no accelerator is visible an emulated
    TPU v2-8 at the step time of the Cloud TPU Inception v3 guide. A short baseline without echo comes first.
    """
    options = _run_options(ctx, given)
    folder = output or default_output_folder()
    check_output_folder(folder, overwrite)
    # The words that `main` was given, which are not the process's own where a test gives them.
    words = list(ctx.obj or sys.argv[1:])
    try:
        _execute(ctx, options, words, folder, as_json)
    except (PipebenchError, click.UsageError):
        # An error before anything was written leaves nothing behind.
        filesystem.remove_empty_folder(folder)
        raise


def _run_options(ctx: click.Context, given: dict[str, Any]) -> Any:
    from bench.default_data import default_data_dir
    from bench.pipeline_flags import pipeline_config
    from bench.run_options import DEFAULT_SECONDS, EMULATED_BATCH_SIZE, RunLimit, RunOptions

    limits = {name: given.pop(name) for name in ("seconds", "steps", "epochs")}
    if sum(value is not None for value in limits.values()) > 1:
        raise click.UsageError("Give only one of --seconds, --steps and --epochs.")
    if not any(limits.values()):
        limits["seconds"] = DEFAULT_SECONDS
    if limits["seconds"] is None and not _is_given(ctx, "warmup_steps"):
        given["warmup_steps"] = 1
    if given["baseline_seconds"] is None:
        del given["baseline_seconds"]
    pipeline = pipeline_config(
        given,
        data_dir=given.pop("data_dir") or default_data_dir(),
        train_split=given.pop("split"),
        batch_size=given.pop("batch_size") or EMULATED_BATCH_SIZE,
        # For the counts and the timeline of the report.
        keep_tags=True,
        stamp_upstream=True,
        **{
            name: given.pop(name)
            for name in ("echo_factor", "max_echo_factor", "insert_point", "echo_shuffle", "seed")
        },
    )
    return RunOptions(pipeline=pipeline, limit=RunLimit(**limits), **given)


def _execute(ctx: click.Context, options: Any, words: list[str], folder: str, as_json: bool) -> None:
    from bench.run_data import is_generated, open_run_data
    from bench.tensorflow_startup import start_tensorflow

    # The data first: a wrong folder is answered before TensorFlow is loaded.
    source = open_run_data(options.pipeline)
    start_tensorflow()
    from bench.reporters.folder import write_run_folder
    from bench.run import Run, RunInterruptedError, Terminated
    from bench.trainers import complete_options

    def terminate(signum: int, frame: FrameType | None) -> None:
        raise Terminated

    completed = complete_options(options, _is_given(ctx, "batch_size"))
    flags = {parameter.name: parameter.opts[0] for parameter in ctx.command.params}
    refuse_conflicts(completed, lambda name: _is_given(ctx, name), lambda name: flags[name])
    words = _pinned(words, completed)
    previous = signal.signal(signal.SIGTERM, terminate)
    exit_code = 0
    try:
        run = Run(completed, source, is_generated(options.pipeline), repeat_command(words))
        result = run.execute()
    except RunInterruptedError as interrupted:
        if interrupted.error is not None:
            write_run_folder(interrupted.result, folder, on_warning=say)
            say(f"What was measured before the error is in {folder}, marked incomplete.")
            raise interrupted.error from interrupted
        result, exit_code = interrupted.result, interrupted.exit_code
        say("Interrupted: writing what was measured.")
    except Terminated:
        say("Terminated before anything was measured.")
        click.get_current_context().exit(143)
    finally:
        signal.signal(signal.SIGTERM, previous)
    written = write_run_folder(result, folder, on_warning=say)
    if as_json:
        click.echo(result.to_json(), nl=False)
    else:
        from rich.console import Console

        from bench.reporters.terminal import terminal_summary

        Console().print(terminal_summary(result, written), crop=False)
    if exit_code:
        click.get_current_context().exit(exit_code)


def _pinned(words: list[str], completed: Any) -> list[str]:
    """Returns the words of the command with what was chosen for the user, and without its output folder."""
    chosen = {
        "--trainer": completed.trainer,
        "--batch-size": completed.pipeline.batch_size,
        "--seed": completed.pipeline.seed,
    }
    kept: list[str] = []
    skip = False
    for word in words:
        name = word.split("=", 1)[0]
        if not skip and name not in ("--output", "--overwrite", "--json", *chosen):
            kept.append(word)
        skip = not skip and name in ("--output", *chosen) and "=" not in word
    return [*kept, *(str(part) for pair in chosen.items() for part in pair)]


def _is_given(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE
