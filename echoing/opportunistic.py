"""Opportunistic batch echo: the last batch is used again only when the next one is not ready."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, TypeVar

from echoing.checks import check_integer, check_number
from echoing.echo_factor import EchoFactor

Element = TypeVar("Element")


class OpportunisticEcho(Generic[Element]):
    """Iterates over `(repeat_index, element)` and fills the gaps between fresh elements with repeats.

    A thread takes the next element from `iterable` while the consumer works. Asked for an element, the echo
    gives the fresh one if it is ready; else one that it kept, if that one may be used again; else it waits.
    So a fresh element never waits behind a repeat, and the first one is always waited for. When the input
    has ended, nothing is repeated any more. An error of the input is raised after the elements before it.

    Length: n elements become between n and floor(n e) of them with e = `max_factor`. Element i may be used
    floor((i + 1) e) - floor(i e) times, as by `echo(e)`; uses that were not needed are not saved up, so that
    a stall repeats no element more often than that. Which uses come to be depends on timing: the order of the
    fresh elements is that of the input, the rest is not reproducible.

    Ask for an element when the device is about to need it. A consumer that runs ahead of the device, such as
    a queue in front of it, asks too soon and gets repeats that would not have been needed.

    Memory: the `keep` last elements and `prefetch` fresh ones. Repeats are the same objects, not copies.

    One thread may iterate. The thread that fetches starts at the first `next` and ends with the input, with
    `close`, or when the echo is garbage-collected. TensorFlow's device and strategy scopes do not reach it.

    Args:
        iterable: gives the elements, such as a `tf.data.Dataset` of batches. It is used from another thread.
        max_factor: how often an element may be used on average at most, e >= 1, as for `echo`.
        prefetch: fresh elements that may be ready or on their way before they are asked for.
        keep: the last elements that may be repeated; above 1 they take turns, so that the repeats of one
            element do not follow each other.
        patience_seconds: how long to wait for the fresh element before repeating another. A millisecond keeps
            Python's switching between threads from costing fresh elements where the input is fast.
        cancel: ends a wait inside the iterable from another thread; `close` calls it. Without it `close`
            has to wait until the iterable has given the element that it is working on.

    Raises:
        OptionError: an option is not allowed.
    """

    def __init__(
        self,
        iterable: Iterable[Element],
        max_factor: object,
        *,
        prefetch: int = 1,
        keep: int = 1,
        patience_seconds: float = 0.0,
        cancel: Callable[[], None] | None = None,
    ) -> None:
        self._max_factor = EchoFactor.parse(max_factor)
        check_integer("prefetch", prefetch, minimum=1)
        check_integer("keep", keep, minimum=1)
        self._patience_seconds = check_number("patience_seconds", patience_seconds, minimum=0)
        self._kept: deque[_Kept[Element]] = deque(maxlen=keep)
        self._fetcher = _Fetcher(iterable, prefetch, cancel)
        # The thread knows the fetcher alone, so that dropping the echo ends it.
        self._finalizer = weakref.finalize(self, self._fetcher.stop)
        self._fresh = 0
        self._repeated = 0

    @property
    def fresh(self) -> int:
        """Fresh elements given so far."""
        return self._fresh

    @property
    def repeated(self) -> int:
        """Repeats given so far."""
        return self._repeated

    def __iter__(self) -> Iterator[tuple[int, Element]]:
        """Returns itself: it can be iterated over once."""
        return self

    def __next__(self) -> tuple[int, Element]:
        """Returns the next `(repeat_index, element)`; the index is 0 for a fresh element.

        Raises:
            StopIteration: the input has ended or the echo is closed.
            BaseException: the error of the input, the same object, once.
        """
        candidate = next((kept for kept in self._kept if kept.uses < kept.max_uses), None)
        timeout_seconds = None if candidate is None else self._patience_seconds
        ready = self._fetcher.take(timeout_seconds)
        if ready is None:
            assert candidate is not None  # without one, `take` waits
            return self._repeat(candidate)
        outputs_of = self._max_factor.outputs_of
        max_uses = outputs_of(self._fresh + 1) - outputs_of(self._fresh)
        self._kept.append(_Kept(ready[0], max_uses))
        self._fresh += 1
        return 0, ready[0]

    def _repeat(self, kept: _Kept[Element]) -> tuple[int, Element]:
        # To the end of the queue, so that all take turns.
        self._kept.remove(kept)
        self._kept.append(kept)
        kept.uses += 1
        self._repeated += 1
        return kept.uses - 1, kept.element

    def close(self) -> None:
        """Ends the thread and drops what is held; waits for the thread. Closing twice does nothing."""
        self._finalizer()
        self._fetcher.join()
        self._kept.clear()

    def __enter__(self) -> OpportunisticEcho[Element]:
        """Returns itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Closes it."""
        self.close()


@dataclass(eq=False)
class _Kept(Generic[Element]):
    """An element that may be repeated."""

    element: Element
    max_uses: int
    uses: int = 1


class _Fetcher(Generic[Element]):
    """Takes elements from an iterable in its own thread, a bounded number ahead."""

    def __init__(self, iterable: Iterable[Element], ahead: int, cancel: Callable[[], None] | None) -> None:
        self._iterable: Any = iterable
        self._ahead = ahead
        self._cancel = cancel
        self._ready: deque[Element] = deque()
        self._error: BaseException | None = None
        self._has_ended = False
        self._is_stopped = False
        # A re-entrant lock: a garbage collection inside a locked part may call `stop` in the same thread.
        self._changed = threading.Condition(threading.RLock())
        self._thread: threading.Thread | None = None

    def take(self, timeout_seconds: float | None) -> tuple[Element] | None:
        """Returns the next element in a tuple, or None if there is none after the timeout.

        Args:
            timeout_seconds: how long to wait for it; None waits for ever.

        Raises:
            StopIteration: there will be none.
            BaseException: the iterable's error.
        """
        with self._changed:
            if self._thread is None and not self._is_stopped:
                self._thread = threading.Thread(target=self._run, name="pipebench-echo", daemon=True)
                self._thread.start()
            self._changed.wait_for(lambda: self._ready or self._has_ended, timeout_seconds)
            if self._ready:
                element = self._ready.popleft()
                self._changed.notify_all()
                return (element,)
            if not self._has_ended:
                return None
            error, self._error = self._error, None
        if error is not None:
            raise error
        raise StopIteration

    def stop(self) -> None:
        with self._changed:
            self._is_stopped = self._has_ended = True
            self._ready.clear()
            self._error = None
            self._changed.notify_all()
        if self._cancel is not None and self._thread is not None and self._thread.is_alive():
            self._cancel()

    def join(self) -> None:
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        error: BaseException | None = None
        iterator: Any = None
        try:
            iterator = iter(self._iterable)
            self._iterable = None
            while self._wait_for_room():
                try:
                    element = next(iterator)
                except StopIteration:
                    break
                with self._changed:
                    if self._is_stopped:
                        break
                    self._ready.append(element)
                    self._changed.notify_all()
                # What waits for room must not hold on to the element.
                del element
            # A generator is closed by the thread that ran it.
            if hasattr(iterator, "close"):
                iterator.close()
        except BaseException as raised:  # every kind is raised again, in the consumer's thread
            error = raised
        with self._changed:
            if not self._is_stopped:
                self._error, self._has_ended = error, True
            self._changed.notify_all()

    def _wait_for_room(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._is_stopped or len(self._ready) < self._ahead)
            return not self._is_stopped
