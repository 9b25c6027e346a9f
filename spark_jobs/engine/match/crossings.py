"""Edges by an index that gives one run of entries for each row, and one for the previous row of the same key.

An index on one range conjunct, with or without equalities, sorts its entries, so the entries that a row matches are one
run of positions. The row enters the entries that are only in its own run, and leaves the entries that are only in the
previous row's run; entries in both runs are not checked. For example, among a million thresholds for a price, only the
thresholds between the two prices are checked.

An entry that began after the previous row is called *young*. The previous row is no match for a young entry, whatever
its values. So the row also enters the young entries in its own run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spark_jobs.engine.constants.begins import Begins
from spark_jobs.engine.index import Ints, Pairs, Ranges
from spark_jobs.engine.match.table_lookup import PAIRS, TableLookup
from spark_jobs.engine.rows.row_source import RowSource
from spark_jobs.engine.rows.rows_before import RowsBefore
from spark_jobs.engine.rows.silent_rows import cause_offsets

__all__ = ["Crossings"]


@dataclass(frozen=True, slots=True)
class _EntryRuns:
    """A run of positions for each row, from `first` to before `last`; empty if `last` is not greater than `first`."""

    first: Ints
    last: Ints

    def without(self, other: _EntryRuns) -> tuple[_EntryRuns, _EntryRuns]:
        """Return for each row two runs: the parts of its run before and after its run in `other`."""
        empty = other.last <= other.first
        begin, end = np.where(empty, self.last, other.first), np.where(empty, self.last, other.last)
        return _EntryRuns(self.first, np.minimum(self.last, begin)), _EntryRuns(np.maximum(self.first, end), self.last)

    @property
    def counts(self) -> Ints:
        """The length of each run."""
        counts: Ints = np.maximum(self.last - self.first, 0)
        return counts

    def pairs(self, positions: NDArray[np.int32], first: int, last: int) -> Iterator[Pairs]:
        """Yield pairs of a row in [first, last) and an element of `positions` within the row's run."""
        runs = Ranges(positions, self.first[first:last], self.last[first:last])
        for row, position in runs.pairs(PAIRS):
            yield row + first, position


