"""The hosts that train together, from an option or from TF_CONFIG. Imports no TensorFlow."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from echoing.checks import check_integer
from echoing.errors import OptionError

TF_CONFIG = "TF_CONFIG"
"""The environment variable in which schedulers describe a cluster to TensorFlow."""
_EXAMPLE = (
    'an object such as {"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 0}}'
)
_TRAINING_JOBS = ("chief", "worker")
MAX_PORT = 65535


@dataclass(frozen=True)
class Cluster:
    """All workers, and which of them this process is. The first is the chief, which writes the model.

    Attributes:
        hosts: `host:port` of each worker, in the same order on every host.
        task_index: number of this worker, from 0.

    Raises:
        OptionError: a value is not allowed.
    """

    hosts: tuple[str, ...]
    task_index: int

    def __post_init__(self) -> None:
        if not self.hosts:
            raise OptionError("cluster", self.hosts, "at least one host:port")
        for host in self.hosts:
            name, _, port = host.rpartition(":")
            if not name or not port.isdecimal() or not 0 < int(port) <= MAX_PORT:
                raise OptionError(
                    "cluster", host, f"host:port with a port from 1 to {MAX_PORT}, separated by commas"
                )
        doubled = [host for place, host in enumerate(self.hosts) if host in self.hosts[:place]]
        if doubled:
            raise OptionError("cluster", doubled[0], "named once", "Give each worker a port of its own.")
        check_integer(
            "task_index",
            self.task_index,
            minimum=0,
            maximum=len(self.hosts) - 1,
            advice="Each worker has its own number: its place in `cluster`, from 0.",
        )

    @classmethod
    def parse(cls, cluster: str, task_index: int | None) -> Cluster:
        """Returns the cluster of the options `--cluster a:2222,b:2222 --task-index 0`.

        Raises:
            OptionError: a value is not allowed, or there is no task index.
        """
        hosts = tuple(host.strip() for host in cluster.split(","))
        if task_index is None:
            raise OptionError(
                "task_index", None, "given with `cluster`", "It is this host's place in it, from 0."
            )
        return cls(hosts, task_index)

    @classmethod
    def from_tf_config(cls, text: str) -> Cluster | None:
        """Returns the cluster of the value of TF_CONFIG, or None where it names no other host.

        Raises:
            OptionError: it is no such description, or gives this process no part in training.
        """
        try:
            config = json.loads(text)
        except json.JSONDecodeError as error:
            raise OptionError(TF_CONFIG, text, f"JSON ({error})") from None
        if config == {} or (isinstance(config, dict) and not config.get("cluster")):
            return None
        jobs, task = _field(config, "cluster"), _field(config, "task")
        kind, index = task.get("type"), task.get("index")
        if kind not in _TRAINING_JOBS or kind not in jobs:
            raise OptionError(
                TF_CONFIG,
                text,
                "one in which this task is a `chief` or a `worker` of the cluster",
                "Evaluate with `pipebench eval`; parameter servers are not used.",
            )
        for job in _TRAINING_JOBS:
            hosts = jobs.get(job, [])
            if not isinstance(hosts, list) or not all(isinstance(host, str) for host in hosts):
                raise OptionError(TF_CONFIG, text, _EXAMPLE)
        index = check_integer(f"{TF_CONFIG} task index", index, minimum=0, maximum=len(jobs[kind]) - 1)
        before = len(jobs.get("chief", [])) if kind == "worker" else 0
        return cls(tuple(host for job in _TRAINING_JOBS for host in jobs.get(job, [])), before + index)


def _field(config: Any, name: str) -> dict[str, Any]:
    field = config.get(name) if isinstance(config, dict) else None
    if not isinstance(field, dict):
        raise OptionError(TF_CONFIG, config, _EXAMPLE)
    return field
