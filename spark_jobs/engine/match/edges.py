"""Edges and changes: finds the entries that a row enters or leaves, compared with the previous row of the same key.

The entries' conjuncts are looked up for the rows of a batch and for their previous rows. If an entry matches only the
row, the key enters. If an entry matches only the previous row, the key exits. The previous row is no match if it does
not exist, or if its offset is before the entry's begin. PAUSE, START and EXPIRE are checked only for the row itself.

For the changes of a table, the previous row may be older than the entry's begin, and an entry that matches both rows
has an update. A row that removes its key is no match, and the key's next row has no previous row.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grouping.model.errors import InternalError
from grouping.model.ids import GroupId
from spark_jobs.engine.constants.begins import Begins
from spark_jobs.engine.constants.constant_cache import Snapshot
from spark_jobs.engine.constants.load import Loads
from spark_jobs.engine.index import Ints
from spark_jobs.engine.match.crossings import Crossings
from spark_jobs.engine.match.evaluate import ConstantLookup, candidates, event_slices, looked_up
from spark_jobs.engine.match.key_source import KeySource
from spark_jobs.engine.match.matched_pairs import MatchedPairs, assembled
from spark_jobs.engine.match.stays import StayLookup
from spark_jobs.engine.match.table_lookup import PAIRS, TableLookup
from spark_jobs.engine.rows.columns import PlacedColumns
from spark_jobs.engine.rows.edge_rows import DELETE, ENTER, EXIT, INSERT, KIND_BITS, UPDATE, EdgeRows
from spark_jobs.engine.rows.event_column import VALUE_BYTES, EventColumns
from spark_jobs.engine.rows.matches import Matches
from spark_jobs.engine.rows.row_source import RowSource
from spark_jobs.engine.rows.rows_before import RowsBefore
from spark_jobs.engine.rows.silent_rows import cause_offsets

__all__ = ["EdgeMatches", "coded_edges", "edge_candidates", "edge_matches"]

_ROW_BITS = 32
_KINDS_OF = ((ENTER, INSERT), (EXIT, DELETE), (UPDATE,))
"""The kinds of edges if an entry matches only the row, only the previous row, or both."""


class EdgeMatches(NamedTuple):
    """Results that are edges."""

    rows: EdgeRows
    """The rows of the results, each with its edge."""
    matches: Matches
    """Pairs of a row of `rows` and an entry."""


def edge_matches(
    snapshot: Snapshot,
    rows: RowSource,
    before: RowsBefore,
    limit: int = PAIRS,
    loads: Loads | None = None,
    value_bytes: int = VALUE_BYTES,
) -> Iterator[EdgeMatches]:
    """Yield the edges of a batch in slices, so that the memory is bounded for any number of edges.

    The arguments and the exceptions are those of `coded_edges`.
    """
    for found in coded_edges(snapshot, rows, before, limit, loads, value_bytes):
        yield _renumbered(rows, before, found)


def coded_edges(
    snapshot: Snapshot,
    rows: RowSource,
    before: RowsBefore,
    limit: int = PAIRS,
    loads: Loads | None = None,
    value_bytes: int = VALUE_BYTES,
) -> Iterator[Matches]:
    """Yield the edges of a batch as matches whose rows are codes: the row's number times 2^`KIND_BITS`, plus the kind.

    Args:
        snapshot: The tables of groups over one computation of rows with their previous rows.
        rows: The rows.
        before: Their previous rows.
        limit: The largest number of candidate pairs in a slice, unless a single row has more.
        loads: Counts the costs of each table; None to count nothing.
        value_bytes: The largest size of a text that an expression computes; a longer text is NULL.

    Raises:
        Exception: Any exception, because predicates run code of libraries (`faults.FAULTS`).
    """
    loads, groups = loads or Loads(), dict[GroupId, int]()

    def sides(source: PlacedColumns) -> dict[int, _Side]:
        events = EventColumns(KeySource(source, value_bytes), value_bytes)
        return {each.identity: _Side(each, events) for each in looked_up(snapshot, source, events, loads, groups)}

    now, earlier = sides(rows), sides(before)
    both = [(now.get(place), earlier.get(place)) for place in dict.fromkeys((*now, *earlier))]
    lookups = [_EdgeLookup.of(*each, rows, before, snapshot) for each in both]
    for first, last in event_slices(lookups, rows.count, limit):
        if pairs := [found for lookup in lookups for found in lookup.matched_pairs(first, last)]:
            yield assembled(pairs, tuple(groups), snapshot.selects, snapshot.select_of, snapshot.mode_of)


def edge_candidates(snapshot: Snapshot, rows: RowSource, before: RowsBefore) -> Ints:
    """Return the rows for which an index finds an entry for the row itself or for its previous row."""
    return np.union1d(candidates(snapshot, rows), before.of[candidates(snapshot, before)])


def _renumbered(rows: RowSource, before: RowsBefore, found: Matches) -> EdgeMatches:
    """Return the edges with their rows numbered from 0, given matches whose rows are codes (`coded_edges`)."""
    codes, place = np.unique(found.event, return_inverse=True)
    kinds = (codes & (1 << KIND_BITS) - 1).astype(np.int8)
    source = EdgeRows(rows, (codes >> KIND_BITS).astype(np.int64), kinds, before)
    return EdgeMatches(source, found.of_rows(place.astype(np.int32)))


@dataclass(frozen=True, slots=True)
class _Side:
    """A look-up of the rows, or of the previous rows."""

    lookup: ConstantLookup
    events: EventColumns


@dataclass(frozen=True, slots=True)
class _EdgeLookup:
    """The look-ups of the rows and of the previous rows in one part of a table, or in one shared index."""

    now: _Side | None
    """The look-up of the rows; None if no row satisfies the table's conjuncts without constants."""
    earlier: _Side | None
    """The look-up of the previous rows; None if no previous row satisfies these conjuncts."""
    rows: RowSource
    before: RowsBefore
    snapshot: Snapshot
    crossings: Crossings | None
    """The edges, if `Crossings` can find them (`Crossings.of`); else None."""
    stays: StayLookup | None
    """Decides which rows enter and leave, for a group with UNTIL."""

    @classmethod
    def of(
        cls, now: _Side | None, earlier: _Side | None, rows: RowSource, before: RowsBefore, snapshot: Snapshot
    ) -> _EdgeLookup:
        """Compare the two look-ups of one part, or of one shared index."""
        one, other = (None if side is None else side.lookup for side in (now, earlier))
        crossings = stays = None
        tables = isinstance(one, TableLookup | None) and isinstance(other, TableLookup | None)
        if tables and not _has_changes(snapshot, one or other):
            assert isinstance(one, TableLookup | None) and isinstance(other, TableLookup | None), "both are of tables"
            crossings = Crossings.of(one, other, rows, before)
            stays = StayLookup.of(one or other, rows, before)
        return cls(now, earlier, rows, before, snapshot, crossings, stays)

    def add_counts(self, counts: Ints) -> None:
        """Add each row's number of candidates to `counts`."""
        if self.crossings is not None:
            self.crossings.add_counts(counts)
            return
        if self.now is not None:
            self.now.lookup.add_counts(counts)
        if self.earlier is not None:
            own = np.zeros(self.before.count, np.int64)
            self.earlier.lookup.add_counts(own)
            counts[self.before.of] += own

    def matched_pairs(self, first: int, last: int) -> Iterator[MatchedPairs]:
        """Yield the results of the rows in [first, last); rows are codes (`coded_edges`)."""
        began, lookup, snapshot = time.perf_counter(), self._side.lookup, self.snapshot
        kept = {ENTER: snapshot.enters, EXIT: snapshot.exits}
        kept |= dict.fromkeys((INSERT, DELETE, UPDATE), snapshot.changes)
        for row, position, side in self._edges(first, last):
            for kind in _KINDS_OF[side]:
                if (variants := kept[kind]) is None:
                    continue
                wanted = np.flatnonzero(variants[lookup.rows.variant[position]])
                if wanted.size:
                    codes, entries = (row[wanted] << KIND_BITS) + kind, position[wanted]
                    yield MatchedPairs.of(codes, lookup.rows, entries, lookup.group_of(entries))
        lookup.took(time.perf_counter() - began)

    def _edges(self, first: int, last: int) -> Iterator[tuple[Ints, Ints, int]]:
        """Yield rows in [first, last), the entry of each of these rows, and their index in `_KINDS_OF`."""
        found = self._differences(first, last) if self.crossings is None else self.crossings.edges(first, last)
        for row, position, side in found if self.stays is None else self.stays.edges(found):
            if (after := self.before.after) is None:
                yield row, position, side
            else:
                begun = self._begins.at(position, self.rows.partitions[row]) > after[row]
                yield row[begun], position[begun], side

    def _differences(self, first: int, last: int) -> Iterator[tuple[Ints, Ints, int]]:
        """Yield rows, the entry of each of these rows, and their index in `_KINDS_OF`."""
        now, earlier = self._now(first, last), self._earlier(first, last)
        found = [np.setdiff1d(now, earlier, assume_unique=True), np.setdiff1d(earlier, now, assume_unique=True)]
        if self.snapshot.changes is not None:
            found.append(np.intersect1d(now, earlier, assume_unique=True))
        for side, codes in enumerate(found):
            yield codes >> _ROW_BITS, codes & (1 << _ROW_BITS) - 1, side

    @property
    def _side(self) -> _Side:
        side = self.now or self.earlier
        assert side is not None, "one of the two was looked up"
        return side

    @property
    def _begins(self) -> Begins:
        begins = self._side.lookup.rows.begins
        if begins is None:
            raise InternalError("an entry of a group with edges has no begin")
        return begins

    def _now(self, first: int, last: int) -> Ints:
        """Return the matches of rows as codes, ascending: the row times 2^`_ROW_BITS`, plus the entry's position."""
        if self.now is None:
            return np.empty(0, np.int64)
        offsets, removals = cause_offsets(self.rows), self.rows.removals
        found = []
        for row, position in self.now.lookup.pairs(self.now.events, first, last):
            kept = slice(None) if removals is None else np.flatnonzero(~removals[row])
            found.append(self._codes(row[kept], position[kept], offsets[row[kept]]))
        return np.sort(np.concatenate([np.empty(0, np.int64), *found]))

    def _earlier(self, first: int, last: int) -> Ints:
        """Return the matches of the previous rows as `_now` does; each code has the row, not the previous row."""
        if self.earlier is None:
            return np.empty(0, np.int64)
        before, changes, rows = self.before, self.snapshot.changes, self._side.lookup.rows
        found = []
        for pair, position in self.earlier.lookup.pairs(
            self.earlier.events, *np.searchsorted(before.of, (first, last)).tolist()
        ):
            offsets = before.own_offsets[pair]
            if changes is not None:  # a table's row is valid even if it is older than the entry
                offsets = np.where(changes[rows.variant[position]], before.offsets[pair], offsets)
            found.append(self._codes(before.of[pair], position, offsets))
        return np.sort(np.concatenate([np.empty(0, np.int64), *found]))

    def _codes(self, rows: NDArray[np.integer], positions: NDArray[np.int32], offsets: Ints) -> Ints:
        """Return the codes of those pairs whose entry begins at the pair's offset or before it."""
        begun = self._begins.at(positions, self.rows.partitions[rows]) <= offsets
        return (rows[begun].astype(np.int64) << _ROW_BITS) | positions[begun]


def _has_changes(snapshot: Snapshot, lookup: ConstantLookup | None) -> bool:
    """Tell whether some entries of a look-up report changes, which include rows that match before and after."""
    if snapshot.changes is None or lookup is None:
        return False
    return bool(snapshot.changes[lookup.rows.variant].any())
