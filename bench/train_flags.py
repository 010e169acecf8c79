"""The flags of `pipebench train` beside those of the input pipeline: model, optimizer, loop, checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from bench.option_types import ECHO_FACTOR, INSERT_POINT, NON_EMPTY, POSITIVE_FLOAT
from bench.pipeline_flags import pipeline_options
from trainer.models.registry import MODEL_NAMES
from trainer.train_options import OPTIMIZER_NAMES

POSITIVE = click.IntRange(min=1)
NATURAL = click.IntRange(min=0)
SHARE = click.FloatRange(0, 1)

OWN_NAMES = ("data_dir", "split", "batch_size")
"""Options of the pipeline that training and evaluation name otherwise."""

EVALUATION_NAMES = (
    "file_pattern", "precision", "cycle_length", "read_buffer_bytes", "num_parallel_calls",
    "prefetch_examples", "prefetch_batches", "private_threads", "max_intra_op_parallelism", "preprocess",
    "parity", "image_dtype", "layout", "half_pixel_centers", "vgg_reference_scaling", "dct_method",
    "fancy_upscaling", "parse_after_batch", "max_image_pixels", "recover_truncated", "on_bad_record",
)  # fmt: skip
"""Those that say something of an evaluation, which neither shuffles nor distorts."""


def apply_options(function: Any, options: list[Any]) -> Any:
    """Adds options to a command, in the order in which its help lists them."""
    for option in reversed(options):
        function = option(function)
    return function


def input_options(function: Any) -> Any:
    """Adds the options of the input pipeline, but for `OWN_NAMES`."""
    return _some_pipeline_options(function, lambda name: name not in OWN_NAMES)


def evaluation_input_options(function: Any) -> Any:
    """Adds the options of the input pipeline that matter to an evaluation."""
    return _some_pipeline_options(function, lambda name: name in EVALUATION_NAMES)


def unset_input_options() -> dict[str, Any]:
    """Returns the values of all options of the input pipeline where none is given."""

    @pipeline_options
    def nothing() -> None: ...

    command = click.Command("nothing", params=list(reversed(nothing.__click_params__)))
    return dict(command.make_context("nothing", []).params)


def _some_pipeline_options(function: Any, wanted: Callable[[str], bool]) -> Any:
    there = len(getattr(function, "__click_params__", ()))
    function = pipeline_options(function)
    parameters = function.__click_params__
    parameters[there:] = [parameter for parameter in parameters[there:] if wanted(parameter.name)]
    return function


def data_options(function: Any) -> Any:
    """Adds what is read for training and for the evaluation between, and how often an example is used."""
    options = [
        click.option(
            "--data-dir", type=NON_EMPTY, help="Folder of the shards; not needed with --use-data fake."
        ),
        click.option("--train-split", default="train", type=NON_EMPTY, show_default=True,
                     help="Name prefix of the shards to train on."),
        click.option("--eval-split", default="validation", type=NON_EMPTY, show_default=True,
                     help="Name prefix of the shards to evaluate on."),
        click.option("--eval-file-pattern", type=NON_EMPTY, help="Shell pattern for them, in its place."),
        click.option("--train-batch-size", type=POSITIVE, default=1024, show_default=True,
                     help="Examples of a step over all replicas."),
        click.option("--echo-factor", type=ECHO_FACTOR, default=1, show_default=True,
                     help="Uses of each element, or elastic: follows what the device would wait for."),
        click.option("--max-echo-factor", type=click.FloatRange(min=1), default=8.0, show_default=True,
                     help="Upper bound of the elastic factor."),
        click.option("--insert-point", type=INSERT_POINT, default="after_augment", show_default=True,
                     help="Where the echo stands, as in `pipebench run`."),
        click.option("--echo-shuffle", type=click.Choice(["auto", "none"]), default="auto",
                     show_default=True, help="Whether the example shuffle stands after an echo of examples."),
        click.option("--reaugment-on-device", is_flag=True,
                     help="Distort the repeats at after_transfer: flip, shift, colour."),
    ]  # fmt: skip
    return apply_options(function, options)


def model_options(function: Any) -> Any:
    """Adds the model, the loss, the optimizer, the learning rate and the averages."""
    options = [
        click.option("--model", type=click.Choice(MODEL_NAMES), default=MODEL_NAMES[0], show_default=True,
                     help="What to train."),
        click.option("--width-multiplier", type=POSITIVE_FLOAT, default=1.0, show_default=True,
                     help="Width of the model's layers."),
        click.option("--num-classes", type=click.IntRange(min=2),
                     help="Outputs, background included [default: labels.txt's, else 1001]."),
        click.option("--optimizer", type=click.Choice(OPTIMIZER_NAMES), default=OPTIMIZER_NAMES[0],
                     show_default=True, help="rmsprop is TensorFlow 1's."),
        click.option("--learning-rate", type=POSITIVE_FLOAT, default=0.165, show_default=True,
                     help="For each 256 examples of the batch."),
        click.option("--learning-rate-decay", type=POSITIVE_FLOAT, default=0.94, show_default=True,
                     help="Factor of one stair of the rate."),
        click.option("--learning-rate-decay-epochs", type=POSITIVE_FLOAT, default=3, show_default=True,
                     help="Length of a stair."),
        click.option("--use-learning-rate-warmup", is_flag=True, help="Begin with cold and warm-up epochs."),
        click.option("--cold-epochs", type=NATURAL, default=2, show_default=True,
                     help="Epochs at a tenth of the rate."),
        click.option("--warmup-epochs", type=NATURAL, default=7, show_default=True,
                     help="Epochs in which it climbs."),
        click.option("--reference-warmup/--capped-warmup", default=True, show_default=True,
                     help="Whether the climb's last epoch overshoots, as the reference's does."),
        click.option("--examples-per-epoch", type=POSITIVE,
                     help="What an epoch of the learning rate is [default: the records, else ImageNet's]."),
        click.option("--label-smoothing", type=SHARE, default=0.1, show_default=True,
                     help="Probability mass spread over all classes."),
        click.option("--auxiliary-weight", type=click.FloatRange(min=0), default=0.4, show_default=True,
                     help="Weight of the auxiliary head's loss."),
        click.option("--weight-decay", type=click.FloatRange(min=0), default=4e-5, show_default=True,
                     help="Factor on half the sum of squares of the kernels."),
        click.option("--batch-norm-decay", type=SHARE, default=0.996, show_default=True,
                     help="Of the moving averages of batch normalisation."),
        click.option("--batch-norm-epsilon", type=POSITIVE_FLOAT, default=1e-3, show_default=True,
                     help="Added to its variances."),
        click.option("--batch-norm-decay-per-replica", is_flag=True,
                     help="Raise that decay to the power of the number of replicas, as the guide derives."),
        click.option("--moving-average/--no-moving-average", default=True, show_default=True,
                     help="Average all variables over the steps, for the evaluation."),
        click.option("--moving-average-decay", type=SHARE, default=0.995, show_default=True,
                     help="Decay of these averages; less in the first steps."),
        click.option("--seed", type=click.IntRange(0, 2**31 - 1),
                     help="Of weights, dropout, shuffles, augmentation [default: drawn, then kept]."),
    ]  # fmt: skip
    return apply_options(function, options)


def job_options(function: Any) -> Any:
    """Adds how long to train, when to evaluate, save and report, and what to write."""
    options = [
        click.option("--model-dir", type=NON_EMPTY, required=True,
                     help="Folder of checkpoints and logs; training goes on from the newest checkpoint."),
        click.option("--mode", type=click.Choice(["train", "eval", "train_and_eval"]),
                     help="[default: train_and_eval, or train where there are no evaluation shards]"),
        click.option("--train-steps", type=POSITIVE, default=213_000, show_default=True,
                     help="Steps of the whole training, those before a resume included."),
        click.option("--iterations", "steps_per_loop", type=POSITIVE, default=100, show_default=True,
                     help="The most steps inside one compiled function; fewer where they are long."),
        click.option("--xla", "jit_compile", is_flag=True, help="Compile the step with XLA."),
        click.option("--train-steps-per-eval", type=POSITIVE, default=2000, show_default=True,
                     help="Steps between evaluations; there is one at the end as well."),
        click.option("--save-seconds", type=NATURAL, default=1000, show_default=True,
                     help="Time between checkpoints; 0 leaves these out."),
        click.option("--save-steps", type=POSITIVE, help="Steps between checkpoints, beside --save-seconds."),
        click.option("--keep", type=POSITIVE, default=5, show_default=True,
                     help="Checkpoints kept, and the best by evaluation beside them."),
        click.option("--log-steps", type=POSITIVE,
                     help="Steps between lines of metrics.jsonl [default: 1; 100 in a remote folder]."),
        click.option("--summaries/--no-summaries", default=True, show_default=True,
                     help="Write TensorBoard's event files."),
        click.option("--summary-steps", type=POSITIVE, default=100, show_default=True,
                     help="Steps between their points."),
        click.option("--profile-steps", type=NON_EMPTY, metavar="A,B",
                     help="Profile steps A to B with TensorFlow's profiler."),
        click.option("--export-dir", type=NON_EMPTY, help="Write a SavedModel here at the end."),
        click.option("--log-device-placement", is_flag=True,
                     help="Let TensorFlow log where each operation runs."),
    ]  # fmt: skip
    return apply_options(function, options)
