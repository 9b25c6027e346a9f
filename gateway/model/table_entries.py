"""The entries of a destination in the constant table: the windows of its members and of departed members."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import msgspec

from gateway.model.departures import Departures
from gateway.model.membership import Membership
from gateway.model.records import Destination
from grouping.digests.cursor import Window
from grouping.store.constant_table import FRAMES, Block, Entry, Segment
from grouping.store.snapshot_notes import SnapshotNote

__all__ = ["TableEntries", "rows_of", "snapshot_note", "table_entries"]


class TableEntries(msgspec.Struct, frozen=True):
    """The entries of a destination in the constant table."""

    number: int
    """`Membership.number` of the destination."""
    windows: list[tuple[tuple[int, ...], list[Window]]]
    """Pairs of source offsets, by source partition, and windows of record times. The windows count only for events
    below the offsets; for live members the offsets are empty, and the windows count for all events."""


_NONE = TableEntries(0, [])


def table_entries(membership: Membership | None, leaving: Departures | None) -> TableEntries:
    """Return the entries of a destination; each record time is in at most one entry, so no event is delivered twice.

    A destination with digests of a table's rows has no entries, because changes of the table are not its matches.
    """
    if membership is None and leaving is None:
        return _NONE
    seen = [] if membership is None else membership.seen
    entries: list[tuple[tuple[int, ...], list[Window]]] = [((), seen)] if seen else []
    if leaving is not None:
        entries += leaving.entries(seen)
        return TableEntries(leaving.number, entries) if entries else _NONE
    if membership is None or not entries or membership.destination.of_rows:
        return _NONE
    return TableEntries(membership.number, entries)


def rows_of(destination: Destination, entries: TableEntries, bounds: bytes = b"") -> Iterator[Entry]:
    """Yield the entries as rows of the constant table.

    Args:
        destination: The destination.
        entries: The entries of the destination.
        bounds: The packed bounds of the panes of a store of aggregates (`grouping.model.panes`); else empty.
    """
    if not entries.windows:
        return
    row, edges = destination.row, destination.edges
    mode, partition = destination.written_by
    edge, since = ("", ()) if edges is None else (edges.edge if edges.own else FRAMES, edges.since)
    for until, windows in entries.windows:
        block = _block(destination.group_id, row.type_texts, destination.select_id, mode, until, edge)
        for start, expire in windows:
            yield Entry(
                block,
                destination.destination_id,
                row,
                entries.number,
                partition,
                start,
                expire,
                bounds,
                since,
            )


def snapshot_note(membership: Membership) -> SnapshotNote | None:
    """Return the note of the snapshot that a destination still lacks; None if it lacks none."""
    destination = membership.destination
    edges = destination.edges
    if edges is None or edges.due_snapshot is None:
        return None
    entries = TableEntries(membership.number, [((), [(None, None)])])
    return SnapshotNote(
        destination.stream_id,
        edges.due_snapshot.subscriber,
        edges.due_snapshot.name,
        edges.due_snapshot.at_ms,
        edges.since,
        *destination.written_by,
        Segment.of((), rows_of(destination, entries)).encode(),
    )


_block = lru_cache(maxsize=1_000)(Block)
"""The block of an entry, cached because thousands of new entries have equal blocks."""
