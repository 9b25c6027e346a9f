"""The numbers of the joined rows of an event. A result's id contains the number of its row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grouping.plan.lookup_join import LookupJoin
from spark_jobs.engine.index import Ints

__all__ = ["NO_NUMBERS", "Numbers", "run_places"]


class Numbers(NamedTuple):
    """The numbers of rows within their events, from 0, in the order of the keys of the tables' rows.

    A row has the same number for all queries, whatever their constants. Two rows of an event may share a number if no
    query can have both rows. There are two such cases. First, a LEFT JOIN with constants in ON makes a row of NULLs in
    addition to the joined rows, and a query has either the row of NULLs or some of the joined rows. Second, if ON
    requires that a column equals a constant, each query's constant may choose one of several rows.
    """

    numbered: bool
    """Whether a single query may have several rows of an event."""
    shared: Ints | None
    """The number of each row, if rows may share numbers; None if the rows of each event have successive numbers."""

    def after(self, node: LookupJoin, event: Ints, probe: Ints, row: Ints) -> Numbers:
        """Return the numbers of the rows that a further join makes.

        Args:
            node: The join.
            event: For each new row, its event.
            probe: For each new row, the row from which the join makes it; ascending.
            row: For each new row, the row of the table; -1 for none.
        """
        numbered = self.numbered or not (node.single or node.unique)
        if not numbered or not (node.undecided or node.unique or self.shared is not None):
            return Numbers(numbered, _zeros_or_none(self, node, probe))
        place = run_places(probe)
        place[(row < 0) | node.unique | node.single] = 0
        if not self.numbered:
            return Numbers(True, place)
        return Numbers(True, _ranks(event, probe if self.shared is None else self.shared[probe], place))

    def of(self, event: Ints) -> Ints | None:
        """Return the number of each row; None if a query can have at most one row of an event.

        Args:
            event: For each row, its event; ascending.
        """
        if not self.numbered:
            return None
        return run_places(event) if self.shared is None else self.shared


NO_NUMBERS = Numbers(False, None)
"""The numbers of events before any join."""


def _zeros_or_none(numbers: Numbers, node: LookupJoin, probe: Ints) -> Ints | None:
    if node.unique or numbers.shared is not None:
        return np.zeros(probe.size, np.int64)
    return None


def run_places(values: Ints) -> Ints:
    """Return the place of each item in its run of equal values."""
    first = np.ones(values.size, np.bool_)
    first[1:] = values[1:] != values[:-1]
    begins = np.flatnonzero(first)
    return np.arange(values.size) - np.repeat(begins, np.diff(np.append(begins, values.size)))


def _ranks(event: Ints, before: Ints, place: Ints) -> Ints:
    """Number the distinct pairs (before, place) of each event in ascending order; return each row's number."""
    order = np.lexsort((place, before, event))
    event, before, place = event[order], before[order], place[order]
    begins = np.ones(event.size, np.bool_)
    begins[1:] = event[1:] != event[:-1]
    new = begins.copy()
    new[1:] |= (before[1:] != before[:-1]) | (place[1:] != place[:-1])
    rank = np.cumsum(new)
    number = np.empty(event.size, np.int64)
    number[order] = rank - np.maximum.accumulate(np.where(begins, rank, 0))
    return number
