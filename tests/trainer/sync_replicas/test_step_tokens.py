"""The queues of tokens."""

from __future__ import annotations

import queue
import threading

import pytest

from trainer.sync_replicas.step_tokens import StepTokens


def test_shared_tokens_go_to_whoever_takes_them_in_order():
    tokens = StepTokens(replicas=2, own=False)
    tokens.put(5, count=3)
    tokens.put(6, count=1)
    assert [tokens.take(1), tokens.take(1), tokens.take(0), tokens.take(1)] == [5, 5, 5, 6]


def test_own_tokens_are_dealt_in_turn():
    tokens = StepTokens(replicas=2, own=True)
    tokens.put(5, count=2)
    tokens.put(6, count=3)  # two for replica 0
    assert [tokens.take(0) for _ in range(3)] == [5, 6, 6]
    assert [tokens.take(1) for _ in range(2)] == [5, 6]


@pytest.mark.parametrize("own", [True, False])
def test_closing_wakes_those_who_wait_and_drops_what_is_left(own):
    tokens = StepTokens(replicas=2, own=own)
    taken: queue.Queue[int | None] = queue.Queue()
    waiting = threading.Thread(target=lambda: taken.put(tokens.take(0)), daemon=True)
    waiting.start()
    tokens.close()
    assert taken.get(timeout=60) is None
    waiting.join(60)


def test_no_token_is_given_out_after_the_end():
    tokens = StepTokens(replicas=1, own=True)
    tokens.put(0, count=2)
    tokens.close()
    assert tokens.take(0) is None
