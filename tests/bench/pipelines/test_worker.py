"""The worker's protocol: a real process that runs a module which the test has written."""

import itertools
import json
import subprocess
import sys
from dataclasses import asdict

import pytest

from bench.pipelines.variants import Task
from bench.pipelines.worker import take_for

ENDLESS = ("while True:", "    yield task.batch_size")


def talk(variant, *orders, warm_up_seconds=0.0):
    words = [variant.module, json.dumps(asdict(Task("nowhere", batch_size=7))), str(warm_up_seconds)]
    process = subprocess.run(
        [sys.executable, "-m", "bench.pipelines.worker", *words],
        input="".join(json.dumps(order) + "\n" for order in orders),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return process.returncode, [json.loads(line) for line in process.stdout.splitlines()], process.stderr


def test_says_ready_then_answers_each_order_and_ends_with_its_stdin(scripted):
    order = {"settle_seconds": 0.0, "seconds": 0.01}
    code, answers, _ = talk(scripted("endless", *ENDLESS), order, order, warm_up_seconds=0.01)
    assert code == 0
    ready, *rounds = answers
    assert ready == {"ready": True}
    assert len(rounds) == 2
    for one in rounds:
        assert set(one) == {"images", "seconds", "cpu_seconds", "peak_memory_bytes"}
        assert one["images"] > 0 and one["images"] % 7 == 0
        assert one["seconds"] >= 0.01
        assert one["cpu_seconds"] >= 0.0
        assert one["peak_memory_bytes"] is None or one["peak_memory_bytes"] > 1_000_000


def test_what_a_library_prints_does_not_get_among_the_answers(scripted):
    noisy = scripted("noisy", "print('hello')", "os.write(1, b'from C\\n')", *ENDLESS)
    code, answers, stderr = talk(noisy)
    assert (code, answers) == (0, [{"ready": True}])
    assert "hello" in stderr and "from C" in stderr


def test_failure_is_answered_with_its_reason_and_traced_on_stderr(scripted):
    failing = scripted("failing", "yield 1", "raise ValueError('no\\n  more')")
    code, answers, stderr = talk(failing)
    assert (code, answers) == (1, [{"error": "ValueError: no more"}])
    assert "Traceback" in stderr


def test_batches_that_end_are_a_failure(scripted):
    code, answers, _ = talk(scripted("finite", "yield 1", "yield 1"), {"settle_seconds": 0, "seconds": 9})
    assert (code, answers) == (1, [{"ready": True}, {"error": "RuntimeError: the pipeline came to its end"}])


class FakeClock:
    """One second goes by at each look."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        self.now += 1.0
        return self.now


@pytest.mark.parametrize("seconds, batches", [(0.0, 1), (0.5, 1), (1.0, 1), (1.5, 2), (3.0, 3)])
def test_batches_are_taken_until_the_time_is_over_and_the_last_one_counts(seconds, batches):
    assert take_for(itertools.repeat(5), seconds, FakeClock()) == (5 * batches, float(batches))
