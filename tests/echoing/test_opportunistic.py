"""Opportunistic echo, against a source that gives an element when the test says so."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from echoing.errors import OptionError
from echoing.opportunistic import OpportunisticEcho

PATIENT_SECONDS = 30  # for what happens at once unless the code hangs


class Source:
    """Gives `elements`, each once it is released, and so the end; an exception among them is raised."""

    def __init__(self, elements):
        self.elements = elements
        self.permits = threading.Semaphore(0)
        self.asked = 0
        self.is_cancelled = False
        self.closed_by = None

    def __iter__(self):
        try:
            for element in [*self.elements, StopIteration]:
                self.asked += 1
                assert self.permits.acquire(timeout=PATIENT_SECONDS)
                if self.is_cancelled:
                    raise RuntimeError("cancelled")
                if element is StopIteration:
                    return
                if isinstance(element, BaseException):
                    raise element
                yield element
        finally:
            self.closed_by = threading.current_thread()

    def release(self, count=1):
        self.permits.release(count)

    def cancel(self):
        self.is_cancelled = True
        self.release()


def until(echo, condition):
    fetcher = echo._fetcher
    with fetcher._changed:
        assert fetcher._changed.wait_for(lambda: condition(fetcher), PATIENT_SECONDS)


def opened(source, max_factor, **options):
    return OpportunisticEcho(source, max_factor, cancel=source.cancel, **options)


def end(echo, source):
    source.release()
    until(echo, lambda fetcher: fetcher._has_ended)


def next_fresh(echo, source):
    """Releases an element, lets it become ready, and takes what the echo gives."""
    source.release()
    if echo._fetcher._thread is not None:
        until(echo, lambda fetcher: fetcher._ready or fetcher._has_ended)
    return next(echo)


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "pipebench-echo"]


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    for thread in threads():
        thread.join(PATIENT_SECONDS)
    assert not threads()


# --- what is given -----------------------------------------------------------------------------------------


def test_fresh_elements_that_are_ready_are_never_repeated():
    source = Source("abc")
    with opened(source, 5) as echo:
        assert [next_fresh(echo, source) for _ in "abc"] == [(0, "a"), (0, "b"), (0, "c")]
        assert (echo.fresh, echo.repeated) == (3, 0)


def test_element_is_repeated_while_the_next_is_not_ready_and_the_fresh_one_goes_first_once_it_is():
    source = Source("ab")
    with opened(source, 10) as echo:
        assert next_fresh(echo, source) == (0, "a")
        assert [next(echo), next(echo)] == [(1, "a"), (2, "a")]
        assert next_fresh(echo, source) == (0, "b")
        end(echo, source)
        with pytest.raises(StopIteration):
            next(echo)
        assert (echo.fresh, echo.repeated) == (2, 2)


def test_used_up_element_makes_the_consumer_wait_for_the_fresh_one():
    source = Source("ab")
    with opened(source, 2) as echo:
        assert next_fresh(echo, source) == (0, "a")
        assert next(echo) == (1, "a")
        answers = []
        consumer = threading.Thread(target=lambda: answers.append(next(echo)))
        consumer.start()
        consumer.join(0.05)
        assert answers == []
        source.release()
        consumer.join(PATIENT_SECONDS)
        assert answers == [(0, "b")]


@pytest.mark.parametrize(
    ("factor", "uses"), [(1, [1, 1, 1, 1]), (1.5, [1, 2, 1, 2]), (2.25, [2, 2, 2, 3]), (3, [3, 3, 3, 3])]
)
def test_uses_of_each_element_are_bounded_as_in_an_echo_and_not_saved_up(factor, uses):
    source = Source([0, 1, 2, 3])
    given_elements = []
    with opened(source, factor) as echo:
        for most in uses:
            given_elements.append(next_fresh(echo, source))
            given_elements += [next(echo) for _ in range(most - 1)]
            assert all(kept.uses == kept.max_uses for kept in echo._kept)
        end(echo, source)
        assert list(echo) == []
    assert given_elements == [(repeat, element) for element in range(4) for repeat in range(uses[element])]


def test_kept_elements_take_turns_within_their_own_bounds():
    source = Source("abcd")
    with opened(source, 3, keep=2) as echo:
        assert [next_fresh(echo, source) for _ in "abc"] == [(0, "a"), (0, "b"), (0, "c")]
        assert [next(echo) for _ in range(4)] == [(1, "b"), (1, "c"), (2, "b"), (2, "c")]
        assert next_fresh(echo, source) == (0, "d")


def test_patience_waits_for_a_fresh_element_that_comes_in_time():
    source = Source("ab")
    with opened(source, 9, patience_seconds=PATIENT_SECONDS) as echo:
        assert next_fresh(echo, source) == (0, "a")
        answers = []
        consumer = threading.Thread(target=lambda: answers.append(next(echo)))
        consumer.start()
        source.release()
        consumer.join(PATIENT_SECONDS)
        assert answers == [(0, "b")]


def test_patience_that_runs_out_repeats():
    source = Source("ab")
    with opened(source, 9, patience_seconds=0.001) as echo:
        assert next_fresh(echo, source) == (0, "a")
        assert next(echo) == (1, "a")


def test_repeat_is_the_same_object():
    source = Source([np.zeros(3)])
    with opened(source, 2) as echo:
        fresh = next_fresh(echo, source)[1]
        repeat_index, repeated = next(echo)
        assert repeat_index == 1
        assert repeated is fresh


# --- fetching ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prefetch", [1, 3])
def test_fetching_runs_at_most_prefetch_elements_ahead(prefetch):
    source = Source(range(20))
    source.release(20)
    with opened(source, 1, prefetch=prefetch) as echo:
        assert source.asked == 0
        for taken in range(1, 6):
            next(echo)
            until(echo, lambda fetcher: len(fetcher._ready) == prefetch)
            assert source.asked == taken + prefetch


def test_empty_input_ends_at_once():
    with OpportunisticEcho([], 3) as echo:
        assert list(echo) == []


def test_input_without_a_truth_value_is_iterated():
    with OpportunisticEcho(np.arange(3), 1) as echo:
        assert [element for _, element in echo] == [0, 1, 2]


def test_error_is_raised_after_the_elements_before_it_and_once():
    error = ValueError("broken shard")
    source = Source(["a", "b", error])
    source.release(3)
    with opened(source, 1, prefetch=5) as echo:
        first = next(echo)
        until(echo, lambda fetcher: fetcher._has_ended)
        assert [first, next(echo)] == [(0, "a"), (0, "b")]
        with pytest.raises(ValueError, match="broken shard") as raised:
            next(echo)
        assert raised.value is error
        assert list(echo) == []


def test_error_on_opening_the_input_reaches_the_consumer():
    with OpportunisticEcho(42, 2) as echo, pytest.raises(TypeError, match="not iterable"):
        next(echo)


def test_nothing_is_repeated_once_the_input_has_failed():
    source = Source(["a", ValueError("broken")])
    source.release(2)
    with opened(source, 100) as echo:
        assert next(echo) == (0, "a")
        until(echo, lambda fetcher: fetcher._has_ended)
        with pytest.raises(ValueError, match="broken"):
            next(echo)


def test_batches_of_tf_data_pass_unchanged_and_in_order():
    dataset = tf.data.Dataset.range(10).batch(2)
    with OpportunisticEcho(dataset, 3) as echo:
        uses = [(repeat, element.numpy().tolist()) for repeat, element in echo]
    fresh = [element for repeat, element in uses if repeat == 0]
    assert fresh == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]
    assert len(uses) <= 15


# --- ending ------------------------------------------------------------------------------------------------


def test_close_ends_the_thread_and_the_iteration_and_closes_the_generator_in_its_thread():
    source = Source(range(5))
    source.release(2)
    echo = opened(source, 2)
    next(echo)
    until(echo, lambda fetcher: fetcher._ready)
    fetching = echo._fetcher._thread
    echo.close()
    assert not fetching.is_alive()
    assert source.closed_by is fetching
    assert list(echo) == []
    echo.close()


def test_close_before_the_first_element_starts_nothing():
    source = Source("a")
    echo = opened(source, 2)
    echo.close()
    assert list(echo) == []
    assert (source.asked, source.is_cancelled) == (0, False)


def test_close_cancels_an_input_that_is_waiting():
    source = Source("ab")
    echo = opened(source, 2)
    assert next_fresh(echo, source) == (0, "a")
    echo.close()
    assert source.is_cancelled
    assert list(echo) == []


def test_close_wakes_a_consumer_that_is_waiting():
    source = Source("ab")
    echo = opened(source, 1)
    assert next_fresh(echo, source) == (0, "a")
    rest = []
    consumer = threading.Thread(target=lambda: rest.append(list(echo)))
    consumer.start()
    echo.close()
    consumer.join(PATIENT_SECONDS)
    assert rest == [[]]


def test_leaving_the_block_by_an_error_ends_the_thread():
    source = Source(range(5))
    source.release(5)
    with pytest.raises(KeyError), opened(source, 2) as echo:
        next(echo)
        raise KeyError
    assert not threads()


def test_dropping_the_echo_ends_the_thread_and_frees_the_elements():
    class Batch:
        pass

    source = Source([Batch(), Batch(), Batch()])
    references = [weakref.ref(batch) for batch in source.elements]
    source.release(3)
    echo = OpportunisticEcho(iter(source), 2)
    next(echo)
    until(echo, lambda fetcher: fetcher._ready)
    fetching = echo._fetcher._thread
    source.elements = []
    del echo
    gc.collect()
    fetching.join(PATIENT_SECONDS)
    assert not fetching.is_alive()
    del source
    gc.collect()
    assert [reference() for reference in references] == [None, None, None]


# --- law ---------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=40)
@given(
    requests=st.lists(st.integers(0, 5), min_size=1, max_size=8),
    factor=st.decimals(1, 5, places=2),
    keep=st.integers(1, 3),
)
def test_fresh_elements_keep_their_order_and_the_total_stays_within_the_factor(requests, factor, keep):
    source = Source(range(len(requests)))
    uses = []
    with opened(source, factor, keep=keep) as echo:
        for extra in requests:
            uses.append(next_fresh(echo, source))
            for _ in range(extra):
                if any(kept.uses < kept.max_uses for kept in echo._kept):
                    uses.append(next(echo))
            assert len(uses) <= factor * echo.fresh
        end(echo, source)
        assert list(echo) == []
    assert [element for repeat, element in uses if repeat == 0] == list(range(len(requests)))
    for element in range(len(requests)):
        repeats = [repeat for repeat, used in uses if used == element]
        assert repeats == list(range(len(repeats)))


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"max_factor": 0.5}, "echo_factor"),
        ({"max_factor": float("nan")}, "echo_factor"),
        ({"max_factor": 2, "prefetch": 0}, "prefetch"),
        ({"max_factor": 2, "keep": 0}, "keep"),
        ({"max_factor": 2, "patience_seconds": -1}, "patience_seconds"),
    ],
)
def test_option_out_of_range_is_refused_by_name(options, name):
    with pytest.raises(OptionError, match=f"^{name} is "):
        OpportunisticEcho([], **options)
