"""Elastic echo: a factor that follows what the device would otherwise spend on waiting.

While the device waits, the rate of training is the fresh rate times the factor e, so a share w of waiting
asks for e / (1 - w), exactly. While it does not wait, nothing shows how much smaller the factor could be:
that takes a probe, a cut of the factor to see whether waiting appears. Two things blur both readings:

* A new factor acts behind the elements that are already on their way (`settle_steps`). Until it does nothing
  is concluded and nothing is changed, or the same shortage would be answered twice.
* Buffers conceal a probe that went too low until they are drained. How much they conceal, in steps' worth of
  data, is learned from every probe that fails, and the next cut waits until it would have shown. Without this
  a controller either digs a hole of many waiting steps at each probe or takes minutes to follow a recovery.

A probe that fails goes back to the last good factor at once and the pause before the next one doubles, up to
a bound; cuts that succeed get larger, so that a fast recovery is followed within some tens of steps.
A single wait far beyond all others is a stall of storage, which no factor could have filled: it is left out,
unless a second one follows soon.

The constants were chosen in simulations at R = 3 with buffers of 4 batches, a further delay of 0 to 11 steps
and noise (the supplier of `tests/echoing/test_elastic.py`). With them the device is busy 98 to 99 % of the
time, 96 to 99 % where step or supply times vary by a fifth or more, at a mean factor within 5 % of R. When R
falls to 1 the factor is back at 1 within 60 steps, 100 behind the longest delay, 200 in that noise.
"""

from __future__ import annotations

import math
from collections import deque
from statistics import median
from typing import NamedTuple

from echoing.elastic_options import ElasticOptions

__all__ = ["ElasticController", "ElasticOptions", "FactorChange"]

CUTS = (0.07, 0.2, 0.4, 0.5)
"""Share that each probe of a series takes off the factor. The first costs little where it fails, which is
every time in a steady state; the later ones follow a recovery from e = 3 to 1 in five cuts."""

HEADROOM = 0.01
"""Share by which a raise exceeds the measured need, so that the buffers fill again."""

PAUSE_STEPS = 8
"""Settled steps without waiting before a series of probes; after each series whose first probe fails it
doubles once, to `MAX_PAUSE_STEPS`. Longer pauses save waiting (1 % at these) but delay the way down."""

MAX_PAUSE_STEPS = 16

RAISE_STEPS = 0.5
"""Waiting above the target that calls for a raise, in step times."""

FAILED_PROBE_STEPS = 0.15
"""Waiting above the target that ends a probe, in step times; less than for a raise, since the last good
factor is known."""

QUIET_STEPS = 0.1
"""Waiting up to which a stretch of steps counts as without waiting, in step times."""

MIN_WATCH_STEPS = 2
"""Settled steps between two cuts of a series, at least."""

INITIAL_CONCEALED_STEPS = 0.3
MAX_CONCEALED_STEPS = 4.0
"""Shortage that buffers are taken to conceal, in step times; the bound is two batches of prefetch and two of
infeed."""

CONCEALED_KEPT = 0.8
"""Share of the learned concealment that outlives a probe which failed sooner."""

CONCEALED_SAFETY = 2.0
"""A cut is trusted once it has lacked this many times what the buffers are known to conceal."""

STALL_STEPS = 1.0
STALL_RATIO = 8.0
"""A stall exceeds so many step times, and so many times every other wait of the last `STALL_MEMORY_STEPS`."""

STALL_MEMORY_STEPS = 32


class FactorChange(NamedTuple):
    """One change of the factor.

    Attributes:
        step: number of steps observed when it was made; 0 for the factor at the start.
        factor: the factor from then on.
        reason: `start`, `waiting`, `probe` or `probe failed`.
    """

    step: int
    factor: float
    reason: str


class _Step(NamedTuple):
    wait_seconds: float
    busy_seconds: float
    fresh: int
    trained: int


