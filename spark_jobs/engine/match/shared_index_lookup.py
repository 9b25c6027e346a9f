"""The look-up of a batch in a shared index: the candidates in all its tables, and the matches among the candidates."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from grouping.model.ids import GroupId
from spark_jobs.engine.constants.constant_rows import ConstantRows
from spark_jobs.engine.constants.load import Loads
from spark_jobs.engine.constants.shared_index import SharedIndex
from spark_jobs.engine.index import Ints, Pairs
from spark_jobs.engine.match.matched_pairs import MatchedPairs
from spark_jobs.engine.match.residual import holds
from spark_jobs.engine.match.table_lookup import RESIDUAL_PAIRS
from spark_jobs.engine.rows.columns import PlacedColumns
from spark_jobs.engine.rows.cpu_budget import charged
from spark_jobs.engine.rows.event_column import EventColumns

__all__ = ["SharedIndexLookup"]


class SharedIndexLookup:
    """The candidates of a batch in the tables of a shared index; the counterpart of `TableLookup`."""

    def __init__(
        self,
        shared: SharedIndex,
        source: PlacedColumns,
        events: EventColumns,
        loads: Loads,
        groups: dict[GroupId, int],
    ) -> None:
        """Look up the events of a batch in a shared index.

        Args:
            shared: The index of the tables.
            source: The events of the batch.
            events: The columns of the events.
            loads: Counts the costs of each table.
            groups: By group id, the group's number; missing ids are added.
        """
        self._shared = shared
        self._source = source
        self._names = [member.shape.plan.group_id for member in shared.members]
        self._account = object()
        with charged(self._account, lambda: self._names, alike=False):
            self._events, self._found = shared.find(events)
        self._loads = [loads.of(member.shape) for member in shared.members]
        self._group = np.array([groups.setdefault(name, len(groups)) for name in self._names], np.int32)
        self._candidates = np.zeros(len(shared.members), np.int64)
        self._seconds = 0.0

    def add_counts(self, counts: Ints) -> None:
        """Add each event's number of candidates to `counts`."""
        counts[self._events] += self._found.counts()

    def mark(self, marks: NDArray[np.bool_]) -> None:
        """Mark the events that have a candidate."""
        for places, candidates in self._found.pairs(RESIDUAL_PAIRS):
            marks[self._events[places[self._shared.alive[candidates]]]] = True

    def took(self, seconds: float) -> None:
        """Charge the time of a look-up to the tables, in proportion to their numbers of candidates."""
        share = self._candidates + 1.0
        share *= seconds / share.sum()
        for load, own in zip(self._loads, share.tolist(), strict=True):
            load.seconds += own

    @property
    def identity(self) -> int:
        """An id of the shared index, unique while the index is in use."""
        return id(self._shared)

    @property
    def rows(self) -> ConstantRows:
        """The constant rows of all tables."""
        return self._shared.rows

    def group_of(self, rows: NDArray[np.integer]) -> NDArray[np.int32]:
        """Return the group number of each constant row."""
        numbers: NDArray[np.int32] = self._group[self._shared.owner[rows]]
        return numbers

    def matched_pairs(self, events: EventColumns, first: int, last: int) -> Iterator[MatchedPairs]:
        """Yield the matched pairs of the events in [first, last)."""
        for found, rows in self.pairs(events, first, last):
            yield MatchedPairs.of(found, self._shared.rows, rows, self.group_of(rows))

    def pairs(self, events: EventColumns, first: int, last: int) -> Iterator[Pairs]:
        """Yield the pairs of an event in [first, last) and a constant row for which all conjuncts are TRUE."""
        part = slice(*np.searchsorted(self._events, (first, last)))
        mine = self._events[part]
        for places, candidates in self._found[part].pairs(RESIDUAL_PAIRS):
            self._count("candidates", candidates)
            found, rows = self._checked(events, (mine[places], candidates))
            if found.size:
                self._count("matches", rows)
                yield found, rows

    def _count(self, what: str, rows: NDArray[np.int32]) -> None:
        """Add the number of pairs of each table to its load, in the field named `what`."""
        counts = np.bincount(self._shared.owner[rows], minlength=len(self._loads))
        numbers = np.flatnonzero(counts)
        if what == "candidates":
            self._candidates += counts
        for number, count in zip(numbers.tolist(), counts[numbers].tolist(), strict=True):
            load = self._loads[number]
            setattr(load, what, getattr(load, what) + count)

    def _checked(self, events: EventColumns, pairs: Pairs) -> Pairs:
        """Return the pairs for which all conjuncts are TRUE, the entry is live, and the entry gets the event.

        An entry gets the events within its time window and before the end offsets of its table, if there are any.
        """
        found, rows = pairs
        shared = self._shared
        owner = shared.owner[rows]
        true = shared.alive[rows]
        if shared.rows.windowed:
            true &= shared.rows.in_window(rows, self._source.time_ms[found])
        if shared.ends is not None:
            partitions = np.minimum(self._source.partitions[found], shared.ends.shape[1] - 1)
            true &= self._source.offsets[found] < shared.ends[owner, partitions]
        for number, conjunct in sorted(enumerate(shared.conjuncts), key=lambda each: each[1].tally.rank):
            wanted = np.flatnonzero(conjunct.members[owner] & true)
            if wanted.size:
                places = rows[wanted] + conjunct.shift[owner[wanted]]
                began = time.perf_counter()
                with charged((self._account, number), partial(self._owners, owner[wanted]), alike=False):
                    held = true[wanted] = holds(
                        (conjunct.conjunct,), events, found[wanted], conjunct.types, conjunct.constants, places
                    )
                conjunct.tally.add(time.perf_counter() - began, held.size, int(np.count_nonzero(held)))
        return found[true], rows[true]

    def _owners(self, members: Ints) -> list[GroupId]:
        return [self._names[number] for number in np.unique(members).tolist()]
