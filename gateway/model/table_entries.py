"""The entries of a destination in the constant table: the windows of its members, and of members that have left."""

from __future__ import annotations

from collections.abc import Iterator

from gateway.model.departures import Departures
from gateway.model.membership import Membership
from gateway.model.records import Destination
from grouping.digests.cursor import Window
from grouping.store.constant_table import Block, Entry

__all__ = ["TableEntries", "rows_of", "table_entries"]

TableEntries = tuple[int, list[tuple[tuple[int, ...], list[Window]]]]
"""Where the matches are counted, and the windows by the source offsets that bound them (none of live members)."""
_NONE: TableEntries = (0, [])


def table_entries(membership: Membership | None, leaving: Departures | None) -> TableEntries:
    """Return the entries of a destination; each record time is in one of them, so that it gets an event once."""
    seen = [] if membership is None else membership.seen
    entries: list[tuple[tuple[int, ...], list[Window]]] = [((), seen)] if seen else []
    if leaving is not None:
        entries += leaving.entries(seen)
        return (leaving.number, entries) if entries else _NONE
    return (membership.number, entries) if membership is not None and entries else _NONE


def rows_of(destination: Destination, entries: TableEntries) -> Iterator[Entry]:
    """Yield the entries as the rows that they are in the table."""
    number, bounded = entries
    if not bounded:
        return
    row = destination.row
    for until, windows in bounded:
        block = Block(
            destination.group_id, row.type_texts, destination.select_id, destination.mode, until, destination.pane
        )
        for start, expire in windows:
            yield Entry(block, destination.destination_id, row, number, destination.partition, start, expire)
