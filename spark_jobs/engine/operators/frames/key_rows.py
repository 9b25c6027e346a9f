"""The rows of some keys, ordered by key and arrival, and the row with which the frame of each row begins."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spark_jobs.engine.index import Ints
from spark_jobs.engine.operators.frames.frame_part import FramePart
from spark_jobs.engine.rows.arrays import distinct_values

__all__ = ["Frame", "KeyRows", "lateness"]

_PAIRS = 4_000_000
"""The largest number of pairs of a row and a row of its frame in memory at once, unless a single frame has more."""
_CODE_BITS = 32
_MINUTE_MS = 60_000


def lateness(milliseconds: int) -> int:
    """Return by how many milliseconds an event may be earlier than its partition's clock.

    For an event within this limit, the state still has all rows of the event's frame.

    Args:
        milliseconds: The length of the frame.
    """
    return max(milliseconds, _MINUTE_MS)


class Frame(NamedTuple):
    """The frames of some rows: for each row, a range of rows that ends with the row itself."""

    row: Ints
    """The rows with frames."""
    start: Ints
    """The first row of each range."""
    least: Ints | None = None
    """The earliest time that a row of each frame may have; None for frames that are not by time."""
    exact: NDArray[np.bool_] | None = None
    """For each range, whether it is exactly the frame. Any other range also has rows whose times are outside the frame.

    None if all ranges are exact.
    """

    def pairs(self, times: Ints) -> Iterator[tuple[slice, Ints, Ints]]:
        """Yield the pairs of a row and a row of its frame, for some rows at a time.

        Args:
            times: The times of all rows.

        Yields:
            A slice of `row`, and the pairs of the rows in this slice: first the place in the slice of each pair's row,
            then each pair's row of the frame. The pairs ascend.
        """
        sizes = self.row - self.start + 1
        total = np.cumsum(sizes)
        first = 0
        while first < sizes.size:
            before = int(total[first - 1]) if first else 0
            last = max(first + 1, int(np.searchsorted(total, before + _PAIRS, side="right")))
            own = sizes[first:last]
            place = np.repeat(np.arange(own.size), own)
            row = np.arange(place.size) + np.repeat(self.start[first:last] - (np.cumsum(own) - own), own)
            if self.exact is not None and self.least is not None and not self.exact[first:last].all():
                of, least = self.row[first:last][place], self.least[first:last][place]
                within = (row == of) | ((times[row] >= least) & (times[row] <= times[of]))
                place, row = place[within], row[within]
            yield slice(first, last), place, row
            first = last


class KeyRows:
    """Rows ordered by key and arrival."""

    def __init__(self, part: FramePart, wanted: Ints) -> None:
        """Take rows.

        Args:
            part: All rows of some keys.
            wanted: The rows that need frames; they must have come after all other rows.
        """
        self.part = part
        self._wanted = wanted
        new = np.append(np.ones(min(part.size, 1), np.bool_), part.numbers[1:] != part.numbers[:-1])
        self._segment = np.cumsum(new) - 1
        self._first = np.flatnonzero(new)
        """The place of each key's first row."""
        self._running: Ints | None = None
        self._levels: Ints = np.empty(0, np.int64)
        self._descents: Ints = np.empty(0, np.int64)

    def by_rows(self, count: int, visible: int) -> Frame:
        """Return frames that contain the row itself and the `count` rows of its key before it.

        Args:
            count: The number of rows before the row itself.
            visible: The offset of the first row that a frame may contain.
        """
        return Frame(self._wanted, np.maximum(self._wanted - count, self._lowest(visible)))

    def before(self, back: int, visible: int) -> tuple[Ints, NDArray[np.bool_]]:
        """Return for each row the row of its key that came `back` rows earlier, and whether there is such a row."""
        found = self._wanted - back
        there = found >= self._lowest(visible)
        return np.where(there, found, 0), there

    def by_time(self, milliseconds: int, clock: Ints, visible: int) -> Frame:
        """Return frames by time, for each row: the rows of its key whose times are in the interval before its own time.

        Args:
            milliseconds: The length of the interval, which ends with the row's own time.
            clock: For each row with a frame, the time of the partition's clock. A frame leaves out the rows that the
                state may have forgotten, because they are much earlier than this time.
            visible: The offset of the first row that a frame may contain.
        """
        self._order_times()
        assert self._running is not None, "set above"
        own = self.part.times[self._wanted]
        least = np.maximum(own - milliseconds, clock - milliseconds - lateness(milliseconds))
        code = self._segment[self._wanted] << _CODE_BITS | np.searchsorted(self._levels, least)
        start = np.searchsorted(self._running, code)
        start = np.minimum(np.maximum(start, self._lowest(visible)), self._wanted)
        exact = self._descents[self._wanted] == self._descents[start]
        # The first row of the range may itself be too old, if a row with a later time came before it.
        exact &= (self.part.times[start] >= least) | (start == self._wanted)
        return Frame(self._wanted, start, least, None if exact.all() else exact)

    @cached_property
    def time_order(self) -> Ints:
        """The rank of each row in the order of times; rows with equal times are in the order of arrival."""
        order = np.empty(self.part.size, np.int64)
        order[np.argsort(self.part.times, kind="stable")] = np.arange(self.part.size)
        return order

    def _lowest(self, visible: int) -> Ints:
        """Return for each frame the first row of the key that it may contain, at the latest the frame's own row."""
        hidden = np.append(0, np.cumsum(self.part.offsets < visible))
        ends = np.append(self._first[1:], self.part.size)
        first = self._first + hidden[ends] - hidden[self._first]
        lowest: Ints = np.minimum(first[self._segment[self._wanted]], self._wanted)
        return lowest

    def _order_times(self) -> None:
        """Number the times in their order, and prepare the search for the first row that may be in a frame.

        A row's code combines its key and its time. Rows that come out of order have codes out of order, but the running
        maximum of the codes is always sorted. A binary search in it finds the first row that may be late enough.
        """
        if self._running is None:
            self._levels = distinct_values(self.part.times)
            codes = self._segment << _CODE_BITS | np.searchsorted(self._levels, self.part.times)
            self._running = np.maximum.accumulate(codes)
            self._descents = np.cumsum(codes < self._running)
