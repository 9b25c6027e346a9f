"""The base of operators whose output rows wait until the watermark of the source partition has passed a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa

from grouping.model.catalog import Stream
from grouping.model.errors import InternalError
from grouping.model.expression import Column, Framed, TableColumn, walk
from grouping.plan.group import GroupPlan, SelectList
from grouping.plan.keyed_rows import KeyedRows
from grouping.plan.row_before import EDGE
from spark_jobs.engine.index import Ints
from spark_jobs.engine.operators.event_clock import EventClock, TimedRows
from spark_jobs.engine.operators.log_state import LogOperator
from spark_jobs.engine.operators.timed_state import ELEMENT, TimedState
from spark_jobs.engine.rows.event_column import VALUE_BYTES, as_plain
from spark_jobs.engine.rows.row_source import RowSource
from spark_jobs.engine.rows.silent_rows import LatestMatches, SilentRows

__all__ = ["TimedOperator", "columns_read"]

Waiting = TypeVar("Waiting", bound=TimedState)
Node = TypeVar("Node", bound=KeyedRows)


@dataclass(frozen=True, slots=True)
class TimedOperator(LogOperator[Waiting], Generic[Waiting, Node]):
    """Makes rows that waited for the watermark (`operators.operator.Operator`).

    All rows of a task must be of one source partition, in its order.
    """

    node: Node
    computation_id: str
    reads: tuple[Column, ...]
    """The columns that groups and SELECT lists read, in the order of their stored texts."""
    clock: EventClock = EventClock()
    """The rule by which rows move the watermark."""
    inner_keys: tuple[TableColumn, ...] = ()
    """For each inner join, a column that is NULL in the row of an event for which no row of the table was found.

    Such a row only moves the watermark, since an inner join makes no row of its event.
    """
    value_bytes: int = VALUE_BYTES
    """The largest number of bytes of a text that an expression computes; a longer text is NULL."""

    def step(
        self, state: Waiting, rows: RowSource, watermark: int | None = None
    ) -> tuple[Waiting, Iterator[SilentRows]]:
        """Take in rows, and return the rows that have become complete; changes the state in place.

        Args:
            state: The state before the rows.
            rows: The rows.
            watermark: Not used, since the rows themselves move the watermark.

        Raises:
            InternalError: An earlier step failed midway.
            Exception: Any exception, since expressions run code of libraries (`faults.FAULTS`).
        """
        if state.torn:
            raise InternalError("a state of an event-time computation cannot be used: an earlier step failed midway")
        with state.changing():
            found = self._taken(state, rows, 0, undoable=True)
        partition = int(rows.partitions[0]) if rows.count else 0
        return state, iter([self.rows(rows.stream, partition, found)])

    def advance(self, state: Waiting, watermark: int, *, undoable: bool = True) -> LatestMatches:
        """Move the watermark to a mark of the clock, and return the rows that have become complete.

        Args:
            state: The state; its position must be that of the mark.
            watermark: The watermark in epoch milliseconds; nothing changes if the state's watermark is later.
            undoable: Whether the state's `undo` can undo the change.
        """
        with state.changing():
            if watermark > state.watermark:
                state.move(watermark, 0, undoable=undoable)
            found = self._ended(state, undoable=undoable)
        return found._replace(completed=np.full(found.due.size, state.position, np.int64)).in_order()

    def fold(self, state: Waiting, rows: RowSource) -> None:
        """Take in rows of the log without making results.

        The state already has the rows below its position; these rows only fill columns that are new in the state.
        """
        with state.changing():
            known = int(np.searchsorted(rows.offsets, state.position))
            if known:
                self._complete(state, rows, known)
            self._taken(state, rows, known, undoable=False)
            state.tidy()

    def rows(self, stream: Stream, partition: int, found: LatestMatches) -> SilentRows:
        """Return completed rows as the row source for the groups over the computation."""
        return SilentRows(stream, self.computation_id, partition, found)

    def _taken(self, state: Waiting, rows: RowSource, known: int, *, undoable: bool) -> LatestMatches:
        """Take in all rows but the first `known`, and return the rows that have become complete, in order."""
        raise NotImplementedError

    def _ended(self, state: Waiting, *, undoable: bool) -> LatestMatches:
        """Remove the rows that are complete at the state's watermark from the state, and return them."""
        raise NotImplementedError

    def _complete(self, state: Waiting, rows: RowSource, known: int) -> None:
        """Fill new columns of the state's rows from the first `known` rows, which the state already has."""
        raise NotImplementedError

    def _counting(self, rows: RowSource, known: int, timed: TimedRows) -> Ints:
        """Return the rows that count: from row `known` on, the rows that are not late and that inner joins keep."""
        counts = ~timed.left_out
        for column in self.inner_keys:
            counts &= rows.column(column).is_valid().to_numpy(zero_copy_only=False)[known:]
        return known + np.flatnonzero(counts)

    def _columns(self, rows: RowSource, places: Ints) -> dict[str, pa.Array]:
        """Return the columns of some rows that groups and SELECT lists read, and the column `ELEMENT`."""
        taken = pa.array(places)
        found = {column.stored: as_plain(rows.column(column.reference).take(taken)) for column in self.reads}
        if rows.number is not None:
            found[ELEMENT] = pa.array(rows.number[places])
        return found

    @property
    def _names(self) -> Iterable[str]:
        """The stored names of the columns of `_columns`."""
        return (*(column.stored for column in self.reads), ELEMENT)


def columns_read(stream: Stream, plan: GroupPlan, select: SelectList) -> dict[str, Column]:
    """Return the columns that a group or a SELECT list reads, by stored name.

    The columns are those of events and of joined tables, and window functions.
    """
    read = (*plan.conjuncts, *(item.expression for item in select.items))
    leaves = (leaf for each in read for leaf in walk(each) if isinstance(leaf, Column))
    found = {leaf.stored: leaf for leaf in leaves if isinstance(leaf.reference, str | TableColumn | Framed)}
    if found.get(EDGE.stored) == EDGE and all(column.name != EDGE.stored for column in stream.columns):
        del found[EDGE.stored]  # a field of the result, not of the event
    return found
