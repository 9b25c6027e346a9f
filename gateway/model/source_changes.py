"""The streams, tables and views that a unit of work adds and removes. No I/O."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from gateway.model.dependencies import DependencyCounts, DependencyKind
from gateway.model.inventory import Inventory
from grouping.model.catalog import Stream
from grouping.model.ids import GroupId, StreamId
from grouping.model.table import DroppedTable, Table, View
from grouping.store.keys import FieldHash

__all__ = ["SourceChanges"]


class SourceChanges:
    """The changes of a unit of work to streams, tables and views."""

    def __init__(self, inventory: Inventory, fields: dict[tuple[FieldHash, str], bytes | None]) -> None:
        """Begin without changes.

        Args:
            inventory: The live sources; each change is also made there, immediately.
            fields: The unit's writes to fields of Redis hashes; the value None removes the field.
        """
        self._inventory = inventory
        self._fields = fields
        self.streams: dict[StreamId, bool] = {}
        """Id → True for an added or replaced stream, False for a removed stream."""
        self.redeclared: set[StreamId] = set()
        """Streams with a changed declaration."""

    def add_stream(self, stream: Stream) -> None:
        """Make a stream live."""
        self._inventory.streams[stream.stream_id] = stream
        self._inventory.versions[stream.stream_id] = 0
        self._inventory.dependencies[stream.stream_id] = DependencyCounts()
        self.streams[stream.stream_id] = True

    def replace_stream(self, stream: Stream) -> None:
        """Store the changed declaration of a live stream."""
        if self._inventory.streams[stream.stream_id].revision != stream.revision:
            self.redeclared.add(stream.stream_id)
        self._inventory.streams[stream.stream_id] = stream
        self.streams[stream.stream_id] = True

    def remove_stream(self, stream_id: StreamId) -> None:
        """Remove a stream that no CQ uses."""
        self._inventory.remove_stream(stream_id)
        self.streams[stream_id] = False

    def put_table(self, table: Table) -> None:
        """Make a table live, or store its changes."""
        self._inventory.tables[table.table_id] = table
        self._fields["tables", table.table_id] = msgspec.json.encode(table)

    def remove_table(self, table_id: str, groups: Iterable[tuple[StreamId, GroupId]] = ()) -> None:
        """Remove a table that no query reads.

        Args:
            table_id: The table.
            groups: Groups that join the table and have no CQ any more, each with its stream; micro-batches under way
                may still evaluate them.
        """
        table, joining = self._inventory.tables.pop(table_id, None), tuple(groups)
        self._fields["tables", table_id] = None
        if table is not None and joining:
            dropped = self._inventory.dropped_tables[table_id] = DroppedTable(table, joining)
            self._fields["dropped-tables", table_id] = msgspec.json.encode(dropped)

    def lose_table(self, table_id: str) -> None:
        """Note that the topic of a dropped table is gone, so that no micro-batch waits for the topic."""
        lost = msgspec.structs.replace(self._inventory.dropped_tables[table_id], lost=True)
        self._inventory.dropped_tables[table_id] = lost
        self._fields["dropped-tables", table_id] = msgspec.json.encode(lost)

    def add_view(self, view: View) -> None:
        """Make a view live."""
        self._inventory.views[view.name.casefold()] = view
        self._fields["views", view.name.casefold()] = msgspec.json.encode(view)

    def remove_view(self, name: str) -> None:
        """Remove a view that no query reads."""
        self._inventory.views.pop(name.casefold(), None)
        self._fields["views", name.casefold()] = None

    def view_cqs(self, name: str) -> int:
        """Return how many CQs read a view."""
        folded, streams = name.casefold(), self._inventory.dependencies.values()
        return sum(counts[DependencyKind.VIEW].get(folded, 0) for counts in streams)
