"""`pipebench train`: a training that runs for weeks, in a folder that it goes on in."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from bench.option_conflicts import Refusal
from bench.pipeline_flags import pipeline_config
from bench.placement_flags import evaluation_options, placement_options
from bench.progress import say
from bench.train_conflicts import refuse_train_conflicts
from bench.train_flags import data_options, input_options, job_options, model_options
from echoing.errors import DataError, OptionError

EPILOG = (
    "Example: pipebench train --data-dir my-data --model-dir my-model --echo-factor 2 --train-batch-size 32"
)


@click.command("train", epilog=EPILOG)
@job_options
@data_options
@model_options
@placement_options
@evaluation_options
@input_options
@click.option(
    "--local-workers",
    type=click.IntRange(min=2),
    help="Start so many workers on this host, which train together; their output has their number in front.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Check that a training would start, on a TPU too; compile its step, print the plan, train nothing.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON on stdout.")
@click.pass_context
def command(
    ctx: click.Context, /, local_workers: int | None, dry_run: bool, as_json: bool, **given: Any
) -> None:
    """Train a model with data echoing, evaluate it in between, and go on after any interruption.

    The same command goes on from the newest checkpoint of the model folder. metrics.jsonl in it has a line a
    step. SIGTERM and Ctrl-C save and exit.
    """
    options = job_from_flags(given)
    flags = {parameter.name: parameter.opts[0] for parameter in ctx.command.params}
    refuse_train_conflicts(options, Refusal(lambda name: _is_given(ctx, name), lambda name: flags[name]))
    if local_workers is not None:
        check_local_workers(options, local_workers)
        if as_json:
            raise click.UsageError("--json goes to the stdout of one process: leave out --local-workers.")
    if dry_run:
        ctx.exit(_dry_run(options, local_workers))
    if local_workers is not None:
        ctx.exit(_run_workers(list(ctx.obj or sys.argv[1:]), local_workers))
    if options.mode == "eval":
        _watch(options, as_json)
    else:
        _train(options, as_json)


def check_local_workers(options: Any, count: int) -> None:
    """Checks what goes with workers on one host.

    Raises:
        OptionError: the batch cannot be shared, or the workers are given in another way as well.
    """
    from trainer.placement import check_divisible

    if options.strategy.find_kind({}) not in ("auto", "cpu"):
        raise OptionError("local_workers", count, "left out with --cluster, --tpu and --logical-devices")
    check_divisible("train_batch_size", options.train.batch_size, count)


def job_from_flags(given: dict[str, Any]) -> Any:
    """Returns the `JobOptions` of a command line.

    Args:
        given: the options by name; those that belong to the job are taken out.

    Raises:
        OptionError: a value is not allowed.
    """
    from bench.job_options import JobOptions, device_echo
    from trainer.profile_window import ProfileSteps
    from trainer.strategies import StrategyOptions
    from trainer.train_options import TrainOptions

    if given["data_dir"] is None and given["use_data"] == "real":
        raise OptionError("data_dir", None, "the folder of the shards", "--use-data fake needs none.")
    image_size, deterministic = given["image_size"], given["deterministic"]
    image_dtype_given = given["image_dtype"] != "auto"
    seed = given.pop("seed")
    pipeline = pipeline_config(
        given,
        data_dir=given.pop("data_dir") or "fake",
        train_split=given.pop("train_split"),
        eval_split=given.pop("eval_split"),
        batch_size=given["train_batch_size"],
        seed=seed,
        # For the counts of fresh and repeated examples.
        keep_tags=True,
        **{
            name: given.pop(name)
            for name in ("echo_factor", "max_echo_factor", "insert_point", "echo_shuffle")
        },
    )
    train = TrainOptions(
        batch_size=given.pop("train_batch_size"),
        image_size=image_size,
        compute_dtype=given.pop("precision"),
        layout=pipeline.layout,
        deterministic=deterministic,
        device_echo=device_echo(pipeline, given.pop("reaugment_on_device")),
        **{
            name: given.pop(name)
            for name in (
                "train_steps", "model", "width_multiplier", "eval_batch_size", "steps_per_loop",
                "jit_compile", "optimizer", "learning_rate", "learning_rate_decay",
                "learning_rate_decay_epochs",
                "cold_epochs", "warmup_epochs", "reference_warmup",
                "label_smoothing", "auxiliary_weight", "weight_decay", "batch_norm_decay",
                "batch_norm_epsilon", "batch_norm_decay_per_replica", "moving_average",
                "moving_average_decay",
            )
        },
    )  # fmt: skip
    strategy = StrategyOptions(
        given.pop("device"),
        **{
            name: given.pop(name)
            for name in ("logical_devices", "cluster", "task_index", "tpu", "tpu_zone", "tpu_project")
        },
    )
    profile_steps = given.pop("profile_steps")
    return JobOptions(
        pipeline=pipeline,
        train=train,
        strategy=strategy,
        seed=seed,
        image_dtype_given=image_dtype_given,
        profile_steps=None if profile_steps is None else ProfileSteps.parse(profile_steps),
        eval_timeout_seconds=given.pop("eval_timeout"),
        **given,
    )


def open_sources(options: Any) -> tuple[Any, Any]:
    """Returns the training data, and the evaluation data or None to train only.

    Raises:
        DataError: there are no usable data.
        OptionError: fake data should be evaluated.
    """
    from pipeline.data_source import open_data_source

    pipeline = options.pipeline
    if pipeline.use_data == "fake":
        if options.mode not in (None, "train"):
            raise OptionError("mode", options.mode, "train with fake data, which have no end to evaluate")
        return _fake_source(pipeline.train_split), None
    source = open_data_source(pipeline.data_dir, pipeline.train_split, pipeline.file_pattern)
    for warning in source.warnings:
        say(f"Warning: {warning}")
    if options.mode == "train":
        return source, None
    try:
        evaluation = open_data_source(pipeline.data_dir, pipeline.eval_split, options.eval_file_pattern)
    except DataError as error:
        if options.mode is not None:
            raise
        say(f"No evaluation: {error} Give --mode train to say so, or --eval-split.")
        return source, None
    return source, evaluation


def _fake_source(split: str) -> Any:
    from bench.tensorflow_startup import start_tensorflow

    start_tensorflow()
    from pipeline.fake_data import FAKE_DATA_NOTE, fake_source

    say(FAKE_DATA_NOTE)
    return fake_source(split)


def _train(options: Any, as_json: bool) -> None:
    from bench.formatting import plural
    from bench.progress import progress_bar
    from bench.tensorflow_startup import start_tensorflow

    # The data first: a wrong folder is answered before TensorFlow is loaded.
    source, evaluation = open_sources(options)
    options = options.with_data(source)
    start_tensorflow()
    from bench.train_job import TrainJob
    from trainer.strategies import make_strategy

    if options.log_device_placement:
        import tensorflow as tf

        tf.debugging.set_log_device_placement(True)
    placement = make_strategy(options.strategy, options.train.deterministic, os.environ)
    workers = plural(placement.worker_count, "worker")
    say(f"Training on {placement.device.name}: {plural(placement.replicas, 'replica')}, {workers}")
    # The first worker speaks for all.
    tell = say if placement.is_chief else _say_nothing
    job = TrainJob(options, source, evaluation, placement, tell)
    with progress_bar(f"Training {options.train.model}") as bar:
        result = job.run(bar, None if sys.stderr.isatty() else tell)
    if placement.is_chief:
        _print(result, options, as_json)


def _watch(options: Any, as_json: bool) -> None:
    """Evaluates the checkpoints of another process's training, as the reference's mode `eval`."""
    from bench.commands.eval import watch_checkpoints
    from bench.tensorflow_startup import start_tensorflow
    from pipeline.data_source import open_data_source

    config = options.eval_config
    source = open_data_source(config.data_dir, config.eval_split, config.file_pattern)
    start_tensorflow()
    from bench.evaluation_job import EvaluationOptions

    evaluation = EvaluationOptions(
        options.model_dir,
        config,
        options.eval_batch_size,
        options.eval_total_size,
        raw=not options.train.moving_average,
        compute_dtype=options.train.compute_dtype,
        num_classes=options.num_classes,
        display_tensors=options.display_tensors,
    )
    watch_checkpoints(evaluation, source, options.strategy, options.eval_timeout_seconds, as_json)


def _dry_run(options: Any, local_workers: int | None) -> int:
    from bench.tensorflow_startup import start_tensorflow

    source, evaluation = open_sources(options)
    start_tensorflow()
    from bench.dry_run import NOT_ON_A_TPU, dry_run, find_hosts
    from bench.reporters.train_plan import plan_text

    run = dry_run(options, source, evaluation, find_hosts(options, local_workers))
    click.echo(plan_text(run, NOT_ON_A_TPU))
    return 1 if run.problems else 0


def _run_workers(words: list[str], count: int) -> int:
    from bench.local_workers import free_hosts, run_workers, without_option, worker_commands

    commands = worker_commands(without_option(words, "--local-workers"), free_hosts(count))
    say(f"Starting {count} workers on this host; they share its cores")
    return run_workers(commands, lambda line: click.echo(line, err=True))


def _say_nothing(message: str) -> None:
    """Takes the lines of workers that are not the first."""


def _print(result: Any, options: Any, as_json: bool) -> None:
    import json

    from bench.reporters.train_summary import result_document, train_summary

    if as_json:
        click.echo(json.dumps(result_document(result), indent=1, allow_nan=False))
    else:
        click.echo(train_summary(result, options.model_dir))


def _is_given(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE
