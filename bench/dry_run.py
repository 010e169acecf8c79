"""`pipebench train --dry-run`: whether a training would start, on a TPU too, and what it would do.

Nothing here runs on a TPU: the step is compiled by XLA for the CPU, with static shapes as on a TPU, and run
once. What only a TPU's own compiler or memory refuses is not found.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import tensorflow as tf

from bench.element_readiness import element_problems, image_bytes
from bench.job_options import JobOptions
from echoing.errors import OptionError, PipebenchError
from pipeline.data_source import DataSource
from pipeline.element import DEVICE_USES
from pipeline.input_pipeline import InputPipeline
from trainer.placement import check_divisible
from trainer.session import TrainSession
from trainer.strategies import StrategyOptions, make_strategy

TPU_CORES = 8
"""Cores of one Cloud TPU v2 or v3 board, the reference's `num_shards`."""
COMPILED_EXAMPLES = 2
"""Examples of the batch that the step is compiled for: XLA's work does not depend on their number."""
TPU_CORE_BYTES = 8 * 2**30
"""Memory of a core of a TPU v2; a v3 has twice as much (Cloud TPU, "System architecture")."""

NOT_ON_A_TPU = "This is a dry run on the CPU, not run on a TPU."


@dataclass
class DryRun:
    """What a dry run found.

    Attributes:
        plan: names and values, in order.
        problems: why the training would not start or would fail.
        warnings: what may go wrong.
    """

    plan: list[tuple[str, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def check(self, check: Any, *arguments: Any) -> Any:
        """Calls a check and notes its error as a problem; returns its result, or None."""
        try:
            return check(*arguments)
        except PipebenchError as error:
            self.problems.append(str(error))
            return None


@dataclass(frozen=True)
class Hosts:
    """What would train.

    Attributes:
        kind: of the strategy.
        workers: hosts that read data.
        replicas: over all of them.
    """

    kind: str
    workers: int
    replicas: int


def find_hosts(
    options: JobOptions, local_workers: int | None = None, environment: Mapping[str, str] | None = None
) -> Hosts:
    """Returns what would train, without connecting to anything.

    Args:
        options: everything that was asked for.
        local_workers: processes on this host; None without.
        environment: environment variables; None for the process's.
    """
    environment = os.environ if environment is None else environment
    strategy = options.strategy
    kind = strategy.find_kind(environment)
    cluster = strategy.find_cluster(environment)
    gpus = 0 if kind in ("cpu", "tpu") else len(tf.config.list_physical_devices("GPU"))
    workers = local_workers or (len(cluster.hosts) if cluster else 1)
    if kind == "tpu":
        found = TPU_CORES
    elif workers > 1:
        kind, found = "multi_worker", workers * max(gpus, 1)
    else:
        found = strategy.logical_devices or (1 if kind == "gpu" else max(gpus, 1))
    return Hosts(kind, workers, options.replicas or found)


def dry_run(
    options: JobOptions, source: DataSource, evaluation_source: DataSource | None, hosts: Hosts
) -> DryRun:
    """Checks everything that can be checked here, and makes the plan.

    Args:
        options: everything that was asked for.
        source: the training data.
        evaluation_source: the evaluation data; None to train only.
        hosts: of `find_hosts`.
    """
    run = DryRun()
    options = run.check(options.with_data, source) or options
    options = run.check(options.for_devices, hosts.kind, hosts.workers) or options
    run.check(check_divisible, "train_batch_size", options.train.batch_size, hosts.replicas)
    run.check(check_divisible, "eval_batch_size", options.eval_batch_size, hosts.replicas)
    if options.train.jit_compile and hosts.replicas > 1 and hosts.kind != "tpu":
        run.problems.append(
            str(OptionError("xla", True, f"left out with {hosts.replicas} replicas that are no TPU cores"))
        )
    _add_hosts(run, options, source, evaluation_source, hosts)
    spec = run.check(_element_spec, options, source, hosts)
    if spec is not None:
        run.problems += element_problems(spec, hosts.kind)
        run.plan.append(("bytes per image sent", f"{image_bytes(spec):,}"))
    if not run.problems and spec is not None:
        _add_step(run, options, spec, hosts)
    return run


def _element_spec(options: JobOptions, source: DataSource, hosts: Hosts) -> Any:
    pipeline = InputPipeline(options.pipeline, source=source)
    context = None
    if hosts.workers > 1:
        context = tf.distribute.InputContext(hosts.workers, 0, hosts.workers)
    return pipeline(input_context=context).element_spec


def _add_hosts(
    run: DryRun,
    options: JobOptions,
    source: DataSource,
    evaluation_source: DataSource | None,
    hosts: Hosts,
) -> None:
    train, config = options.train, options.pipeline
    records = source.records
    batch = train.batch_size
    fresh_steps = None
    if records is not None:
        factor = config.parsed_echo_factor
        fresh_steps = factor.outputs_of(records) / batch
    shards = len(source.shards)
    fewest, most = shards // hosts.workers, -(-shards // hosts.workers)
    if shards < hosts.workers:
        share = f"{shards} shared by {hosts.workers} hosts, record by record"
    else:
        share = f"{shards}, {fewest} a host" if fewest == most else f"{shards}, {fewest} or {most} a host"
    evaluations = -(-train.train_steps // options.train_steps_per_eval)
    run.plan += [
        ("strategy", hosts.kind),
        ("hosts", f"{hosts.workers}"),
        ("replicas", f"{hosts.replicas}"),
        ("training shards", share),
        ("training records", "not counted" if records is None else f"{records:,}"),
        ("batch", f"{batch:,}: {batch / hosts.workers:g} a host, {batch / hosts.replicas:g} a replica"),
        (
            "echo",
            f"{config.echo_factor} at {config.parsed_insert_point.value}" if config.is_echoed else "none",
        ),
        ("steps", f"{train.train_steps:,}, at most {train.steps_per_loop} a compiled loop"),
        ("steps a pass", "not known" if fresh_steps is None else f"{fresh_steps:,.2f}"),
        (
            "evaluations",
            "none"
            if evaluation_source is None
            else f"{evaluations:,}, every {options.train_steps_per_eval:,} steps and at the end",
        ),
        ("learning rate", f"{options.train.schedule.at(0):g} in step 1"),
    ]


def _add_step(run: DryRun, options: JobOptions, spec: Mapping[str, Any], hosts: Hosts) -> None:
    """Compiles the whole step for the CPU, runs it once, and estimates the memory."""
    per_replica = options.train.batch_size // hosts.replicas
    batch = min(per_replica, COMPILED_EXAMPLES)
    train = replace(options.train, batch_size=batch, eval_batch_size=None, jit_compile=True, steps_per_loop=1)
    try:
        session = TrainSession(train, make_strategy(StrategyOptions("cpu"), train.deterministic))
        session.train(session.open(_blank_batches(spec, options, batch)), 1, lambda records: None)
    except tf.errors.OpError as error:
        run.problems.append(f"XLA cannot compile the step: {_reason(error.message)}")
        return
    run.plan.append(("step", f"compiled by XLA for the CPU and run once, batch {batch}"))
    variables = _variable_bytes(session)
    gradients = sum(variable_bytes(variable) for variable in session.model.trainable_variables)
    activations = per_replica * activation_bytes(session)
    total = variables + gradients + activations
    run.plan += [
        ("variables", f"{variables / 1e6:,.1f} MB a replica, averages and optimizer included"),
        ("gradients", f"{gradients / 1e6:,.1f} MB"),
        ("activations", f"at most about {activations / 1e6:,.1f} MB for {per_replica:,} images"),
        ("checkpoint", f"{variables / 1e6:,.1f} MB, {options.keep} and the best are kept"),
    ]
    if hosts.kind == "tpu" and total > TPU_CORE_BYTES:
        run.warnings.append(
            f"The estimate of {total / 2**30:.1f} GiB is more than the 8 GiB of a TPU v2 core (a v3 has 16). "
            "XLA reuses memory, so that it may fit all the same; a smaller batch is safe."
        )


def _reason(message: str) -> str:
    """Returns the line of TensorFlow's message that says what was wrong, which comes after the stack."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return next((line for line in reversed(lines) if not line.startswith(("[[", "File "))), "no reason given")


def _blank_batches(spec: Mapping[str, Any], options: JobOptions, batch: int) -> Any:
    """Returns a dataset of one batch of zeros, of the shapes that the pipeline gives but for its size."""

    def blank(name: str, feature: Any) -> Any:
        shape = feature.shape.as_list()
        axis = len(shape) - 1 if name == "image" and options.train.layout == "hwcn" else 0
        if shape and name != DEVICE_USES:
            shape[axis] = batch
        value = tf.zeros(shape, feature.dtype)
        return tf.ones_like(value) if name == DEVICE_USES else value

    return tf.data.Dataset.from_tensors({name: blank(name, feature) for name, feature in spec.items()})


def variable_bytes(variable: Any) -> int:
    """Returns the bytes of a variable's values."""
    return int(variable.shape.num_elements() * variable.dtype.size)


def _variable_bytes(session: TrainSession) -> int:
    averages = () if session.average is None else session.average.variables
    everything = (
        *session.model.trainable_variables,
        *session.model.moving_variables,
        *session.optimizer.variables,
        *averages,
    )
    return sum(variable_bytes(variable) for variable in everything)


def activation_bytes(session: TrainSession) -> int:
    """Returns the bytes of all images inside the network for one example, in a training call.

    The sum over all operations that give images: an upper bound of what is kept for the gradients, since a
    compiler fuses many of them and keeps none of their results.
    """
    size = session.options.image_size
    spec = tf.TensorSpec([1, size, size, 3], session.options.compute_dtype)
    graph = (
        tf.function(lambda images: session.model(images, training=True).main, autograph=False)
        .get_concrete_function(spec)
        .graph
    )
    total = 0
    for operation in graph.get_operations():
        for output in operation.outputs:
            if output.shape.rank == 4 and output.shape.is_fully_defined() and output.dtype.is_floating:
                is_kernel = operation.type in ("ReadVariableOp", "Cast", "Const")
                total += 0 if is_kernel else output.shape.num_elements() * output.dtype.size
    return int(total)
