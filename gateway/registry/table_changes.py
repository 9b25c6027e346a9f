"""The changes of a table as a stream. The stream begins with the first CQ that reads it, and ends with the table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gateway.state.catalog_records import pause_record, source_record
from gateway.state.work import CatalogChange
from gateway.state.working_copy import WorkingCopy
from gateway.topics.positions import TopicEnds
from grouping.model.catalog import Stream
from grouping.model.ids import StreamId
from grouping.model.query import CreateCq, Edge
from grouping.model.refusals import unsupported
from grouping.model.table import Table
from grouping.model.trigger import ChangeBased, TimerBased, Trigger
from grouping.plan.group import CompiledQuery
from grouping.plan.table_changes import changes_id, is_changes, table_changes

__all__ = ["TableChanges", "check_row_ticks", "check_unstarted", "end_changes"]


class TableChanges:
    """Adds the stream of a table's changes to the unit of work when a CQ needs this stream."""

    def __init__(self, working: WorkingCopy, positions: TopicEnds) -> None:
        self._working = working
        self._positions = positions

    @contextmanager
    def opened(self, stream_id: StreamId) -> Iterator[list[CatalogChange]]:
        """Add the stream of a table's changes, if it is not live yet; an error in the block removes the stream again.

        Args:
            stream_id: The stream that the CREATE in the block reads; nothing happens for a declared stream.

        Yields:
            The catalog records of a new stream, to be written before the CQ's records.

        Raises:
            InputError: ``unavailable``: the end of a partition of the table's topic is unknown.
        """
        unit = self._working.unit
        if stream_id in self._working.inventory.streams or (table := self._table(stream_id)) is None:
            yield []
            return
        stream = self._positions.starting_now(table_changes(table))
        unit.sources.add_stream(stream)
        try:
            yield [source_record(stream)]
        except BaseException:
            unit.sources.remove_stream(stream_id)
            raise

    def stream_of(self, stream_id: StreamId) -> Stream:
        """Return a live stream, or the stream of changes that the first CQ over only a table would make live."""
        live = self._working.inventory.streams.get(stream_id)
        if live is not None:
            return live
        table = self._table(stream_id)
        assert table is not None, "queries are over live sources"
        return table_changes(table)

    def _table(self, stream_id: StreamId) -> Table | None:
        tables = self._working.inventory.tables.values()
        return next((table for table in tables if changes_id(table.table_id) == stream_id), None)


def end_changes(working: WorkingCopy, table: Table) -> list[CatalogChange]:
    """End the stream of the changes of a dropped table, and return the catalog records. No CQ may read the stream."""
    stream = working.inventory.streams.get(changes_id(table.table_id))
    if stream is None:
        return []
    ended = working.unit.end_pauses(stream.stream_id)
    working.unit.sources.remove_stream(stream.stream_id)
    pauses = [pause_record(stream.stream_id, group_id, None) for group_id in ended]
    return [source_record(stream, gone=True), *pauses]


def check_unstarted(query: CompiledQuery, create: CreateCq) -> None:
    """Refuse WITH SNAPSHOT with START: START would exclude the rows, since their records are older.

    Raises:
        InputError: ``unsupported-query``.
    """
    if query.snapshot and create.start is not None:
        raise unsupported(
            "WITH SNAPSHOT with START",
            "START excludes older records, and the rows of a snapshot come from older records.",
            "Leave START out.",
        )


def check_row_ticks(stream_id: StreamId, edge: Edge, trigger: Trigger) -> None:
    """Check that a query over only a table has EMIT, or EVERY without OVER LAST.

    Args:
        stream_id: The stream that the query reads.
        edge: The query's EMIT; "" for a query without EMIT.
        trigger: The query's trigger.

    Raises:
        InputError: ``unsupported-query``.
    """
    if edge or not is_changes(stream_id):
        return
    if isinstance(trigger, ChangeBased):
        raise unsupported(
            "a table without a stream",
            "Results come from events of a stream, from changes of a table, or from rows of a table at ticks.",
            "EMIT CHANGES after the query reports the changes of the rows, and EVERY '1 day' reports the rows at each "
            "tick; or join the table with a stream.",
        )
    if isinstance(trigger, TimerBased) and trigger.over is not None:
        raise unsupported(
            "OVER LAST over a table alone",
            "A digest holds the rows of the table at the tick; earlier rows are not stored.",
            "Leave OVER LAST out.",
        )
