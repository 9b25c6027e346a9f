"""The rows of some keys one after the other, each key's by arrival; and where the frame of each row begins."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spark_jobs.engine.index import Ints
from spark_jobs.engine.operators.frames.frame_part import FramePart

__all__ = ["Frame", "KeyRows", "lateness"]

_PAIRS = 4_000_000
"""Pairs of a row and a row of its frame that are made at once, unless one frame has more."""
_CODE_BITS = 32
_MINUTE_MS = 60_000


def lateness(milliseconds: int) -> int:
    """Return how far an event may be behind its partition's clock, for its frame to hold all of its rows.

    Args:
        milliseconds: The length of the frame.
    """
    return max(milliseconds, _MINUTE_MS)


class Frame(NamedTuple):
    """The frames of the rows that are asked for: by row, a range of rows that ends with the row itself."""

    row: Ints
    """The rows that are asked for."""
    start: Ints
    """The first row of each range."""
    least: Ints | None = None
    """By row, the least time in its frame; None where each range is the frame."""
    exact: NDArray[np.bool_] | None = None
    """Whether the range is the frame; else rows of other times are to be left out. None where all are."""

    def pairs(self, times: Ints) -> Iterator[tuple[slice, Ints, Ints]]:
        """Yield frames row by row, some at a time.

        Args:
            times: The times of all rows.

        Yields:
            A slice of the rows that are asked for; and pairs of a place in the slice and a row of its frame, ascending.
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

    def __init__(self, part: FramePart, asked: Ints) -> None:
        """Take rows.

        Args:
            part: All rows of some keys.
            asked: The rows that came last, for which frames are asked.
        """
        self.part = part
        self._asked = asked
        new = np.append(np.ones(min(part.size, 1), np.bool_), part.numbers[1:] != part.numbers[:-1])
        self._segment = np.cumsum(new) - 1
        self._first = np.flatnonzero(new)
        """By key, its first row."""
        self._running: Ints | None = None
        self._levels: Ints = np.empty(0, np.int64)
        self._descents: Ints = np.empty(0, np.int64)

    def by_rows(self, count: int, visible: int) -> Frame:
        """Return frames of the row and some rows before it.

        Args:
            count: How many rows before.
            visible: The offset of the first row that counts.
        """
        return Frame(self._asked, np.maximum(self._asked - count, self._lowest(visible)))

    def before(self, back: int, visible: int) -> tuple[Ints, NDArray[np.bool_]]:
        """Return the row some rows before each row, and whether there is one."""
        found = self._asked - back
        there = found >= self._lowest(visible)
        return np.where(there, found, 0), there

    def by_time(self, milliseconds: int, clock: Ints, visible: int) -> Frame:
        """Return frames of the rows with times from the own time less a length up to the own time.

        Args:
            milliseconds: The length.
            clock: By row that is asked for, the partition's clock; rows far behind it are forgotten.
            visible: The offset of the first row that counts.
        """
        self._order_times()
        assert self._running is not None, "set above"
        own = self.part.times[self._asked]
        least = np.maximum(own - milliseconds, clock - milliseconds - lateness(milliseconds))
        code = self._segment[self._asked] << _CODE_BITS | np.searchsorted(self._levels, least)
        start = np.searchsorted(self._running, code)
        start = np.minimum(np.maximum(start, self._lowest(visible)), self._asked)
        exact = self._descents[self._asked] == self._descents[start]
        # The first row of a range may be behind a later time of its key's earlier rows.
        exact &= (self.part.times[start] >= least) | (start == self._asked)
        return Frame(self._asked, start, least, None if exact.all() else exact)

    @cached_property
    def time_order(self) -> Ints:
        """The place of each row in the order of times, rows of one time by arrival."""
        order = np.empty(self.part.size, np.int64)
        order[np.argsort(self.part.times, kind="stable")] = np.arange(self.part.size)
        return order

    def _lowest(self, visible: int) -> Ints:
        """Return for each row that is asked for the first row of its key that counts; the row itself counts."""
        hidden = np.append(0, np.cumsum(self.part.offsets < visible))
        ends = np.append(self._first[1:], self.part.size)
        first = self._first + hidden[ends] - hidden[self._first]
        lowest: Ints = np.minimum(first[self._segment[self._asked]], self._asked)
        return lowest

    def _order_times(self) -> None:
        """Number the times: a running maximum of key and time finds the first row that may be in a frame."""
        if self._running is None:
            self._levels = np.unique(self.part.times)
            codes = self._segment << _CODE_BITS | np.searchsorted(self._levels, self.part.times)
            self._running = np.maximum.accumulate(codes)
            self._descents = np.cumsum(codes < self._running)
