"""A conductor who decides when each replica's batch is done, on a clock that is not the wall's."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import tensorflow as tf

from trainer.optimizers import GradientDescent
from trainer.sync_replicas import Push, ReplicaPlan, ReplicaReport, SyncReplicas

PATIENCE_SECONDS = 60


class Conductor:
    """Lets replica threads run in the order of virtual time; a batch of replica r takes `durations[r]`.

    The threads are real and so is everything that they call; only the end of each batch is decided here. A
    batch that ends is let through alone, up to where its replica begins another one or waits for a token.
    Which of the two it will be follows from the rule of the tokens, counted here once more.

    Attributes:
        pushes: what came in, in order.
        update_times: virtual time of each update.
        report: of the run.
        weight: the variable that was trained: it begins at 0, and a gradient of replica r is `-(2 ** r)`.
    """

    def __init__(self, plan: ReplicaPlan, durations: Sequence[int], steps: int) -> None:
        self.pushes: list[Push] = []
        self.update_times: list[int] = []
        self.weight = tf.Variable(0.0)
        self._plan, self._durations, self._steps = plan, durations, steps
        self._begun: list[Any] = [threading.Semaphore(0) for _ in durations]
        self._may_end: list[Any] = [threading.Semaphore(0) for _ in durations]
        self._come: queue.Queue[Push] = queue.Queue()
        self._reports: queue.Queue[ReplicaReport] = queue.Queue()
        owners = len(durations) if plan.own_tokens else 1
        self._tokens = [0] * owners
        self._deal(plan.tokens_at_start)
        self._conduct()

    def _conduct(self) -> None:
        trainer = SyncReplicas(self._plan, [self.weight], GradientDescent([self.weight]), learning_rate=1.0)
        replicas = [self._gradient_function(replica) for replica in range(len(self._durations))]
        thread = threading.Thread(
            target=lambda: self._reports.put(trainer.run(replicas, self._steps, on_push=self._come.put)),
            daemon=True,
        )
        thread.start()
        ends = dict(enumerate(self._durations))
        self._await_begin(ends)
        while len(self.update_times) < self._steps:
            # Of those that end at the same time the lower number goes first.
            replica = min(ends, key=lambda one: (ends[one], one))
            now = ends.pop(replica)
            push = self._let_through(replica)
            freed = [replica]
            if push.updated:
                self.update_times.append(now)
                if len(self.update_times) == self._steps:
                    break
                # Those that wait are served first.
                freed = [one for one in range(len(self._durations)) if one not in ends and one != replica]
                freed.append(replica)
                self._tokens = [0] * len(self._tokens)
                self._deal(self._plan.tokens_per_step)
            begun = {one: now + self._durations[one] for one in freed if self._takes_token(one)}
            self._await_begin(begun)
            ends |= begun
        for replica in sorted(ends):
            self._let_through(replica)
        self.report = self._reports.get(timeout=PATIENCE_SECONDS)
        thread.join(PATIENCE_SECONDS)

    def _deal(self, tokens: int) -> None:
        for token in range(tokens):
            self._tokens[token % len(self._tokens)] += 1

    def _takes_token(self, replica: int) -> bool:
        owner = replica % len(self._tokens)
        if not self._tokens[owner]:
            return False
        self._tokens[owner] -= 1
        return True

    def _let_through(self, replica: int) -> Push:
        self._may_end[replica].release()
        push = self._come.get(timeout=PATIENCE_SECONDS)
        assert push.replica == replica
        self.pushes.append(push)
        return push

    def _await_begin(self, replicas: Any) -> None:
        for replica in replicas:
            assert self._begun[replica].acquire(timeout=PATIENCE_SECONDS), f"replica {replica} got no token"

    def _gradient_function(self, replica: int) -> Callable[[int], list[Any]]:
        def gradients(step: int) -> list[Any]:
            self._begun[replica].release()
            assert self._may_end[replica].acquire(timeout=PATIENCE_SECONDS)
            return [tf.constant(-(2.0**replica))]

        return gradients


@pytest.fixture
def conduct() -> Callable[..., Conductor]:
    """Returns a function that runs replicas of given durations: `conduct(plan, durations, steps)`."""
    return Conductor
