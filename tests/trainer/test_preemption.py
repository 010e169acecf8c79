from __future__ import annotations

import os
import signal
import threading
from typing import Any

import pytest

from trainer.preemption import PreemptedError, PreemptionGuard


@pytest.fixture(autouse=True)
def default_handler() -> Any:
    """A signal that nobody notes must not end the tests' process unseen."""
    previous = signal.signal(signal.SIGTERM, lambda number, frame: pytest.fail("SIGTERM came through"))
    yield
    signal.signal(signal.SIGTERM, previous)


def test_signal_is_noted_and_the_work_goes_on() -> None:
    done = []
    with PreemptionGuard() as guard:
        for step in range(5):
            if guard.requested:
                break
            done.append(step)
            if step == 2:
                os.kill(os.getpid(), signal.SIGTERM)
    assert done == [0, 1, 2]
    assert guard.requested


def test_further_signals_do_not_break_the_save() -> None:
    saved = []
    with PreemptionGuard() as guard:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        saved.append(guard.requested)
    assert saved == [True]


def test_exit_code_is_143_and_the_message_says_how_to_go_on() -> None:
    with PreemptionGuard() as guard:
        os.kill(os.getpid(), signal.SIGTERM)
        error = guard.error(20)
    assert isinstance(error, PreemptedError)
    assert error.exit_code == 143
    assert str(error) == (
        "SIGTERM: the checkpoint of step 20 is saved. Run the same command again to resume."
    )


def test_first_of_several_signals_decides_the_exit_code() -> None:
    with PreemptionGuard([signal.SIGINT, signal.SIGTERM]) as guard:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        error = guard.error(1)
    assert (error.exit_code, str(error)[:7]) == (130, "SIGINT:")


def test_nothing_is_requested_without_a_signal() -> None:
    with PreemptionGuard() as guard:
        assert not guard.requested


@pytest.mark.parametrize("failing", [False, True])
def test_handlers_are_put_back_also_after_an_error(failing: bool) -> None:
    previous = signal.getsignal(signal.SIGTERM)
    try:
        with PreemptionGuard():
            assert signal.getsignal(signal.SIGTERM) is not previous
            if failing:
                raise RuntimeError
    except RuntimeError:
        pass
    assert signal.getsignal(signal.SIGTERM) is previous


def test_other_threads_are_refused() -> None:
    errors: list[Exception] = []

    def enter() -> None:
        try:
            with PreemptionGuard():
                pass
        except ValueError as error:
            errors.append(error)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert len(errors) == 1
