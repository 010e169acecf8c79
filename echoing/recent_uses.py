"""A bounded memory from example ids to where they were used last, for whole batches at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

Integers = np.ndarray[Any, np.dtype[np.int64]]

MISSING = -1
"""Value of an id that is not remembered."""

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""2**64 divided by the golden ratio, odd: Fibonacci hashing (Knuth, TAOCP 3, section 6.4), which spreads
consecutive ids as well as ids in which only the upper half differs."""

_INITIAL_BITS = 10


class RecentUses:
    """Maps ids to one integer >= 0 each and forgets ids that were not stored for a while.

    Two generations of a hash table: the newer one takes what is stored, the older one is only read. Dropping
    the older one forgets many ids at once without looking at any, so that a call costs time in proportion to
    its ids, amortised over the growth of the tables. A slot takes 16 bytes, and a table has fewer than 4
    slots an id.
    """

    def __init__(self) -> None:
        self._newer = _Table()
        self._older = _Table()

    def get(self, ids: Integers) -> Integers:
        """Returns the values of `ids`, `MISSING` where an id is not remembered. Shapes `[ids]`."""
        values = self._newer.get(ids)
        unknown = np.flatnonzero(values == MISSING)
        if unknown.size and self._older.count:
            values[unknown] = self._older.get(ids[unknown])
        return values

    def set(self, ids: Integers, values: Integers) -> None:
        """Stores a value >= 0 for each id; the ids must differ from each other. Shapes `[ids]`."""
        self._newer.set(ids, values)

    def start_generation(self) -> None:
        """Forgets every id that was not stored since the last call of this method."""
        self._newer, self._older = self._older, self._newer
        self._newer.clear()

    def count_from(self, least_value: int) -> int:
        """Returns how many ids have a value of at least `least_value`; takes time in proportion to all."""
        newer = self._newer.values[self._newer.values >= least_value]
        candidates = self._older.keys[self._older.values >= max(least_value, 0)]
        return newer.size + int(np.count_nonzero(self._newer.get(candidates) == MISSING))


class _Table:
    """Open addressing with linear probing, at most half full; every step is taken for all ids at once."""

    def __init__(self) -> None:
        self._allocate(_INITIAL_BITS)

    def _allocate(self, bits: int) -> None:
        self._bits = bits
        self.count = 0
        self.keys: Integers = np.zeros(1 << bits, np.int64)
        self.values: Integers = np.full(1 << bits, MISSING, np.int64)

    def clear(self) -> None:
        # The arrays stay: the next generation needs about as much.
        self.values.fill(MISSING)
        self.count = 0

    def get(self, ids: Integers) -> Integers:
        return self.values[self._slots(ids)]

    def set(self, ids: Integers, values: Integers) -> None:
        self._reserve(ids.size)
        while ids.size:
            slots = self._slots(ids)
            is_new = self.values[slots] == MISSING
            self.keys[slots] = ids
            # Of several new ids that found the same empty slot, one has it now.
            won = self.keys[slots] == ids
            self.values[slots[won]] = values[won]
            self.count += int(np.count_nonzero(is_new & won))
            ids, values = ids[~won], values[~won]

    def _slots(self, ids: Integers) -> Integers:
        """Returns for each id the slot that holds it, or the empty one where it belongs."""
        hashes = (ids.view(np.uint64) * _MULTIPLIER) >> np.uint64(64 - self._bits)
        slots = hashes.astype(np.int64)
        searching = np.arange(ids.size)
        while searching.size:
            candidates = slots[searching]
            occupied = self.values[candidates] != MISSING
            other = occupied & (self.keys[candidates] != ids[searching])
            searching = searching[other]
            slots[searching] = (slots[searching] + 1) & (self.keys.size - 1)
        return slots

    def _reserve(self, more: int) -> None:
        bits = self._bits
        while 2 * (self.count + more) > 1 << bits:
            bits += 1
        if bits > self._bits:
            kept = self.values != MISSING
            keys, values = self.keys[kept], self.values[kept]
            self._allocate(bits)
            self.set(keys, values)
