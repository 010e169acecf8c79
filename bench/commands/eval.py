"""`pipebench eval`: how good the checkpoints of a training are."""

from __future__ import annotations

from typing import Any

import click

from bench.option_types import NON_EMPTY
from bench.placement_flags import evaluation_options, placement_options
from bench.progress import say
from bench.train_flags import NATURAL, evaluation_input_options, unset_input_options
from echoing.errors import DataError

EPILOG = "Example: pipebench eval --model-dir my-model --data-dir my-data --json"
BATCH_SIZE = 128
"""Examples of a batch unless one is given: the result does not depend on it, the memory does."""


@click.command("eval", epilog=EPILOG)
@click.option("--model-dir", type=NON_EMPTY, required=True, help="Folder that `pipebench train` wrote.")
@click.option("--data-dir", type=NON_EMPTY, required=True, help="Folder of the shards.")
@click.option("--split", type=NON_EMPTY, default="validation", show_default=True, help="Name prefix.")
@click.option("--raw", is_flag=True, help="Evaluate the raw weights, not their moving averages.")
@click.option("--step", type=NATURAL, help="Evaluate the checkpoint of this step [default: the newest].")
@click.option("--best", is_flag=True, help="Evaluate the checkpoint that did best during training.")
@click.option("--watch", is_flag=True, help="Evaluate each new checkpoint, until the training's last step.")
@click.option("--num-classes", type=click.IntRange(min=2), help="Refuse a checkpoint of another number.")
@evaluation_options
@placement_options
@evaluation_input_options
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object a checkpoint on stdout.")
def command(step: int | None, best: bool, watch: bool, **given: Any) -> None:
    """Evaluate a checkpoint: top-1, top-5 and loss over every example, with the weights' moving averages.

    The model is the one that was trained; nothing is written into its folder.
    """
    if sum([step is not None, best, watch]) > 1:
        raise click.UsageError("Give only one of --step, --best and --watch.")
    _evaluate(given, step, best, watch)


def _evaluate(given: dict[str, Any], step: int | None, best: bool, watch: bool) -> None:
    from bench.pipeline_flags import pipeline_config
    from bench.tensorflow_startup import start_tensorflow
    from pipeline.data_source import open_data_source
    from trainer.strategies import StrategyOptions, make_strategy

    given = unset_input_options() | given
    precision = given["precision"]
    split = given.pop("split")
    config = pipeline_config(given, data_dir=given["data_dir"], eval_split=split, keep_tags=True)
    strategy = StrategyOptions(
        given["device"],
        **{
            name: given[name]
            for name in ("logical_devices", "cluster", "task_index", "tpu", "tpu_zone", "tpu_project")
        },
    )
    source = open_data_source(config.data_dir, split, config.file_pattern)
    start_tensorflow()
    from bench.evaluation_job import EvaluationJob, EvaluationOptions

    options = EvaluationOptions(
        given["model_dir"],
        config,
        given["eval_batch_size"] or BATCH_SIZE,
        given["eval_total_size"],
        given["raw"],
        step,
        best,
        precision,
        given["num_classes"],
        given["display_tensors"],
    )
    if watch:
        watch_checkpoints(options, source, strategy, given["eval_timeout"], given["as_json"])
        return
    placement = make_strategy(strategy)
    _say_device(placement)
    job = EvaluationJob(options, source, placement, say)
    restored = job.find()
    _print(restored.step, job.evaluate(restored), placement, given["as_json"])


def watch_checkpoints(
    options: Any, source: Any, strategy: Any, timeout_seconds: float | None, as_json: bool
) -> None:
    """Evaluates each new checkpoint and prints a line of each.

    Args:
        options: an `EvaluationOptions`.
        source: the evaluation data.
        strategy: where to evaluate.
        timeout_seconds: how long to wait for a new one; None for ever.
        as_json: print JSON objects.

    Raises:
        DataError: there was none.
    """
    from bench.evaluation_job import EvaluationJob
    from trainer.strategies import make_strategy

    placement = make_strategy(strategy)
    _say_device(placement)
    job = EvaluationJob(options, source, placement, say)
    found = 0
    for step, evaluation in job.watch(timeout_seconds):
        _print(step, evaluation, placement, as_json)
        found += 1
    if not found:
        raise DataError(f"There was no checkpoint to evaluate in {options.model_dir}.")


def _say_device(placement: Any) -> None:
    from bench.formatting import plural

    say(f"Evaluating on {placement.device.name}: {plural(placement.replicas, 'replica')}")


def _print(step: int, evaluation: Any, placement: Any, as_json: bool) -> None:
    import json
    from dataclasses import asdict

    from bench.reporters.train_summary import evaluation_document, evaluation_line

    if not placement.is_chief:
        return
    if as_json:
        document = evaluation_document(step, evaluation) | {"device": asdict(placement.device)}
        click.echo(json.dumps(document, allow_nan=False))
    else:
        click.echo(evaluation_line(step, evaluation))
