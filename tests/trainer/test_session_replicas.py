"""The same training on one device, on logical devices and on two workers; each in processes of its own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("session_job.py")
TOLERANCE = 2e-6
"""Relative: replicas add the same numbers in another order, which float32 rounds at 6e-8 an addition."""


def start(*arguments: str) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
    environment["PYTHONPATH"] = str(PROGRAM.parents[2])
    return subprocess.Popen(
        [sys.executable, str(PROGRAM), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def result_of(process: subprocess.Popen[str]) -> dict[str, Any]:
    stdout, stderr = process.communicate(timeout=200)
    assert process.returncode == 0, stderr
    (line,) = (line for line in stdout.splitlines() if line.startswith("RESULT "))
    return json.loads(line.removeprefix("RESULT "))


def free_hosts(count: int) -> str:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return ",".join(f"127.0.0.1:{each.getsockname()[1]}" for each in sockets)
    finally:
        for each in sockets:
            each.close()


@pytest.fixture(scope="module")
def one_device() -> dict[str, Any]:
    return result_of(start("cpu", "plain,echoed,batch_norm"))


@pytest.fixture(scope="module")
def two_devices() -> dict[str, Any]:
    return result_of(start("mirrored", "2", "transposed,batch_norm"))


@pytest.fixture(scope="module")
def eight_devices() -> dict[str, Any]:
    return result_of(start("mirrored", "8", "plain,echoed"))


@pytest.fixture(scope="module")
def two_workers() -> list[dict[str, Any]]:
    hosts = free_hosts(2)
    workers = [start("worker", str(index), hosts, "plain,echoed") for index in range(2)]
    return [result_of(worker) for worker in workers]


@pytest.fixture(scope="module", params=["eight_devices", "worker_0", "worker_1"])
def replicated(request: pytest.FixtureRequest) -> dict[str, Any]:
    if request.param.startswith("worker"):
        return request.getfixturevalue("two_workers")[int(request.param[-1])]
    return request.getfixturevalue(request.param)


def test_replicas_are_counted_and_numbered_over_all_workers(
    two_devices: dict[str, Any], eight_devices: dict[str, Any], two_workers: list[dict[str, Any]]
) -> None:
    assert two_devices["replicas"] == 2
    assert (eight_devices["replicas"], eight_devices["plain"]["replicas_seen"]) == (8, list(range(8)))
    assert [worker["replicas"] for worker in two_workers] == [2, 2]
    assert [worker["plain"]["replicas_seen"] for worker in two_workers] == [[0], [1]]
    assert two_devices["device"] == "CPU (2 logical devices of one host)"
    assert two_workers[0]["device"] == "CPU of 2 workers"


def test_losses_weights_and_averages_are_those_of_one_device(
    one_device: dict[str, Any], replicated: dict[str, Any]
) -> None:
    expected, found = one_device["plain"], replicated["plain"]
    np.testing.assert_allclose(found["losses"], expected["losses"], rtol=TOLERANCE)
    for name in ("weights", "averages"):
        for ours, theirs in zip(found[name], expected[name], strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=TOLERANCE, atol=TOLERANCE)
    assert found["indices"] == list(range(9))
    assert found["position"] == {"batch": 9, "uses": 0}
    assert found["copies_are_equal"]


def test_evaluation_counts_every_example_once_whatever_the_batches(
    one_device: dict[str, Any], replicated: dict[str, Any]
) -> None:
    for kind in ("raw", "raw_again", "average"):
        *counts, loss, weights = replicated["plain"][kind]
        *expected_counts, expected_loss, expected_weights = one_device["plain"][kind]
        assert counts == expected_counts
        assert counts[0] == 45
        assert loss == pytest.approx(expected_loss, rel=TOLERANCE)
        assert weights == expected_weights


def test_batches_held_on_the_devices_are_used_and_changed_as_on_one(
    one_device: dict[str, Any], replicated: dict[str, Any]
) -> None:
    expected, found = one_device["echoed"], replicated["echoed"]
    assert found["repeats"] == expected["repeats"] == [0, 0, 1, 2, 0, 1, 0, 0, 1, 0]
    np.testing.assert_allclose(found["losses"], expected["losses"], rtol=TOLERANCE)


def test_run_stopped_between_the_uses_of_a_batch_goes_on_exactly(replicated: dict[str, Any]) -> None:
    found = replicated["echoed"]
    assert found["positions"] == [{"batch": 1, "uses": 2}, {"batch": 6, "uses": 0}]
    assert found["resumed_repeats"] == found["repeats"]
    assert found["resumed_losses"] == found["losses"]


def test_transposed_batches_are_split_along_their_last_axis(
    one_device: dict[str, Any], two_devices: dict[str, Any]
) -> None:
    found, expected = two_devices["transposed"], one_device["plain"]
    np.testing.assert_allclose(found["losses"], expected["losses"], rtol=TOLERANCE)
    assert found["raw"][:3] == expected["raw"][:3]
    assert found["raw"][3] == pytest.approx(expected["raw"][3], rel=TOLERANCE)


def test_moments_of_batch_norm_are_averaged_over_the_replicas(
    one_device: dict[str, Any], two_devices: dict[str, Any]
) -> None:
    found, single = two_devices["batch_norm"], one_device["batch_norm"]
    assert found["copies_are_equal"]
    # The mean of the halves' means is the whole's. Their variances leave out how the means differ.
    np.testing.assert_allclose(found["mean"], single["mean"], rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(found["variance"], single["variance"], rtol=0.01)
    assert found["variance"] != single["variance"]
    assert all(value != 0 for value in found["mean"])


def test_deterministic_run_repeats_itself_to_the_last_bit() -> None:
    processes = [start("cpu", "bitwise") for _ in range(2)]
    first, second = (result_of(process)["bitwise"] for process in processes)
    assert first == second
    assert np.isfinite(first["losses"]).all() and len(first["losses"]) == 6
