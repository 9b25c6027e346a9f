"""The numbers of an event's rows, which are part of their results' ids."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grouping.plan.lookup_join import LookupJoin
from spark_jobs.engine.index import Ints

__all__ = ["NO_NUMBERS", "Numbers"]


class Numbers(NamedTuple):
    """How the rows of an event are numbered, from 0 and growing with the keys of the tables' rows.

    Rows are numbered whichever constants are compared with them. Two rows have the same number if every query's
    constants leave one of them out: the row of NULLs beside the others of a LEFT JOIN whose ON has constants, and rows
    separated only by an equality with a constant.
    """

    numbered: bool
    """Whether an event may have several rows for one query."""
    shared: Ints | None
    """The numbers, where rows may have the same; else each row of an event has the next one."""

    def after(self, one: LookupJoin, event: Ints, probe: Ints, row: Ints) -> Numbers:
        """Return the numbers of the rows that one more join makes.

        Args:
            one: The join.
            event: The event of each.
            probe: The row, left of the table, that each is made of, ascending.
            row: The row of the table, -1 for none.
        """
        numbered = self.numbered or not (one.single or one.unique)
        if not numbered or not (one.undecided or one.unique or self.shared is not None):
            return Numbers(numbered, _zeros_or_none(self, one, probe))
        place = _places(probe)
        place[(row < 0) | one.unique | one.single] = 0
        if not self.numbered:
            return Numbers(True, place)
        return Numbers(True, _ranks(event, probe if self.shared is None else self.shared[probe], place))

    def of(self, event: Ints) -> Ints | None:
        """Return the numbers of rows, given their events; None where an event has one row for each query."""
        if not self.numbered:
            return None
        return _places(event) if self.shared is None else self.shared


NO_NUMBERS = Numbers(False, None)
"""The numbers of events alone."""


def _zeros_or_none(numbers: Numbers, one: LookupJoin, probe: Ints) -> Ints | None:
    if one.unique or numbers.shared is not None:
        return np.zeros(probe.size, np.int64)
    return None


def _places(group: Ints) -> Ints:
    """Return the place of each item within its group, whose items stand side by side."""
    first = np.ones(group.size, np.bool_)
    first[1:] = group[1:] != group[:-1]
    begins = np.flatnonzero(first)
    return np.arange(group.size) - np.repeat(begins, np.diff(np.append(begins, group.size)))


def _ranks(event: Ints, before: Ints, place: Ints) -> Ints:
    """Return for each row how many distinct (before, place) of its event are less."""
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
