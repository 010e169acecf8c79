"""The example scripts run as their documentation says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments], capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_custom_loop_resumes_exactly():
    assert "10 steps, then 20 more; resumed exactly: True" in run("custom_loop.py")


@pytest.mark.slow
def test_service_example_counts_every_record_once_as_fresh():
    assert "trained 400, fresh 200, effective epochs 1.0" in run("tf_data_service.py")


@pytest.mark.slow
def test_keras_example_reports_fresh_and_trained_examples():
    output = run("keras_fit.py", "--records", "128", "--epochs", "2")
    assert "'echo_trained': 256.0" in output
    assert "effective epochs" in output


@pytest.mark.slow
def test_replicas_example_accounts_for_every_gradient_with_and_without_a_backup():
    output = run("sync_replicas.py", "--steps", "20", "--straggler-milliseconds", "2")
    assert "20 updates from 80 gradients (by replica: 20, 20, 20, 20); 0 stale gradients dropped" in output
    assert "20 updates from 60 gradients" in output


def test_every_example_is_tested():
    tested = {"sync_replicas.py", "custom_loop.py", "tf_data_service.py", "keras_fit.py"}
    assert {path.name for path in EXAMPLES.glob("*.py")} == tested
