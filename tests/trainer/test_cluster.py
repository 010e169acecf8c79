from __future__ import annotations

import json
from typing import Any

import pytest

from echoing.errors import OptionError
from trainer.cluster import Cluster


def tf_config(cluster: Any, kind: str = "worker", index: Any = 0) -> str:
    return json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})


def test_hosts_and_place_are_read_from_the_options() -> None:
    cluster = Cluster.parse("a:2222, b:2223,[::1]:9", 1)
    assert cluster == Cluster(("a:2222", "b:2223", "[::1]:9"), 1)


@pytest.mark.parametrize(
    "hosts", ["", "a", "a:", ":1", "a:0", "a:65536", "a:x", "a:1,,b:1", "a:1,a:1", "a:-1"]
)
def test_hosts_that_cannot_be_reached_are_refused(hosts: str) -> None:
    with pytest.raises(OptionError, match="cluster is "):
        Cluster.parse(hosts, 0)


@pytest.mark.parametrize("index", [None, -1, 2, True, 0.0])
def test_place_outside_the_cluster_is_refused(index: Any) -> None:
    with pytest.raises(OptionError, match="task_index is "):
        Cluster.parse("a:1,b:1", index)


@pytest.mark.parametrize(("kind", "index", "place"), [("chief", 0, 0), ("worker", 0, 1), ("worker", 1, 2)])
def test_chief_of_tf_config_is_the_first_worker(kind: str, index: int, place: int) -> None:
    text = tf_config({"chief": ["c:1"], "worker": ["a:1", "b:1"]}, kind, index)
    assert Cluster.from_tf_config(text) == Cluster(("c:1", "a:1", "b:1"), place)


def test_tf_config_without_a_chief_counts_workers_from_the_first() -> None:
    text = tf_config({"worker": ["a:1", "b:1"]}, "worker", 1)
    assert Cluster.from_tf_config(text) == Cluster(("a:1", "b:1"), 1)


@pytest.mark.parametrize("text", ["{}", '{"cluster": {}}', '{"task": {"type": "worker", "index": 0}}'])
def test_tf_config_without_a_cluster_is_none(text: str) -> None:
    assert Cluster.from_tf_config(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1]",
        '"x"',
        '{"cluster": {"worker": ["a:1"]}}',
        '{"cluster": ["a:1"], "task": {"type": "worker", "index": 0}}',
        tf_config({"worker": "a:1"}),
        tf_config({"worker": [1]}),
        tf_config({"worker": ["a:1"]}, "ps"),
        tf_config({"worker": ["a:1"]}, "evaluator"),
        tf_config({"worker": ["a:1"]}, "chief"),
        tf_config({"worker": ["a:1"]}, "worker", 1),
        tf_config({"worker": ["a:1"]}, "worker", "0"),
    ],
)
def test_tf_config_that_gives_no_part_in_training_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match="TF_CONFIG"):
        Cluster.from_tf_config(text)
