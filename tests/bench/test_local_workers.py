"""Several processes on this host: their commands, their output, and how they end together."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from bench.local_workers import free_hosts, run_workers, without_option, worker_commands


def python(program):
    return [sys.executable, "-c", program]


def test_each_worker_gets_the_cluster_and_its_place_in_it():
    first, second = worker_commands(["train", "--seed", "3"], ["a:1", "b:2"])
    assert first[3:] == ["train", "--seed", "3", "--cluster", "a:1,b:2", "--task-index", "0"]
    assert second[3:] == ["train", "--seed", "3", "--cluster", "a:1,b:2", "--task-index", "1"]


@pytest.mark.parametrize(
    "words", [["train", "--local-workers", "2", "--seed", "3"], ["train", "--local-workers=2", "--seed", "3"]]
)
def test_option_of_the_parent_is_not_passed_on(words):
    assert without_option(words, "--local-workers") == ["train", "--seed", "3"]


def test_hosts_are_different_and_on_the_loopback_interface():
    hosts = free_hosts(3)
    assert len(set(hosts)) == 3
    assert all(host.startswith("127.0.0.1:") for host in hosts)


def test_output_has_the_number_of_its_worker_in_front():
    lines = []
    code = run_workers([python(f"print('hello {index}')") for index in range(2)], lines.append)
    assert code == 0
    assert sorted(lines) == ["[worker 0] hello 0", "[worker 1] hello 1"]


def test_failure_of_one_ends_all_and_is_the_exit_code():
    waits = "import time; print('up', flush=True); time.sleep(600)"
    fails = "import sys; print('no', file=sys.stderr); sys.exit(3)"
    lines = []
    assert run_workers([python(waits), python(fails)], lines.append) == 3
    assert "[worker 1] no" in lines


def test_worker_that_hears_no_signal_is_killed_when_another_failed(tmp_path):
    there = str(tmp_path / "deaf")
    deaf = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"open({there!r}, 'w').close(); time.sleep(600)"
    )
    fails = f"import os, sys\nwhile not os.path.exists({there!r}): pass\nsys.exit(5)"
    assert run_workers([python(deaf), python(fails)], lambda line: None, failed_grace_seconds=0.1) == 5


def test_signal_is_passed_on_and_waited_for():
    saves = (
        "import signal, sys, time\n"
        "def save(number, frame): print('saved', flush=True); sys.exit(143)\n"
        "signal.signal(signal.SIGTERM, save); print('ready', flush=True); time.sleep(600)"
    )
    lines = []

    def write(line):
        lines.append(line)
        if "ready" in line:
            os.kill(os.getpid(), signal.SIGTERM)

    assert run_workers([python(saves)], write) == 143
    assert lines == ["[worker 0] ready", "[worker 0] saved"]
