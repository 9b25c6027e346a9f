"""Matching: finds the entries of the constant tables that each event of a batch matches.

Small tables with the same key columns share an index (`shared_index_lookup`); each larger table has its own index
(`table_lookup`). A look-up filters the events, finds candidate pairs of an event and an entry, and checks the residual
on the pairs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from grouping.model.ids import GroupId
from spark_jobs.engine.constants.constant_cache import ConstantTable, Snapshot
from spark_jobs.engine.constants.load import Load, Loads
from spark_jobs.engine.index import Ints
from spark_jobs.engine.match.key_source import KeySource
from spark_jobs.engine.match.matched_pairs import MatchedPairs, assembled, once_per_group
from spark_jobs.engine.match.shared_index_lookup import SharedIndexLookup
from spark_jobs.engine.match.table_lookup import PAIRS, TableLookup, selected_events
from spark_jobs.engine.rows.columns import PlacedColumns
from spark_jobs.engine.rows.cpu_budget import charged
from spark_jobs.engine.rows.event_column import VALUE_BYTES, EventColumns
from spark_jobs.engine.rows.matches import Matches

__all__ = ["ConstantLookup", "candidates", "event_slices", "looked_up", "match", "matches"]

ConstantLookup = TableLookup | SharedIndexLookup


class CandidateCount(Protocol):
    """A look-up that can count its candidates by event."""

    def add_counts(self, counts: Ints) -> None:
        """Add each event's number of candidates to `counts`."""


def match(snapshot: Snapshot, source: PlacedColumns) -> Matches:
    """Return all matches of a batch of events at once."""
    (found,) = matches(snapshot, source, limit=np.iinfo(np.int64).max)
    return found


def matches(
    snapshot: Snapshot,
    source: PlacedColumns,
    limit: int = PAIRS,
    loads: Loads | None = None,
    value_bytes: int = VALUE_BYTES,
) -> Iterator[Matches]:
    """Yield the matches of a batch in slices of its events, so that the memory is bounded for any number of matches.

    Args:
        snapshot: The tables.
        source: The events.
        limit: The largest number of candidate pairs in a slice, unless a single event has more.
        loads: Counts the costs of each table; None to count nothing.
        value_bytes: The largest size of a text that an expression computes; a longer text is NULL.

    Raises:
        Exception: Any exception, because predicates run code of libraries (`faults.FAULTS`).
    """
    events = EventColumns(KeySource(source, value_bytes), value_bytes)
    groups: dict[GroupId, int] = {}
    lookups = list(looked_up(snapshot, source, events, loads or Loads(), groups))
    names = tuple(groups)
    for first, last in event_slices(lookups, source.count, limit):
        pairs = [found for lookup in lookups for found in _timed_pairs(lookup, events, first, last)]
        yield assembled(once_per_group(pairs), names, snapshot.selects, snapshot.select_of, snapshot.mode_of)


def candidates(snapshot: Snapshot, source: PlacedColumns) -> Ints:
    """Return the events for which an index finds an entry; residuals are not checked."""
    marks = np.zeros(source.count, np.bool_)
    for lookup in looked_up(snapshot, source, EventColumns(KeySource(source)), Loads(), {}):
        lookup.mark(marks)
    return np.flatnonzero(marks)


def looked_up(
    snapshot: Snapshot, source: PlacedColumns, events: EventColumns, loads: Loads, groups: dict[GroupId, int]
) -> Iterator[ConstantLookup]:
    """Look a batch up in all tables, and yield the look-ups; the looked up groups are numbered in `groups`."""
    for table in snapshot.tables:
        load = loads.of(table.shape)
        load.events += source.count
        load.rows = table.rows
        if any(part.lookup is not None for part in table.parts):
            yield from _by_itself(table, source, events, load, groups)
    for shared in snapshot.shared_indexes:
        began = time.perf_counter()
        lookup = SharedIndexLookup(shared, source, events, loads, groups)
        lookup.took(time.perf_counter() - began)
        yield lookup


def _by_itself(
    table: ConstantTable, source: PlacedColumns, events: EventColumns, load: Load, groups: dict[GroupId, int]
) -> Iterator[ConstantLookup]:
    """Look a batch up in those parts of a table that have an index of their own."""
    began = time.perf_counter()
    group_id = table.shape.plan.group_id
    found = []
    with charged(group_id, lambda: (group_id,)):
        selected = selected_events(table.shape, source, events)
        if selected.size:
            group = groups.setdefault(group_id, len(groups))
            for part in table.parts:
                if part.lookup is not None:
                    found.append(TableLookup(group, part, part.lookup.find(events, selected), load, source))
    load.seconds += time.perf_counter() - began
    yield from found


def _timed_pairs(lookup: ConstantLookup, events: EventColumns, first: int, last: int) -> list[MatchedPairs]:
    began = time.perf_counter()
    pairs = list(lookup.matched_pairs(events, first, last))
    lookup.took(time.perf_counter() - began)
    return pairs


def event_slices(lookups: Sequence[CandidateCount], count: int, limit: int) -> Iterator[tuple[int, int]]:
    """Yield slices of events with at most `limit` candidate pairs each, unless a single event has more."""
    counts = np.zeros(count, np.int64)
    for lookup in lookups:
        lookup.add_counts(counts)
    total = np.cumsum(counts)
    if not count or total[-1] <= limit:
        yield 0, count
        return
    first = 0
    while first < count:
        before = int(total[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(total, before + limit, side="right")))
        yield first, last
        first = last
