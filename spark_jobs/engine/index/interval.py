"""The index for two bounds on a column: the intervals that contain a value, by nested containment lists (ncls)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from ncls import NCLS
from numpy.typing import NDArray

from spark_jobs.engine.index.ordered import search
from spark_jobs.engine.index.ranges import Ints, Pairs, chunks
from spark_jobs.engine.rows.arrays import distinct_values

__all__ = ["IntervalIndex", "ContainingIntervals"]


class IntervalIndex:
    """The constant rows of ``column >(=) :c0 AND column <(=) :c1``.

    If the path also has an equality key, each row has a code. Bounds are replaced by ranks: bound number i (from 0) of
    k distinct bounds has the rank 2i + 1, and values between two bounds have the even rank between the bounds' ranks.
    So every interval, with open or closed ends, is a half-open interval of ranks, even if a bound is the least or
    greatest int64. If rows have codes, each code has 2k + 1 ranks of its own.
    """

    def __init__(
        self,
        ops: tuple[str, str],
        low: Ints,
        high: Ints,
        rows: NDArray[np.int32],
        codes: NDArray[np.int32] | None = None,
    ) -> None:
        """Index rows by their intervals.

        Args:
            ops: ``>`` or ``>=``, and ``<`` or ``<=``; the column is on the left.
            low: The lower bounds.
            high: The upper bounds.
            rows: The rows' numbers.
            codes: The code of each row; None without an equality key.
        """
        self._bounds = distinct_values(np.concatenate((low, high)))
        self._span = 2 * self._bounds.size + 1
        starts = 2 * np.searchsorted(self._bounds, low) + (1 if ops[0] == ">=" else 2)
        ends = 2 * np.searchsorted(self._bounds, high) + (2 if ops[1] == "<=" else 1)
        kept = np.flatnonzero(starts < ends)
        starts, ends, self.rows = starts[kept], ends[kept], rows[kept]
        if codes is not None:
            offsets = codes[kept].astype(np.int64) * self._span
            starts, ends = starts + offsets, ends + offsets
        # Ranks below 2^31 - 1 take half the memory.
        top = int(ends.max()) if ends.size else 0
        kind = np.int32 if top < np.iinfo(np.int32).max else np.int64
        self._starts, self._ends = starts.astype(kind), ends.astype(kind)
        self._sorted: tuple[int, NDArray[np.signedinteger], NDArray[np.signedinteger]] | None = None
        self._lists = NCLS(self._starts, self._ends, self.rows) if kept.size else None

    def ranks(self, values: Ints, order: NDArray[np.intp] | None = None) -> Ints:
        """Return the ranks of values; `order` is as in `search`."""
        left = search(self._bounds, values, right=False, order=order)
        inside = np.minimum(left, self._bounds.size - 1)
        return 2 * left + (self._bounds[inside] == values if self._bounds.size else 0)

    def at(self, ranks: Ints, codes: NDArray[np.int32] | None = None) -> ContainingIntervals:
        """Return the intervals that contain each event's value.

        Args:
            ranks: The rank of each event's value.
            codes: For each event, its code; an event with the code -1 is in no interval.
        """
        if codes is not None:
            ranks = np.where(codes >= 0, ranks + codes.astype(np.int64) * self._span, -1)
        return ContainingIntervals(self, ranks)

    def stab(self, ranks: Ints, events: Ints) -> Pairs:
        """Return all pairs of an event and a row whose interval contains the event's rank."""
        if self._lists is None:
            return np.empty(0, np.intp), np.empty(0, np.int32)
        ranks = ranks.astype(self._starts.dtype, copy=False)
        found, rows = self._lists.all_overlaps_both(ranks, ranks + 1, events)
        return found, rows.astype(np.int32)

    def counts(
        self, ranks: Ints, order: NDArray[np.intp], alive: NDArray[np.bool_] | None = None, version: int = 0
    ) -> Ints:
        """Return the number of intervals that contain each rank.

        This is the number of intervals that begin at or below the rank, less the number that end at or below it.

        Args:
            ranks: The result of the method `ranks`, with the offset of the event's code added.
            order: The result of `np.argsort` for the ranks.
            alive: By row number, whether the row is alive; None if all rows are.
            version: A number that changes whenever `alive` changes.
        """
        if self._sorted is None or self._sorted[0] != version:
            mask = slice(None) if alive is None else alive[self.rows]
            self._sorted = (version, np.sort(self._starts[mask]), np.sort(self._ends[mask]))
        _, starts, ends = self._sorted
        ranks = ranks.astype(starts.dtype) if int(ranks.max(initial=0)) < np.iinfo(starts.dtype).max else ranks
        return search(starts, ranks, right=True, order=order) - search(ends, ranks, right=True, order=order)

    @property
    def nbytes(self) -> int:
        """Memory in bytes; ncls keeps four numbers for each interval, each as wide as a rank."""
        own = self._bounds.nbytes + self._starts.nbytes + self._ends.nbytes + self.rows.nbytes
        cached = 0 if self._sorted is None else self._sorted[1].nbytes + self._sorted[2].nbytes
        return own + cached + 4 * self._starts.itemsize * self.rows.size


class ContainingIntervals:
    """The intervals that contain the values of a batch of events; used like `Ranges`.

    All searches are in the order of the events' ranks, so that successive searches read nearly the same memory.
    """

    def __init__(self, index: IntervalIndex, ranks: Ints) -> None:
        self._index = index
        self._ranks = ranks
        self._order = np.argsort(ranks)

    def __getitem__(self, part: slice) -> ContainingIntervals:
        return self if part == slice(0, self._ranks.size) else ContainingIntervals(self._index, self._ranks[part])

    def counts(self) -> Ints:
        """Return the number of rows that each event satisfies."""
        return self._index.counts(self._ranks, self._order)

    def pairs(self, limit: int) -> Iterator[Pairs]:
        """Yield all pairs, at most `limit` at a time, unless a single event has more rows."""
        counts = self.counts()
        hit = self._order[counts[self._order] > 0]
        for part in chunks(counts[hit], limit):
            events = hit[part]
            yield self._index.stab(self._ranks[events], events)

    def any(self, alive: NDArray[np.bool_] | None, version: int) -> NDArray[np.bool_]:
        """Tell which events have a live candidate, without expanding pairs."""
        found: NDArray[np.bool_] = self._index.counts(self._ranks, self._order, alive, version) > 0
        return found
