"""Two bounds on a column: intervals that contain the event's value, by nested containment lists (ncls)."""

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
    """Rows of ``column >(=) :c0 AND column <(=) :c1``, within one code or among several.

    Bounds become ranks: the i-th of the k distinct bounds stands at 2i + 1, values between two bounds at the even
    number between them. Open and closed ends are then both half-open intervals of integers, at any value of int64. Each
    code has 2k + 1 ranks of its own.
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
            ops: ``>`` or ``>=``, and ``<`` or ``<=``, the column on the left.
            low: The lower bounds.
            high: The upper bounds.
            rows: The rows' numbers.
            codes: The code of each row, None when there is no equality beside the bounds.
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
        # Ranks of up to 2^31 are kept in half the memory.
        top = int(ends.max()) if ends.size else 0
        kind = np.int32 if top < np.iinfo(np.int32).max else np.int64
        self._starts, self._ends = starts.astype(kind), ends.astype(kind)
        self._sorted: tuple[int, NDArray[np.signedinteger], NDArray[np.signedinteger]] | None = None
        self._lists = NCLS(self._starts, self._ends, self.rows) if kept.size else None

    def ranks(self, values: Ints, order: NDArray[np.intp] | None = None) -> Ints:
        """Return where values stand among the bounds; `order` as in `search`."""
        left = search(self._bounds, values, right=False, order=order)
        inside = np.minimum(left, self._bounds.size - 1)
        return 2 * left + (self._bounds[inside] == values if self._bounds.size else 0)

    def at(self, ranks: Ints, codes: NDArray[np.int32] | None = None) -> ContainingIntervals:
        """Return the intervals that hold each event's value, by its rank; none where its code is -1."""
        if codes is not None:
            ranks = np.where(codes >= 0, ranks + codes.astype(np.int64) * self._span, -1)
        return ContainingIntervals(self, ranks)

    def stab(self, ranks: Ints, events: Ints) -> Pairs:
        """Return all (event, row) pairs of these ranks."""
        if self._lists is None:
            return np.empty(0, np.intp), np.empty(0, np.int32)
        ranks = ranks.astype(self._starts.dtype, copy=False)
        found, rows = self._lists.all_overlaps_both(ranks, ranks + 1, events)
        return found, rows.astype(np.int32)

    def counts(
        self, ranks: Ints, order: NDArray[np.intp], alive: NDArray[np.bool_] | None = None, version: int = 0
    ) -> Ints:
        """Return how many intervals contain each rank: started ones less ended ones.

        Args:
            ranks: As `ranks` makes them.
            order: The result of `np.argsort` for them.
            alive: Which rows count (by row number); None for all.
            version: Changes whenever `alive` does.
        """
        if self._sorted is None or self._sorted[0] != version:
            mask = slice(None) if alive is None else alive[self.rows]
            self._sorted = (version, np.sort(self._starts[mask]), np.sort(self._ends[mask]))
        _, starts, ends = self._sorted
        ranks = ranks.astype(starts.dtype) if int(ranks.max(initial=0)) < np.iinfo(starts.dtype).max else ranks
        return search(starts, ranks, right=True, order=order) - search(ends, ranks, right=True, order=order)

    @property
    def nbytes(self) -> int:
        """Memory in bytes; ncls keeps four numbers an interval, as wide as the ranks."""
        own = self._bounds.nbytes + self._starts.nbytes + self._ends.nbytes + self.rows.nbytes
        cached = 0 if self._sorted is None else self._sorted[1].nbytes + self._sorted[2].nbytes
        return own + cached + 4 * self._starts.itemsize * self.rows.size


class ContainingIntervals:
    """The look-up of a batch of events: like `Ranges`, of an interval index.

    Everything is looked up in the order of the ranks, so that neighbouring searches take the same path.
    """

    def __init__(self, index: IntervalIndex, ranks: Ints) -> None:
        self._index = index
        self._ranks = ranks
        self._order = np.argsort(ranks)

    def __getitem__(self, part: slice) -> ContainingIntervals:
        return self if part == slice(0, self._ranks.size) else ContainingIntervals(self._index, self._ranks[part])

    def counts(self) -> Ints:
        """Return how many rows each event meets."""
        return self._index.counts(self._ranks, self._order)

    def pairs(self, limit: int) -> Iterator[Pairs]:
        """Yield all pairs, at most `limit` at a time unless one event alone meets more."""
        counts = self.counts()
        hit = self._order[counts[self._order] > 0]
        for part in chunks(counts[hit], limit):
            events = hit[part]
            yield self._index.stab(self._ranks[events], events)

    def any(self, alive: NDArray[np.bool_] | None, version: int) -> NDArray[np.bool_]:
        """Tell which events have a live candidate, without expanding pairs."""
        found: NDArray[np.bool_] = self._index.counts(self._ranks, self._order, alive, version) > 0
        return found
