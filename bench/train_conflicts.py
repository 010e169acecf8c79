"""Options of `pipebench train` that would have no effect are refused, not ignored."""

from __future__ import annotations

from bench.job_options import JobOptions
from bench.option_conflicts import Refusal, refuse_pipeline_conflicts

WARM_UP_ONLY = ("cold_epochs", "warmup_epochs", "reference_warmup")
EVALUATION_ONLY = ("train_steps_per_eval", "eval_split", "eval_file_pattern", "eval_batch_size",
                   "eval_total_size", "display_tensors")  # fmt: skip
WATCHING_ONLY = ("eval_timeout",)


def refuse_train_conflicts(options: JobOptions, refuse: Refusal) -> None:
    """Refuses options that were given but would have no effect.

    Args:
        options: everything that was asked for.
        refuse: what the user gave.

    Raises:
        click.UsageError: such an option was given.
    """
    refuse_pipeline_conflicts(options.pipeline, refuse)
    if not options.use_learning_rate_warmup:
        refuse(WARM_UP_ONLY, "there is no warm-up. Give --use-learning-rate-warmup.")
    if not options.train.moving_average:
        refuse(("moving_average_decay",), "there are no averages.")
    if not options.summaries:
        refuse(("summary_steps",), "there are no summaries.")
    if options.train.model != "inception_v3":
        refuse(("auxiliary_weight",), f"{options.train.model} has no auxiliary head.")
    if options.mode == "train":
        refuse(EVALUATION_ONLY, "nothing is evaluated with --mode train.")
    if options.mode != "eval":
        refuse(WATCHING_ONLY, "nothing is waited for. Give --mode eval.")
