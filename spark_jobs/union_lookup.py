"""Several indexes over the same rows, one for each branch of an OR: a row is a candidate once, whichever it meets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.access_path import AccessPath, branches_of
from grouping.expression import Expression
from spark_jobs.event_column import EventColumns
from spark_jobs.index import Ints, Pairs
from spark_jobs.index.ranges import chunks
from spark_jobs.lookup import Candidates, Lookup

__all__ = ["AnyCandidates", "AnyLookup", "lookup_of"]


class UnionCandidates:
    """The rows that the events of a batch meet in any of the indexes; like `Candidates`."""

    def __init__(self, parts: Sequence[Candidates], count: int) -> None:
        self._parts = parts
        self._count = count

    def add_counts(self, counts: Ints) -> int:
        """Add to each event's count the rows that it meets, those of several branches as often; return their sum."""
        return sum(part.add_counts(counts) for part in self._parts)

    def between(self, first: int, last: int) -> UnionCandidates:
        """Return the candidates of the events in [first, last)."""
        return UnionCandidates([part.between(first, last) for part in self._parts], self._count)

    def pairs(self, limit: int) -> Iterator[Pairs]:
        """Yield (events, rows), each pair once, at most `limit` at a time unless one event alone meets more."""
        counts = np.zeros(self._count, np.int64)
        self.add_counts(counts)
        hit = np.flatnonzero(counts)
        for part in chunks(counts[hit], limit):
            first, last = int(hit[part][0]), int(hit[part][-1]) + 1
            met = [pairs for each in self._parts for pairs in each.between(first, last).pairs(limit)]
            codes = [events.astype(np.int64) << 32 | rows for events, rows in met]
            once = np.unique(np.concatenate([np.empty(0, np.int64), *codes]))
            yield (once >> 32).astype(np.intp), (once & 0xFFFFFFFF).astype(np.int32)

    def any(self, alive: NDArray[np.bool_] | None, version: int) -> Ints:
        """Return the events that meet a row that is alive, without expanding pairs."""
        found: Ints = np.unique(np.concatenate([part.any(alive, version) for part in self._parts]))
        return found


class UnionLookup:
    """The indexes of an OR's branches. Built once, then only read."""

    def __init__(self, branches: Sequence[Lookup]) -> None:
        """Take an index for each branch, over the same rows."""
        self._branches = branches

    def find(self, events: EventColumns, selected: Ints) -> UnionCandidates:
        """Return the candidates of the events at the positions `selected`."""
        return UnionCandidates([branch.find(events, selected) for branch in self._branches], events.source.count)

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return sum(branch.nbytes for branch in self._branches)


AnyCandidates = Candidates | UnionCandidates
AnyLookup = Lookup | UnionLookup


def lookup_of(
    conjuncts: Sequence[Expression],
    path: AccessPath,
    types: Sequence[str],
    constants: Sequence[pa.Array],
    count: int,
) -> AnyLookup:
    """Index rows as a path says; the arguments are those of `Lookup`."""
    if path.union_of is None:
        return Lookup(conjuncts, path, types, constants, count)
    branches = zip(branches_of(conjuncts[path.union_of]), path.branches, strict=True)
    return UnionLookup([Lookup(branch, own, types, constants, count) for branch, own in branches])
