"""From options to a distribution strategy. TensorFlow is imported when the strategy is made."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from echoing.checks import check_choice, check_integer
from echoing.errors import OptionError, PipebenchError
from trainer import tpu
from trainer.cluster import TF_CONFIG, Cluster
from trainer.placement import Placement
from trainer.step import DeviceDescription

HOST = "/device:CPU:0"
KINDS = ("auto", "cpu", "gpu", "mirrored", "multi_worker", "tpu")


@dataclass(frozen=True)
class StrategyOptions:
    """Where to train.

    Attributes:
        kind: `cpu` or `gpu` (one device), `mirrored` (all GPUs of this host, or logical devices),
            `multi_worker` (the hosts of a cluster), `tpu`, or `auto`: what the other options ask for, else
            all GPUs that are visible, else the CPU. Only `auto` ever falls back to the CPU.
        logical_devices: split this host's CPU into so many devices, to try what several replicas do. They
            share its cores: training gets no faster.
        cluster: `host:port` of every worker, separated by commas; None for the cluster in TF_CONFIG, if any.
        task_index: place of this host in `cluster`, from 0.
        tpu: name of a TPU, its `grpc://` address, or `local`.
        tpu_zone: its zone; None for this machine's.
        tpu_project: its project; None for this machine's.

    Raises:
        OptionError: a value is not allowed, or has no effect with the others.
    """

    kind: str = "auto"
    logical_devices: int | None = None
    cluster: str | None = None
    task_index: int | None = None
    tpu: str | None = None
    tpu_zone: str | None = None
    tpu_project: str | None = None

    def __post_init__(self) -> None:
        check_choice("strategy", self.kind, KINDS)
        if self.logical_devices is not None:
            check_integer("logical_devices", self.logical_devices, minimum=1)
        if self.cluster is not None:
            Cluster.parse(self.cluster, self.task_index)
        elif self.task_index is not None:
            raise OptionError("task_index", self.task_index, "left out without `cluster`")
        for name, value, kind in (
            ("logical_devices", self.logical_devices, "mirrored"),
            ("cluster", self.cluster, "multi_worker"),
            ("tpu", self.tpu, "tpu"),
        ):
            if value is not None and self._kind_asked_for != kind:
                raise OptionError(name, value, f"left out unless the strategy is `{kind}`")
        for name, value in (("tpu_zone", self.tpu_zone), ("tpu_project", self.tpu_project)):
            if value is not None and self._kind_asked_for != "tpu":
                raise OptionError(name, value, "left out unless the strategy is `tpu`")
        if self.kind == "tpu" and not self.tpu:
            raise OptionError("tpu", self.tpu, "the name of a TPU, its grpc:// address or `local`")

    @property
    def _kind_asked_for(self) -> str:
        """The kind, or what the first of the options given asks for."""
        if self.kind != "auto":
            return self.kind
        if self.tpu is not None:
            return "tpu"
        if self.cluster is not None:
            return "multi_worker"
        return "mirrored" if self.logical_devices is not None else "auto"

    def find_cluster(self, environment: Mapping[str, str]) -> Cluster | None:
        """Returns the cluster of the options or, where they leave it open, of TF_CONFIG; None without one.

        Args:
            environment: the process's environment variables.

        Raises:
            OptionError: TF_CONFIG cannot be understood.
        """
        if self.cluster is not None:
            return Cluster.parse(self.cluster, self.task_index)
        if self._kind_asked_for not in ("auto", "multi_worker") or TF_CONFIG not in environment:
            return None
        return Cluster.from_tf_config(environment[TF_CONFIG])

    def find_kind(self, environment: Mapping[str, str]) -> str:
        """Returns the kind, with `auto` decided as far as it can be without looking at the devices."""
        kind = self._kind_asked_for
        return "multi_worker" if kind == "auto" and self.find_cluster(environment) else kind


def make_strategy(
    options: StrategyOptions, deterministic: bool = False, environment: Mapping[str, str] | None = None
) -> Placement:
    """Returns the strategy asked for; call it before TensorFlow has computed anything.

    Args:
        options: where to train.
        deterministic: make TensorFlow's kernels deterministic, for the rest of the process.
        environment: environment variables; None for the process's.

    Raises:
        OptionError: the devices, the TPU or the cluster asked for are not there.
    """
    if deterministic:
        use_deterministic_kernels()
    environment = os.environ if environment is None else environment
    kind = options.find_kind(environment)
    if kind == "tpu":
        return _tpu(options)
    if kind == "multi_worker":
        cluster = options.find_cluster(environment)
        if cluster is None:
            raise OptionError("cluster", None, "the host:port of every worker, as an option or in TF_CONFIG")
        return _multi_worker(cluster)
    if options.logical_devices is not None:
        return _logical_devices(options.logical_devices)
    return _this_host(kind)


def use_deterministic_kernels() -> None:
    """Makes TensorFlow's kernels deterministic for the rest of the process; they may be slower."""
    import tensorflow as tf

    tf.config.experimental.enable_op_determinism()


