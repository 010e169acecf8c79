"""The barrier between two steps: a replica goes on when it has a token."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf


class StepTokens:
    """Queues of tokens; a token is the number of the step that it lets one batch be computed for.

    Waiting is inside TensorFlow's queue, without the GIL and without CPU time.

    Args:
        replicas: number of replicas that take tokens.
        own: whether each replica has a queue of its own; otherwise there is one for all, and who waits
            longest is served first.
    """

    def __init__(self, replicas: int, own: bool) -> None:
        # No capacity: putting must never wait, for it is done under the lock of the run.
        self._queues: list[Any] = [
            tf.queue.FIFOQueue(-1, tf.int64, shapes=()) for _ in range(replicas if own else 1)
        ]
        self._closed = False

    def put(self, step: int, count: int) -> None:
        """Adds `count` tokens of a step, dealt to the queues in turn."""
        for index, queue in enumerate(self._queues):
            tokens = len(range(index, count, len(self._queues)))
            if tokens:
                queue.enqueue_many(np.full(tokens, step, np.int64))

    def take(self, replica: int) -> int | None:
        """Waits for a token of a replica and returns it; None once the queues are closed."""
        try:
            token = int(self._queues[replica % len(self._queues)].dequeue())
        except (tf.errors.OutOfRangeError, tf.errors.CancelledError):
            return None
        return None if self._closed else token

    def close(self) -> None:
        """Wakes everyone who waits; nobody gets a token any more."""
        self._closed = True
        for queue in self._queues:
            queue.close(cancel_pending_enqueues=True)
