"""A bounded queue between two threads that either side can end."""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Channel(Generic[Item]):
    """Hands items from one thread to another and carries the end, or the error, after the last of them.

    The standard library's `queue.Queue` cannot wake a thread that is blocked in it before Python 3.13, and
    carries no errors. All waiting here is on a condition: it costs no CPU.

    Args:
        capacity: number of items that may wait; `put` blocks beyond it.
        items: items that are in it from the start.
        last_in_first_out: whether the newest item is taken first.
    """

    def __init__(self, capacity: int, items: Iterable[Item] = (), last_in_first_out: bool = False) -> None:
        self._capacity = capacity
        self._items = collections.deque(items)
        self._take = self._items.pop if last_in_first_out else self._items.popleft
        self._changed = threading.Condition()
        self._finished = False
        self._closed = False
        self._error: BaseException | None = None

    def put(self, item: Item) -> bool:
        """Adds an item, after waiting for room. Returns whether it did: not if the channel is closed."""
        return self.put_made(lambda: item)

    def put_made(self, make: Callable[[], Item]) -> bool:
        """Adds the item that `make` returns; it is called when there is room.

        Neither side can look at the channel between the call and the item's being there, so that a time stamp
        taken in `make` is not earlier than any look at the channel that did not find the item.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._items) < self._capacity)
            if not self._closed:
                self._items.append(make())
                self._changed.notify_all()
            return not self._closed

    def take_if(self, accept: Callable[[Item], bool]) -> Item | None:
        """Takes the oldest item if there is one and it is accepted; else returns None. Does not wait."""
        with self._changed:
            if not self._items or not accept(self._items[0]):
                return None
            item = self._items.popleft()
            self._changed.notify_all()
            return item

    @property
    def is_drained(self) -> bool:
        """Whether no item is left and none will come."""
        with self._changed:
            return not self._items and (self._finished or self._closed)

    def finish(self, error: BaseException | None = None) -> None:
        """Says that no more items come; the reader gets `error`, if any, after the items."""
        with self._changed:
            self._finished, self._error = True, error
            self._changed.notify_all()

    def close(self) -> None:
        """Wakes both sides and ends them at once; items still inside are dropped."""
        with self._changed:
            self._closed = True
            self._items.clear()
            self._changed.notify_all()

    def __iter__(self) -> Iterator[Item]:
        """Yields items until the writer finishes or the channel is closed.

        Raises:
            BaseException: what the writer passed to `finish`, the same object.
        """
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._items or self._finished or self._closed)
                if not self._items:
                    break
                item = self._take()
                self._changed.notify_all()
            yield item
        if self._error is not None and not self._closed:
            raise self._error
