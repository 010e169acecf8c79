import os
import subprocess
import sys

import psutil
import pytest

from bench.pipelines.timing import Timing
from bench.pipelines.variants import Task
from bench.pipelines.worker_process import WorkerError, WorkerProcess

TASK = Task("nowhere", batch_size=7)
ENDLESS = ("while True:", "    yield task.batch_size")


@pytest.fixture
def start(quick):
    """Returns a function that starts the process of a variant; all are ended after the test."""
    started = []

    def begin(variant, timing=quick):
        started.append(WorkerProcess(variant, TASK, timing))
        return started[-1]

    yield begin
    for one in started:
        one.stop()


def is_running(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_measures_as_often_as_it_is_asked(scripted, start):
    worker = start(scripted("endless", *ENDLESS))
    worker.wait_until_ready()
    for _ in range(2):
        one = worker.measure()
        assert one.images % 7 == 0 and one.images > 0
        assert one.seconds >= 0.01


def test_processes_are_stopped_while_others_are_measured(scripted, start, tmp_path):
    notes = tmp_path / "child"
    parent = scripted(
        "parent",
        "import subprocess",
        "child = subprocess.Popen([sys.executable, '-c', 'while True: pass'])",
        f"open({str(notes)!r}, 'w').write(str(child.pid))",
        *ENDLESS,
    )
    worker = start(parent)
    worker.wait_until_ready()
    for _ in range(2):
        # The signal takes a moment to arrive; the test's time-out ends a wait in vain.
        for pid in (worker._process.pid, int(notes.read_text())):
            while psutil.Process(pid).status() != psutil.STATUS_STOPPED:
                pass
        assert worker.measure().images > 0


def test_failure_at_the_start_is_told_in_the_librarys_words(scripted, start):
    with pytest.raises(WorkerError, match=r"^RuntimeError: no such codec$"):
        start(scripted("failing", "raise RuntimeError('no such codec')")).wait_until_ready()


def test_long_reasons_are_cut(scripted, start):
    with pytest.raises(WorkerError) as caught:
        start(scripted("wordy", "raise RuntimeError('x' * 5000)")).wait_until_ready()
    assert len(str(caught.value)) == 600 and str(caught.value).endswith("x...")


def test_process_that_ends_without_a_word_is_told_with_its_exit_code_and_last_line(scripted, start):
    with pytest.raises(WorkerError, match=r"^it ended with exit code 3: out of luck$"):
        start(
            scripted("quitting", "os.write(2, b'first\\nout of luck\\n')", "os._exit(3)")
        ).wait_until_ready()


def test_process_that_is_killed_between_two_measurements_is_told_with_the_signal(scripted, start):
    dying = scripted("dying", "yield 1", "yield 1", "os.kill(os.getpid(), 9)")
    worker = start(dying)
    worker.wait_until_ready()
    with pytest.raises(WorkerError, match=r"^it ended with signal SIGKILL: it said nothing$"):
        worker.measure()
    with pytest.raises(WorkerError, match="SIGKILL"):  # also where the pipe is known to be broken
        worker.measure()


def test_process_that_hangs_is_given_up_and_killed(scripted, start):
    impatient = Timing(start_patience_seconds=0.05, stop_patience_seconds=0.0)
    worker = start(scripted("hanging", "import threading", "threading.Event().wait()", "yield 1"), impatient)
    with pytest.raises(WorkerError, match=r"^it gave no answer within 0\.05 seconds$"):
        worker.wait_until_ready()
    worker.stop()
    assert worker._process.returncode == -9


def test_processes_and_temporary_files_of_a_worker_end_with_it(scripted, start, tmp_path):
    notes = tmp_path / "notes"
    parent = scripted(
        "parent",
        "import subprocess, tempfile",
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])",
        "folder = tempfile.mkdtemp()",
        f"open({str(notes)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}} {{folder}}')",
        *ENDLESS,
    )
    worker = start(parent)
    worker.wait_until_ready()
    own, child, folder = notes.read_text().split()
    assert is_running(int(own)) and is_running(int(child)) and os.path.isdir(folder)  # noqa: PTH112
    worker.stop()
    worker.stop()
    assert not is_running(int(own)) and not is_running(int(child))
    assert not os.path.exists(folder)  # noqa: PTH110


def test_worker_ends_when_the_measuring_process_is_killed(scripted, tmp_path, quick):
    notes = tmp_path / "pid"
    os.mkfifo(notes)
    variant = scripted("endless", f"open({str(notes)!r}, 'w').write(str(os.getpid()))", *ENDLESS)
    code = (
        "import os, sys\n"
        "from bench.pipelines.timing import Timing\n"
        "from bench.pipelines.variants import Task, Variant\n"
        "from bench.pipelines.worker_process import WorkerProcess\n"
        f"WorkerProcess({variant!r}, Task('nowhere'), {quick!r}).wait_until_ready()\n"
        "os.kill(os.getpid(), 9)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code])
    worker = psutil.Process(int(notes.read_text()))
    assert process.wait(60) == -9
    psutil.wait_procs([worker], timeout=60)
    assert not is_running(worker.pid)
