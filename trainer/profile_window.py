"""`--profile-steps A,B`: TensorFlow's profiler around some steps in the middle of a training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from echoing.checks import check_integer
from echoing.errors import OptionError, PipebenchError


@dataclass(frozen=True)
class ProfileSteps:
    """The steps to profile, both included, counted from 1 as in `metrics.jsonl`.

    Attributes:
        first: >= 1.
        last: >= first. A trace of more than some hundred steps is too large for its viewer.

    Raises:
        OptionError: a value is not allowed.
    """

    first: int
    last: int

    def __post_init__(self) -> None:
        check_integer("profile_steps", self.first, minimum=1)
        check_integer("profile_steps", self.last, minimum=self.first)

    @classmethod
    def parse(cls, text: str) -> ProfileSteps:
        """Reads `A,B`.

        Raises:
            OptionError: the text is nothing of the kind.
        """
        parts = text.split(",")
        if len(parts) != 2 or not all(part.strip().isdecimal() for part in parts):
            raise OptionError("profile_steps", text, "two numbers A,B with 1 <= A <= B, such as 100,120")
        first, last = (int(part) for part in parts)
        return cls(first, last)


class ProfileWindow:
    """Starts and stops the profiler where the steps of a training say so.

    The training calls `before` and `after` around each compiled loop. A training that is resumed inside the
    window profiles what is left of it; one that ends there calls `close`, which writes what there is.

    Args:
        steps: the window; None for none, in which case nothing here has an effect.
        folder: the model folder; the trace goes to `plugins/profile/` in it, where TensorBoard looks.
        start: starts a profile into a folder.
        stop: ends it and writes it.

    Attributes:
        profiled_from: steps done when the profile began, or None.
        profiled_to: steps done when it ended, or None.
    """

    def __init__(
        self,
        steps: ProfileSteps | None,
        folder: str,
        start: Callable[[str], None] | None = None,
        stop: Callable[[], None] | None = None,
    ) -> None:
        self._steps = steps
        self._folder = folder
        self._start = start or start_profiler
        self._stop = stop or stop_profiler
        self._done = 0
        self.profiled_from: int | None = None
        self.profiled_to: int | None = None

    @property
    def active(self) -> bool:
        """Whether the profiler runs."""
        return self.profiled_from is not None and self.profiled_to is None

    def before(self, done: int, wanted: int) -> int:
        """Starts the profiler if the next step is in the window.

        Args:
            done: training steps done.
            wanted: how many steps the next loop should have, >= 1.

        Returns:
            How many it may have: `wanted`, or fewer up to the window's next border.

        Raises:
            PipebenchError: the profiler cannot be started.
        """
        if self._steps is None:
            return wanted
        self._done = done
        if self.profiled_from is None and self._steps.first <= done + 1 <= self._steps.last:
            self._start(self._folder)
            self.profiled_from = done
        borders = [border - done for border in (self._steps.first - 1, self._steps.last) if border > done]
        return min([wanted, *borders])

    def after(self, done: int) -> None:
        """Stops the profiler after the window's last step.

        Args:
            done: training steps done.

        Raises:
            PipebenchError: the profile cannot be written.
        """
        self._done = done
        if self._steps is not None and done >= self._steps.last:
            self.close()

    def close(self) -> None:
        """Ends a profile that runs, and writes it."""
        if self.active:
            # Set first, so that a failure to write is not met again while the error is handled.
            self.profiled_to = self._done
            self._stop()


def start_profiler(folder: str) -> None:
    """Starts TensorFlow's profiler.

    Raises:
        PipebenchError: it runs already, as when another tool has started it.
    """
    import tensorflow as tf

    from trainer.model_folder import FILE_ERRORS, reason

    try:
        tf.profiler.experimental.start(folder)
    except FILE_ERRORS as error:
        raise PipebenchError(
            f"The profiler cannot be started: {reason(error)}. Leave out --profile-steps, or end the other "
            "profile."
        ) from error


def stop_profiler() -> None:
    """Stops TensorFlow's profiler and writes its trace.

    Raises:
        PipebenchError: it cannot be written.
    """
    import tensorflow as tf

    from trainer.model_folder import FILE_ERRORS, reason

    try:
        tf.profiler.experimental.stop()
    except FILE_ERRORS as error:
        raise PipebenchError(f"The profile cannot be written: {reason(error)}. Is the disk full?") from error
