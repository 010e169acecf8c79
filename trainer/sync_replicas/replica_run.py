"""One run of the replica threads, from their start to the last one's end."""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import tensorflow as tf

from echoing.errors import DataError, PipebenchError
from trainer.sync_replicas.gradient_accumulators import GradientAccumulators
from trainer.sync_replicas.replica_counts import Push, ReplicaCounts, ReplicaReport
from trainer.sync_replicas.replica_plan import ReplicaPlan
from trainer.sync_replicas.step_tokens import StepTokens

_logger = logging.getLogger(__name__)

GradientFunction = Callable[[int], Sequence[Any]]
"""Computes one batch's gradients for a global step, on the thread of its replica."""


class ReplicasStalledError(PipebenchError, TimeoutError):
    """No update came within the time limit."""


class ReplicaRun:
    """The threads, their tokens, and the lock under which gradients come in.

    There is no thread for updates, as the chief of TensorFlow's optimizer is one: the replica that brings the
    last gradient makes the update before it lets go of the lock. So an update takes exactly as many
    gradients as planned, and what comes later is stale; a chief also averages what comes before it wakes up.

    Args:
        plan: the numbers.
        accumulators: where gradients come in; released at the end.
        update: takes the averages and moves the variables and the global step.
        first_step: the global step to begin with.
        last_step: the global step to end with.
        on_push: called under the lock for each batch that came in, in order.
    """

    def __init__(
        self,
        plan: ReplicaPlan,
        accumulators: GradientAccumulators,
        update: Callable[[], object],
        first_step: int,
        last_step: int,
        on_push: Callable[[Push], object] | None = None,
    ) -> None:
        self._plan, self._accumulators, self._update, self._on_push = plan, accumulators, update, on_push
        self._first_step, self._step, self._last_step = first_step, first_step, last_step
        self._tokens = StepTokens(plan.replicas, plan.own_tokens)
        self._tokens.put(first_step, plan.tokens_at_start)
        self._counts = [ReplicaCounts() for _ in range(plan.replicas)]
        self._computing: set[int] = set()
        self._accumulated = 0
        self._changed = threading.Condition()
        self._ended = self._released = False
        self._error: BaseException | None = None

    def run(
        self, replicas: Sequence[GradientFunction], step_timeout_seconds: float, stop_timeout_seconds: float
    ) -> ReplicaReport:
        """See `SyncReplicas.run`."""
        threads = [
            # Daemons: a replica that never comes back must not keep the process alive.
            threading.Thread(
                target=self._replica, args=(index, function), name=f"pipebench-replica-{index}", daemon=True
            )
            for index, function in enumerate(replicas)
        ]
        try:
            for thread in threads:
                thread.start()
            self._wait(step_timeout_seconds)
        finally:
            self._end()
            left = self._join(threads, stop_timeout_seconds)
        if self._error is not None:
            raise self._error
        return ReplicaReport(self._step - self._first_step, tuple(self._counts), left)

    def _replica(self, index: int, function: GradientFunction) -> None:
        """The life of one replica: compute, push, wait for a token."""
        try:
            # The first batch needs no token.
            step: int | None = self._first_step
            while step is not None:
                gradients = self._compute(index, function, step)
                self._push(index, gradients, step)
                step = self._take_token(index)
        except BaseException as error:
            self._end(error)

    def _compute(self, index: int, function: GradientFunction, step: int) -> Sequence[Any]:
        self._computing.add(index)
        try:
            return function(step)
        except (StopIteration, tf.errors.OutOfRangeError) as error:
            raise DataError(
                f"The data of replica {index} ended at step {step}, and {self._last_step} are asked for. "
                "Let its dataset repeat."
            ) from error
        finally:
            self._computing.discard(index)

    def _push(self, index: int, gradients: Sequence[Any], step: int) -> None:
        with self._changed:
            # After an error or a time limit nothing is trained any more. After the last update there is no
            # such need: the accumulators have moved on and drop what comes.
            if self._released or (self._ended and self._step < self._last_step):
                return
            accepted, self._accumulated = self._accumulators.push(gradients, step)
            updated = accepted and self._accumulated == self._plan.replicas_to_aggregate
            counts = self._counts[index]
            self._counts[index] = dataclasses.replace(
                counts, accepted=counts.accepted + accepted, dropped=counts.dropped + (not accepted)
            )
            if updated:
                self._update()
                self._step += 1
                self._accumulated = 0
                if self._step == self._last_step:
                    self._end()
                else:
                    self._tokens.put(self._step, self._plan.tokens_per_step)
                self._changed.notify_all()
            if self._on_push is not None:
                self._on_push(Push(index, step, accepted, updated))

    def _take_token(self, index: int) -> int | None:
        """Waits for a token of the current step; those of earlier steps would lead to stale gradients."""
        while (token := self._tokens.take(index)) is not None and token < self._step:
            with self._changed:
                counts = self._counts[index]
                self._counts[index] = dataclasses.replace(counts, stale_tokens=counts.stale_tokens + 1)
        return token

    def _wait(self, step_timeout_seconds: float) -> None:
        """Waits for the end; not longer than the limit for any one update."""
        with self._changed:
            while not self._ended:
                step = self._step
                moved = self._changed.wait_for(partial(self._is_past, step), step_timeout_seconds)
                if not moved:
                    busy = ", ".join(str(index) for index in sorted(self._computing)) or "none"
                    raise ReplicasStalledError(
                        f"No update for {step_timeout_seconds:g} s: {self._accumulated} of "
                        f"{self._plan.replicas_to_aggregate} gradients of step {step} have come; replicas "
                        f"still computing: {busy}. Find out what holds them, let fewer replicas make an "
                        "update (replicas_to_aggregate), or raise step_timeout_seconds."
                    )

    def _is_past(self, step: int) -> bool:
        return self._ended or self._step != step

    def _end(self, error: BaseException | None = None) -> None:
        """Ends all replicas after their current batch; the first error is kept."""
        with self._changed:
            if self._error is None:
                self._error = error
            self._ended = True
            self._tokens.close()
            self._changed.notify_all()

    def _join(self, threads: Sequence[threading.Thread], timeout_seconds: float) -> tuple[int, ...]:
        """Waits for the threads and returns those that are left."""
        deadline = time.monotonic() + timeout_seconds
        for thread in threads:
            if thread.ident is not None:
                thread.join(max(0.0, deadline - time.monotonic()))
        left = tuple(index for index, thread in enumerate(threads) if thread.is_alive())
        for index in left:
            _logger.warning(
                "Replica %d did not come back from its batch within %g s of the stop; it is left behind.",
                index,
                timeout_seconds,
            )
        with self._changed:
            self._released = True
            self._accumulators.release()
        return left
