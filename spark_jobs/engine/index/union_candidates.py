"""The candidates of several indexes over the same rows. A row that several indexes find is only one candidate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from spark_jobs.engine.index import Ints, Pairs
from spark_jobs.engine.index.lookup import Candidates
from spark_jobs.engine.index.ranges import chunks
from spark_jobs.engine.rows.arrays import distinct_values

__all__ = ["UnionCandidates"]


class UnionCandidates:
    """The rows that any of several indexes gives for the events of a batch; used like `Candidates`."""

    def __init__(self, parts: Sequence[Candidates | UnionCandidates], count: int) -> None:
        self._parts = parts
        self._count = count

    def add_counts(self, counts: Ints) -> int:
        """Add to `counts` an upper bound for the number of each event's candidates; return the sum of these bounds.

        A row that several indexes find is counted for each of them.
        """
        return sum(part.add_counts(counts) for part in self._parts)

    def between(self, first: int, last: int) -> UnionCandidates:
        """Return the candidates of the events in [first, last)."""
        return UnionCandidates([part.between(first, last) for part in self._parts], self._count)

    def runs(self) -> None:
        """Return None, since the rows of an event are not one run."""

    def pairs(self, limit: int) -> Iterator[Pairs]:
        """Yield pairs of events and rows, each pair once; at most `limit` at a time, unless a single event has more."""
        counts = np.zeros(self._count, np.int64)
        self.add_counts(counts)
        hit = np.flatnonzero(counts)
        for part in chunks(counts[hit], limit):
            first, last = int(hit[part][0]), int(hit[part][-1]) + 1
            found = [pairs for each in self._parts for pairs in each.between(first, last).pairs(limit)]
            codes = [events.astype(np.int64) << 32 | rows for events, rows in found]
            once = distinct_values(np.concatenate([np.empty(0, np.int64), *codes]))
            yield (once >> 32).astype(np.intp), (once & 0xFFFFFFFF).astype(np.int32)

    def any(self, alive: NDArray[np.bool_] | None, version: int) -> Ints:
        """Return the events that have a candidate that is alive, without making pairs."""
        found: Ints = distinct_values(np.concatenate([part.any(alive, version) for part in self._parts]))
        return found