class ElasticController:
    """Chooses the echo factor, step by step. It has no clock and sets nothing itself.

    Attributes:
        factor: the factor in force.
        trace: every change so far, the start included.
        stalls: waits that were left out as stalls; the first wait of a lasting slowdown is one of them.
    """

    def __init__(self, options: ElasticOptions) -> None:
        initial = options.initial_factor
        self._options = options
        self.factor = float(options.min_factor if initial is None else initial)
        self.trace = [FactorChange(0, self.factor, "start")]
        self.stalls = 0
        self._steps = 0
        self._since_change = 0
        # Of the steps that the present factor has settled for, the last ones.
        self._settled: deque[_Step] = deque(maxlen=options.window_steps)
        self._excess_seconds = 0.0
        self._quiet_steps = 0
        self._quiet_seconds = 0.0
        self._busy_seconds: deque[float] = deque(maxlen=STALL_MEMORY_STEPS)
        self._waits_seconds: deque[float] = deque(maxlen=STALL_MEMORY_STEPS)
        self._last_stall = -STALL_MEMORY_STEPS
        self._pause_steps = PAUSE_STEPS
        self._concealed_steps = INITIAL_CONCEALED_STEPS
        # A series of probes: how many cuts, from which factor, the last good one, and the shortage since.
        self._cuts = 0
        self._top_factor = self.factor
        self._good_factor = self.factor
        self._short_steps = 0.0

    def observe(self, wait_seconds: float, busy_seconds: float, fresh: int, trained: int) -> float:
        """Takes in one training step and returns the factor to use from now on, changed or not.

        Args:
            wait_seconds: time that the device waited for data before the step.
            busy_seconds: time that the device worked on it.
            fresh: examples of the step's batch that were used for the first time.
            trained: all examples of the batch.

        Raises:
            ValueError: a time is negative, NaN or infinite.
        """
        if not (0 <= wait_seconds < math.inf and 0 <= busy_seconds < math.inf):
            raise ValueError(f"step times must be finite and >= 0, not {wait_seconds!r} and {busy_seconds!r}")
        self._steps += 1
        self._since_change += 1
        self._busy_seconds.append(busy_seconds)
        step_seconds = median(self._busy_seconds)
        is_stall = self._is_stall(wait_seconds, step_seconds)
        self._waits_seconds.append(wait_seconds)
        if is_stall or self._since_change <= self._options.settle_steps:
            return self.factor
        self._settled.append(_Step(wait_seconds, busy_seconds, fresh, trained))
        target = self._options.target_waiting
        excess_seconds = self._excess_seconds + wait_seconds * (1 - target) - busy_seconds * target
        # Bounded on both sides, so that neither long rest nor long want delays the next reaction.
        self._excess_seconds = min(max(0.0, excess_seconds), 2 * RAISE_STEPS * step_seconds)
        self._note_quiet(wait_seconds, step_seconds)
        if self._cuts:
            self._short_steps += 1 - self.factor / self._top_factor
        return self._decide(step_seconds)

    def _is_stall(self, wait_seconds: float, step_seconds: float) -> bool:
        if self._steps - self._last_stall < STALL_MEMORY_STEPS:
            return False
        if wait_seconds <= STALL_STEPS * step_seconds:
            return False
        if wait_seconds <= STALL_RATIO * max(self._waits_seconds, default=0.0):
            return False
        self._last_stall = self._steps
        self.stalls += 1
        return True

    def _note_quiet(self, wait_seconds: float, step_seconds: float) -> None:
        self._quiet_steps += 1
        self._quiet_seconds += wait_seconds
        if self._quiet_seconds > QUIET_STEPS * step_seconds:
            self._quiet_steps, self._quiet_seconds = 0, 0.0

    def _decide(self, step_seconds: float) -> float:
        options = self._options
        if self._cuts and self._excess_seconds > FAILED_PROBE_STEPS * step_seconds:
            return self._end_probe()
        if (
            self._excess_seconds > RAISE_STEPS * step_seconds
            and len(self._settled) == options.window_steps
            and (needed_factor := self._needed_factor() * (1 + HEADROOM)) > self.factor
        ):
            self._pause_steps = PAUSE_STEPS
            return self._change(needed_factor, "waiting")
        if self._quiet_steps < self._watch_steps():
            return self.factor
        if self.factor > options.min_factor:
            return self._cut()
        self._cuts = 0
        return self.factor

    def _needed_factor(self) -> float:
        """Returns the factor that would have filled the window."""
        busy_seconds = sum(step.busy_seconds for step in self._settled)
        wait_seconds = sum(step.wait_seconds for step in self._settled)
        fresh = sum(step.fresh for step in self._settled)
        trained = sum(step.trained for step in self._settled)
        # Where a change takes longer than `settle_steps`, what arrives was still made with the old factor.
        effective_factor = min(self.factor, trained / fresh) if fresh else self.factor
        if busy_seconds <= 0:
            return self._options.max_factor
        return effective_factor * (1 + wait_seconds / busy_seconds)

    def _watch_steps(self) -> float:
        """Returns the settled steps without waiting that the next cut asks for."""
        if not self._cuts:
            return self._pause_steps
        last_cut = CUTS[min(self._cuts, len(CUTS)) - 1]
        return max(MIN_WATCH_STEPS, CONCEALED_SAFETY * self._concealed_steps / last_cut)

    def _cut(self) -> float:
        if not self._cuts:
            self._top_factor = self.factor
            self._short_steps = 0.0
        good_factor = self.factor
        cut = CUTS[min(self._cuts, len(CUTS) - 1)]
        cuts = self._cuts + 1
        self._change(self.factor * (1 - cut), "probe")
        self._cuts, self._good_factor = cuts, good_factor
        return self.factor

    def _end_probe(self) -> float:
        concealed_steps = max(self._short_steps, CONCEALED_KEPT * self._concealed_steps)
        self._concealed_steps = min(concealed_steps, MAX_CONCEALED_STEPS)
        # A later cut that failed means that something has changed: look again soon.
        self._pause_steps = MAX_PAUSE_STEPS if self._cuts == 1 else PAUSE_STEPS
        return self._change(self._good_factor, "probe failed")

    def _change(self, factor: float, reason: str) -> float:
        factor = min(max(factor, self._options.min_factor), self._options.max_factor)
        self._cuts = 0
        if factor != self.factor:
            self.factor = factor
            self.trace.append(FactorChange(self._steps, factor, reason))
            self._since_change = 0
            self._settled.clear()
            self._excess_seconds = 0.0
            self._quiet_steps, self._quiet_seconds = 0, 0.0
        return factor
