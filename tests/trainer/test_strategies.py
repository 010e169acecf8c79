from __future__ import annotations

from typing import Any

import pytest
import tensorflow as tf

from echoing.errors import OptionError, PipebenchError
from trainer.cluster import Cluster
from trainer.strategies import StrategyOptions, make_strategy

TWO_WORKERS = '{"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": 1}}'
no_gpu = pytest.mark.skipif(bool(tf.config.list_physical_devices("GPU")), reason="a GPU is visible")


@pytest.mark.parametrize(
    ("option", "changes"),
    [
        ("strategy", {"kind": "parameter_server"}),
        ("logical_devices", {"logical_devices": 0}),
        ("logical_devices", {"kind": "gpu", "logical_devices": 2}),
        ("logical_devices", {"cluster": "a:1,b:1", "task_index": 0, "logical_devices": 2}),
        ("cluster", {"cluster": "a", "task_index": 0}),
        ("cluster", {"kind": "cpu", "cluster": "a:1", "task_index": 0}),
        ("task_index", {"cluster": "a:1"}),
        ("task_index", {"task_index": 0}),
        ("tpu", {"kind": "mirrored", "tpu": "name"}),
        ("tpu", {"kind": "tpu"}),
        ("tpu", {"kind": "tpu", "tpu": ""}),
        ("tpu_zone", {"tpu_zone": "here"}),
        ("tpu_project", {"kind": "cpu", "tpu_project": "mine"}),
    ],
)
def test_option_without_sense_is_refused_by_name(option: str, changes: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=rf"^{option} is "):
        StrategyOptions(**changes)


@pytest.mark.parametrize(
    ("changes", "environment", "kind"),
    [
        ({}, {}, "auto"),
        ({}, {"TF_CONFIG": TWO_WORKERS}, "multi_worker"),
        ({}, {"TF_CONFIG": "{}"}, "auto"),
        ({"kind": "cpu"}, {"TF_CONFIG": TWO_WORKERS}, "cpu"),
        ({"cluster": "a:1,b:1", "task_index": 0}, {}, "multi_worker"),
        ({"tpu": "local"}, {"TF_CONFIG": TWO_WORKERS}, "tpu"),
        ({"logical_devices": 8}, {"TF_CONFIG": TWO_WORKERS}, "mirrored"),
    ],
)
def test_kind_follows_from_what_is_given(
    changes: dict[str, Any], environment: dict[str, str], kind: str
) -> None:
    assert StrategyOptions(**changes).find_kind(environment) == kind


def test_cluster_of_the_options_comes_before_that_of_the_environment() -> None:
    environment = {"TF_CONFIG": TWO_WORKERS}
    assert StrategyOptions().find_cluster(environment) == Cluster(("a:1", "b:2"), 1)
    given = StrategyOptions(cluster="c:3", task_index=0)
    assert given.find_cluster(environment) == Cluster(("c:3",), 0)


def test_several_workers_without_a_cluster_are_refused() -> None:
    with pytest.raises(OptionError, match="cluster is None"):
        make_strategy(StrategyOptions("multi_worker"), environment={})


@no_gpu
@pytest.mark.parametrize("kind", ["gpu", "mirrored"])
def test_gpu_that_is_not_there_is_refused_and_not_replaced(kind: str) -> None:
    with pytest.raises(OptionError, match=f"strategy is '{kind}'.*sees no GPU.*Use `cpu`"):
        make_strategy(StrategyOptions(kind), environment={})


@pytest.mark.parametrize("kind", ["cpu", pytest.param("auto", marks=no_gpu)])
def test_cpu_is_one_replica_and_is_named(kind: str) -> None:
    placement = make_strategy(StrategyOptions(kind), environment={})
    assert (placement.kind, placement.replicas, placement.local_replicas) == ("cpu", 1, 1)
    assert (placement.device.name, placement.device.kind, placement.device.count) == ("CPU", "cpu", 1)
    assert placement.is_chief and placement.worker_count == 1


def test_cpu_cannot_be_split_once_tensorflow_computes() -> None:
    tf.constant(0)
    with pytest.raises(PipebenchError, match="cannot be split into logical devices any more"):
        make_strategy(StrategyOptions(logical_devices=64), environment={})
