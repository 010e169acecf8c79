"""How far a training has come: a note beside the bar, or a line now and then where there is no terminal."""

from __future__ import annotations

from collections.abc import Callable

from bench.formatting import format_value
from bench.progress import Progress

FIRST_LINE_SECONDS = 10.0
LINE_SECONDS = 60.0
"""When the first line is written, and how often then: a week makes ten thousand of them."""


class TrainProgress:
    """Shows step, loss, rates and the time that is left.

    Args:
        bar: shows the share that is done.
        say: takes a line now and then; None where the bar is seen.
        begun_at: steps done when this run began.
        last_step: steps of the whole training.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        bar: Progress,
        say: Callable[[str], None] | None,
        begun_at: int,
        last_step: int,
        clock: Callable[[], float],
    ) -> None:
        self._bar = bar
        self._say = say
        self._last_step = last_step
        self._clock = clock
        self._begun_at, self._begun_seconds = begun_at, clock()
        self._said_seconds = self._begun_seconds + FIRST_LINE_SECONDS - LINE_SECONDS
        self._counted: tuple[float, int, int] | None = None

    def update(self, step: int, loss: float | None, fresh: int, trained: int) -> None:
        """Shows how far the training has come.

        Args:
            step: training steps done.
            loss: of the last one; None if not known.
            fresh: examples read and trained since the beginning.
            trained: examples trained since the beginning.
        """
        now = self._clock()
        words = f"step {step:,} of {self._last_step:,}"
        if loss is not None:
            words += f", loss {loss:.4g}"
        if self._counted is not None and now > self._counted[0]:
            seconds = now - self._counted[0]
            words += (
                f", {format_value((trained - self._counted[2]) / seconds, 'number')} images/s"
                f" ({format_value((fresh - self._counted[1]) / seconds, 'number')} fresh)"
            )
        done = step - self._begun_at
        if self._say is None:
            self._counted = (now, fresh, trained)
        elif now - self._said_seconds >= LINE_SECONDS:
            left_seconds = (now - self._begun_seconds) / done * (self._last_step - step) if done else None
            self._say(f"{words}; {format_value(left_seconds, 'seconds')} left")
            self._said_seconds = now
            self._counted = (now, fresh, trained)
        self._bar.update(step / self._last_step, words)
