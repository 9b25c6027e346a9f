"""Matches of the rows of silent keys. An entry matches only rows that came after the entry began."""

from __future__ import annotations

from collections.abc import Iterator

from grouping.model.errors import InternalError
from grouping.model.ids import GroupId
from spark_jobs.engine.constants.constant_cache import Snapshot
from spark_jobs.engine.constants.load import Loads
from spark_jobs.engine.match.evaluate import ConstantLookup, event_slices, looked_up
from spark_jobs.engine.match.key_source import KeySource
from spark_jobs.engine.match.matched_pairs import MatchedPairs, assembled
from spark_jobs.engine.match.table_lookup import PAIRS
from spark_jobs.engine.rows.event_column import VALUE_BYTES, EventColumns
from spark_jobs.engine.rows.matches import Matches
from spark_jobs.engine.rows.silent_rows import SilentRows

__all__ = ["silent_matches"]


def silent_matches(
    snapshot: Snapshot,
    rows: SilentRows,
    limit: int = PAIRS,
    loads: Loads | None = None,
    value_bytes: int = VALUE_BYTES,
) -> Iterator[Matches]:
    """Yield the matches of rows in slices, so that the memory is bounded for any number of matches.

    Args:
        snapshot: The tables of groups over one computation with silences.
        rows: The rows.
        limit: The largest number of candidate pairs in a slice, unless a single row has more.
        loads: Counts the costs of each table; None to count nothing.
        value_bytes: The largest size of a text that an expression computes; a longer text is NULL.

    Raises:
        Exception: Any exception, because predicates run code of libraries (`faults.FAULTS`).
    """
    events, groups = EventColumns(KeySource(rows, value_bytes), value_bytes), dict[GroupId, int]()
    lookups = list(looked_up(snapshot, rows, events, loads or Loads(), groups))
    for first, last in event_slices(lookups, rows.count, limit):
        pairs = [found for lookup in lookups for found in _pairs(lookup, rows, events, first, last)]
        yield assembled(pairs, tuple(groups), snapshot.selects, snapshot.select_of, snapshot.mode_of)


def _pairs(
    lookup: ConstantLookup, rows: SilentRows, events: EventColumns, first: int, last: int
) -> Iterator[MatchedPairs]:
    begins = lookup.rows.begins
    if begins is None:
        raise InternalError("an entry over silences has no begin")
    for row, entry in lookup.pairs(events, first, last):
        begun = begins.at(entry, rows.partitions[row]) <= rows.causes[row]
        entries = entry[begun]
        yield MatchedPairs.of(row[begun], lookup.rows, entries, lookup.group_of(entries))
