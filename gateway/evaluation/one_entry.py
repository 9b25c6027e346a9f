"""Constant tables with a single row, for the evaluation of a single query. A worker has its tables in the same form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gateway.evaluation.standing_query import StandingQuery
from grouping.model.group import ConstantRow
from grouping.model.ids import GroupId, SelectId, StreamId
from grouping.model.panes import pack_bounds
from grouping.plan.group import GroupPlan, SelectList
from grouping.store.constant_table import FRAMES, Block, Entry, Segment
from grouping.store.notes import TableVersion
from spark_jobs.engine.constants.constant_cache import ConstantTables, Snapshot

__all__ = ["VERSION", "snapshot_of"]

VERSION = TableVersion(1, 1)


class _OneEntry:
    """Takes the place of the store of constant tables, and returns a single segment with a single row."""

    def __init__(self, standing: StandingQuery, entry: Entry) -> None:
        self._query = standing.query
        self._entry = entry

    def changes(self, stream_id: StreamId, epoch: int, since: int, until: int) -> Iterator[Segment] | None:
        return iter([Segment.of((), [self._entry])])

    def plans(self, stream_id: StreamId, ids: Sequence[GroupId]) -> dict[GroupId, GroupPlan]:
        return {self._query.plan.group_id: self._query.plan}

    def selects(self, stream_id: StreamId, ids: Sequence[SelectId]) -> dict[SelectId, SelectList]:
        return {self._query.select.select_id: self._query.select}


def snapshot_of(standing: StandingQuery, destination: str, mode: str) -> Snapshot:
    """Return the constant tables with the row of a query.

    Args:
        standing: The query.
        destination: The id of the destination, or of the store, for the query's matches.
        mode: How results are delivered (`grouping.store.constant_table.MODES`).
    """
    query, row, bounds = standing.query, standing.query.row, b""
    window = standing.start_ms, standing.expire_ms
    if (kept := query.plan.kept) is not None:
        row = ConstantRow(row.types[: kept.slots], row.values[: kept.slots])
        bounds = pack_bounds([standing.trigger.bound, *((0, at_ms) for at_ms in window if at_ms is not None)])
    block = Block(
        query.plan.group_id,
        row.type_texts,
        query.select.select_id,
        mode,
        edge=FRAMES if query.plan.silence or (query.plan.frames and not query.edge) else query.edge,
    )
    entry = Entry(block, destination, row, 0, 0, *window, bounds)
    return ConstantTables(query.plan.stream_id).at(VERSION, _OneEntry(standing, entry))