def _this_host(kind: str) -> Placement:
    import tensorflow as tf

    gpus = [] if kind == "cpu" else [device.name for device in tf.config.list_logical_devices("GPU")]
    if kind in ("gpu", "mirrored") and not gpus:
        raise OptionError(
            "strategy",
            kind,
            "one whose devices TensorFlow sees, and it sees no GPU",
            "Use `cpu`, or check the driver; `logical_devices` tries several replicas on the CPU.",
        )
    if kind == "gpu" or not gpus:
        device = gpus[0] if gpus else tf.config.list_logical_devices("CPU")[0].name
        description = _gpu_description(1) if gpus else DeviceDescription("CPU", "cpu")
        strategy = tf.distribute.OneDeviceStrategy(device)
        return Placement(strategy, description.kind, 1, 1, description, local_device=device)
    return _mirrored(gpus, _gpu_description(len(gpus)))


def _logical_devices(count: int) -> Placement:
    import tensorflow as tf

    cpu = tf.config.list_physical_devices("CPU")[0]
    try:
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * count)
    except RuntimeError:
        raise PipebenchError(
            "The CPU cannot be split into logical devices any more: TensorFlow has begun to compute."
        ) from None
    devices = [device.name for device in tf.config.list_logical_devices("CPU")]
    return _mirrored(devices, DeviceDescription(f"CPU ({count} logical devices of one host)", "cpu", count))


def _mirrored(devices: list[str], description: DeviceDescription) -> Placement:
    import tensorflow as tf

    strategy = tf.distribute.MirroredStrategy(devices)
    only = devices[0] if len(devices) == 1 else ""
    return Placement(strategy, "mirrored", len(devices), len(devices), description, local_device=only)


def _multi_worker(cluster: Cluster) -> Placement:
    import tensorflow as tf

    gpus = len(tf.config.list_physical_devices("GPU"))
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec({"worker": list(cluster.hosts)}),
        task_type="worker",
        task_id=cluster.task_index,
        num_accelerators={"GPU": gpus},
        rpc_layer="grpc",
    )
    try:
        strategy = tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=resolver)
    except tf.errors.OpError as error:
        raise PipebenchError(
            f"Worker {cluster.task_index} ({cluster.hosts[cluster.task_index]}) cannot join the cluster "
            f"{', '.join(cluster.hosts)}: {error.message.splitlines()[0]}. Start the same command on every "
            "host, each with its own task index, and check that the ports are free and reachable."
        ) from error
    workers, local = len(cluster.hosts), max(gpus, 1)
    description = DeviceDescription(f"CPU of {workers} workers", "cpu", workers)
    if gpus:
        description = _gpu_description(gpus * workers)
    # Not by its full name: inside TensorFlow's functions the host goes by the short one.
    names = [device.name for device in tf.config.list_logical_devices("GPU")] or [HOST]
    return Placement(
        strategy,
        "multi_worker",
        strategy.num_replicas_in_sync,
        local,
        description,
        local_device=names[0] if local == 1 else "",
        worker_index=cluster.task_index,
        worker_count=workers,
    )


def _tpu(options: StrategyOptions) -> Placement:
    assert options.tpu is not None
    strategy = tpu.connect(options.tpu, options.tpu_zone, options.tpu_project)
    cores = strategy.num_replicas_in_sync
    description = DeviceDescription(f"TPU {options.tpu} ({cores} cores)", "tpu", cores)
    return Placement(strategy, "tpu", cores, cores, description)


def _gpu_description(count: int) -> DeviceDescription:
    import tensorflow as tf

    details: dict[str, Any] = tf.config.experimental.get_device_details(
        tf.config.list_physical_devices("GPU")[0]
    )
    return DeviceDescription(details.get("device_name", "GPU"), "gpu", count)
