"""SIGTERM, as a machine that is about to be taken away sends it: save and exit."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from types import FrameType, TracebackType
from typing import Any

from echoing.errors import PipebenchError


class PreemptedError(PipebenchError):
    """A training was ended by a signal after its checkpoint was saved.

    Args:
        step: training steps done and saved.
        number: the signal's.

    Attributes:
        exit_code: 128 plus the signal's number, as shells report it: 143 for SIGTERM.
    """

    def __init__(self, step: int, number: int = signal.SIGTERM) -> None:
        super().__init__(
            f"{signal.Signals(number).name}: the checkpoint of step {step} is saved. Run the same command "
            "again to resume."
        )
        self.exit_code = 128 + number


class PreemptionGuard:
    """Notes a signal instead of dying of it, inside a `with` statement in the main thread.

    The training asks `requested` between its compiled loops, which take about a second; Python cannot run a
    handler inside one. Then it saves and raises `PreemptedError`. Further signals of the kind are noted too,
    so that they do not break the save. The handlers before are put back at the end.

    With several workers the signal may reach one only, while the others wait for it in a collective
    operation: let them agree on `requested` at a step that all of them reach.

    Args:
        signals: the signals to note.

    Raises:
        ValueError: it is entered in another thread than the main one.
    """

    def __init__(self, signals: Sequence[signal.Signals] = (signal.SIGTERM,)) -> None:
        self._signals = tuple(signals)
        self._previous: dict[signal.Signals, Any] = {}
        self._received: int | None = None

    @property
    def requested(self) -> bool:
        """Whether a signal has come."""
        return self._received is not None

    def error(self, step: int) -> PreemptedError:
        """Returns the error to raise once the checkpoint of `step` is saved."""
        return PreemptedError(step, signal.SIGTERM if self._received is None else self._received)

    def __enter__(self) -> PreemptionGuard:
        for number in self._signals:
            self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            # None stands for a handler that was not installed from Python; it cannot be put back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._previous.clear()

    def _note(self, number: int, frame: FrameType | None) -> None:
        # The first of them decides the exit code.
        self._received = self._received or number