class Crossings:
    """The edges of the entries of one part of a table."""

    def __init__(
        self,
        lookup: TableLookup,
        entries: NDArray[np.int32],
        now: _EntryRuns,
        earlier: _EntryRuns,
        rows: RowSource,
        before: RowsBefore,
    ) -> None:
        """Compare the runs of rows with the runs of the previous rows; `of` makes the runs."""
        self._lookup = lookup
        self._entries = entries
        self._rows = rows
        self._offsets = cause_offsets(rows)
        self._now = now
        self._own_offsets = np.full(rows.count, -1, np.int64)
        self._own_offsets[before.of] = before.own_offsets
        self._enters = now.without(earlier)
        self._exits = earlier.without(now)
        begins = lookup.rows.begins
        assert begins is not None, "entries of a group with edges have begins"
        self._begins: Begins = begins
        self._young = self._young_entries()

    @classmethod
    def of(
        cls, now: TableLookup | None, earlier: TableLookup | None, rows: RowSource, before: RowsBefore
    ) -> Crossings | None:
        """Return the edges of the entries of one part of a table.

        None if a row's candidates are not one run, if an entry may be at several positions, or if further conjuncts
        must be checked.
        """
        lookup = now or earlier
        assert lookup is not None, "one of the two was looked up"
        if lookup.part.shape.residual or any(kind.is_set for kind in lookup.part.shape.types):
            return None  # an entry with a set is at several positions
        runs, entries = [], None
        for side, count in ((now, rows.count), (earlier, before.count)):
            first, last = np.zeros(count, np.int64), np.zeros(count, np.int64)
            if side is not None:
                found = side.candidates.runs()
                if found is None:
                    return None
                events, ranges = found
                entries = ranges.rows
                first[events], last[events] = ranges.first, ranges.last
                if side is now and rows.removals is not None:
                    last[rows.removals] = 0  # a removal is no match
            runs.append(_EntryRuns(first, last))
        spread = [np.zeros(rows.count, np.int64) for _ in range(2)]
        spread[0][before.of], spread[1][before.of] = runs[1].first, runs[1].last
        assert entries is not None, "one of the two was looked up"
        return cls(lookup, entries, runs[0], _EntryRuns(*spread), rows, before)

    def _young_entries(self) -> tuple[Ints, NDArray[np.int32], _EntryRuns] | None:
        """Return the young entries; None if no entry began after the earliest previous row.

        A row without a previous row needs no young entries, because it enters every entry of its own run anyway.

        Returns:
            Three things: the begin of the entry at each position of the index; the positions of all entries that are
            young for at least one row, sorted by begin; and for each row the run of these positions whose entries are
            young for it.
        """
        partition = int(self._rows.partitions[0]) if self._rows.count else 0
        matched = (self._own_offsets >= 0) & (self._now.counts > 0)
        if not matched.any() or self._begins.latest(partition) <= (earliest := int(self._own_offsets[matched].min())):
            return None
        begins = self._begins.at(self._entries, np.full(self._entries.size, partition))
        young = np.flatnonzero(begins > earliest)  # few: sorting all entries would take long
        order = young[np.argsort(begins[young], kind="stable")].astype(np.int32)
        first = np.searchsorted(begins[order], self._own_offsets, side="right")
        return begins, order, _EntryRuns(np.where(matched, first, order.size), np.full(first.size, order.size))

    def add_counts(self, counts: Ints) -> None:
        """Add each row's number of candidates to `counts`."""
        for run in (*self._enters, *self._exits):
            counts += run.counts
        if self._young is not None:
            counts += np.minimum(self._young[2].counts, self._now.counts)

    def edges(self, first: int, last: int) -> Iterator[tuple[Ints, Ints, int]]:
        """Yield rows in [first, last), the entry of each of these rows, and 0 for enters or 1 for exits."""
        for number, runs in enumerate((self._enters, self._exits)):
            for run in runs:
                for row, entry in run.pairs(self._entries, first, last):
                    own = self._own_offsets[row]
                    since = self._begins.at(entry, self._rows.partitions[row])
                    valid = np.where(own < 0, since <= self._offsets[row], since <= own)
                    yield (*self._valid(row, entry, valid), number)
        for row, position in self._young_pairs(first, last):
            entry = self._entries[position]
            valid = self._begins.at(entry, self._rows.partitions[row]) <= self._offsets[row]
            yield (*self._valid(row, entry, valid), 0)

    def _young_pairs(self, first: int, last: int) -> Iterator[Pairs]:
        """Yield pairs of a row and the position of a young entry that is in the row's own run.

        A row has two runs: the entries that are young for the row, and the entries that the row matches. For each row,
        the elements of the shorter run are tested for being in the other run.
        """
        if self._young is None:
            return
        begins, order, young = self._young
        few = young.counts <= self._now.counts
        nothing = np.zeros(few.size, np.int64)
        by_begin = _EntryRuns(np.where(few, young.first, nothing), np.where(few, young.last, nothing))
        for row, position in by_begin.pairs(order, first, last):
            inside = (self._now.first[row] <= position) & (position < self._now.last[row])
            yield row[inside], position[inside]
        by_run = _EntryRuns(np.where(few, nothing, self._now.first), np.where(few, nothing, self._now.last))
        everything = np.arange(self._entries.size, dtype=np.int32)
        for row, position in by_run.pairs(everything, first, last):
            own = self._own_offsets[row]
            later = (begins[position] > own) & (own >= 0)
            yield row[later], position[later]

    def _valid(self, row: NDArray[np.intp], entry: NDArray[np.int32], valid: NDArray[np.bool_]) -> tuple[Ints, Ints]:
        """Return those pairs in `valid` whose entry is live and has the row's time within its window."""
        part = self._lookup.part
        if part.alive is not None:
            valid &= part.alive[entry]
        if part.rows.windowed:
            valid &= part.rows.in_window(entry, self._rows.time_ms[row])
        return row[valid].astype(np.int64), entry[valid].astype(np.int64)
