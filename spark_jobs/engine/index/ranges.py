"""Runs of rows, one for each event: the result of a look-up in an index over sorted rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spark_jobs.engine.rows.arrays import Ints

__all__ = ["Ints", "Pairs", "Ranges", "chunks"]

Pairs = tuple[NDArray[np.intp], NDArray[np.int32]]
"""Pairs of an event and a row: the positions of the events, and the numbers of the rows at the same places."""


@dataclass(frozen=True, slots=True)
class Ranges:
    """For each event, the run `rows[first:last]`; the run is empty if `last <= first`."""

    rows: NDArray[np.int32]
    """Rows in the order of the index."""
    first: Ints
    last: Ints

    def __getitem__(self, part: slice) -> Ranges:
        return Ranges(self.rows, self.first[part], self.last[part])

    def counts(self) -> Ints:
        """Return the number of rows of each event."""
        counts: Ints = np.maximum(self.last - self.first, 0)
        return counts

    def pairs(self, limit: int) -> Iterator[Pairs]:
        """Yield all pairs, at most `limit` at a time, unless a single event has more rows."""
        counts = self.counts()
        if counts.size and int(counts.max()) <= 1:
            events = np.flatnonzero(counts)
            yield events, self.rows[self.first[events]]
            return
        hit = np.flatnonzero(counts)
        for part in chunks(counts[hit], limit):
            events = hit[part]
            length = counts[events]
            before = np.cumsum(length) - length
            offsets = np.arange(int(length.sum())) + np.repeat(self.first[events] - before, length)
            yield np.repeat(events, length), self.rows[offsets]

    def any(self, alive_before: Ints | None) -> NDArray[np.bool_]:
        """Tell which events have a row that is alive, without making pairs.

        Args:
            alive_before: At index i, the number of rows in `rows[:i]` that are alive; None if all rows are.
        """
        if alive_before is None:
            return self.last > self.first
        last = np.maximum(self.last, self.first)
        found: NDArray[np.bool_] = alive_before[last] > alive_before[self.first]
        return found


def chunks(counts: Ints, limit: int) -> Iterator[slice]:
    """Yield slices of events whose counts add up to at most `limit`; an event with a larger count has its own slice."""
    total = np.cumsum(counts)
    start = 0
    while start < counts.size:
        before = int(total[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(total, before + limit, side="right")))
        yield slice(start, end)
        start = end
