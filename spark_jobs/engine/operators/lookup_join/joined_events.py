"""The rows of a computation: events joined with rows of tables. A column is built when it is first read.

`JoinedEvents` has the interface of `Events`, so a group over joined rows is evaluated like a group over events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.model.catalog import Stream
from grouping.model.expression import Reference, TableColumn
from grouping.model.sql_type import SqlType
from grouping.plan.lookup_join import LookupJoin
from spark_jobs.engine.index import Ints
from spark_jobs.engine.index.key_tuples import plain
from spark_jobs.engine.operators.lookup_join.numbers import NO_NUMBERS, Numbers
from spark_jobs.engine.operators.lookup_join.table_view import TableView
from spark_jobs.engine.operators.lookup_join.undecided_rows import UndecidedRows
from spark_jobs.engine.rows.events import Events
from spark_jobs.engine.rows.partners import Partners
from spark_jobs.engine.rows.row_source import NUMBER_BITS

__all__ = ["JoinedEvents"]


class JoinedEvents:
    """Joined rows. Each consists of an event and, for each table, a row of the table or none.

    Joined rows are ordered by event, then by the keys of the tables' rows.
    """

    kinds: NDArray[np.int8] | None = None
    """See `rows.row_source.RowSource`."""

    def __init__(
        self,
        events: Events,
        event: Ints,
        rows: Mapping[str, tuple[TableView, Ints]],
        *,
        several: bool = False,
        numbers: Numbers = NO_NUMBERS,
        undecided: Mapping[str, UndecidedRows] | None = None,
    ) -> None:
        """Keep the pairs of events and rows of tables.

        Args:
            events: The decoded events.
            event: The event of each joined row; ascending.
            rows: By prefix of the table's columns: the table, and for each joined row the table's row; -1 for none.
            several: Whether an event may have several rows.
            numbers: The numbers of the rows within their events.
            undecided: By prefix, the rows of each LEFT JOIN with constants in ON.
        """
        self.stream: Stream = events.stream
        self.count = int(event.size)
        self.event = event
        self._events = events
        self._rows = dict(rows)
        self._several = several
        self._numbers = numbers
        self._undecided = dict(undecided or {})
        self._same = self.count == events.count and not several
        self._arrays: dict[Reference, pa.Array] = {}
        self._encoded: dict[Reference, pa.Array] = {}

    @classmethod
    def of_events(cls, events: Events) -> JoinedEvents:
        """Return the events before anything is joined with them."""
        return cls(events, np.arange(events.count), {})

    def meeting(self, probe: Ints, node: LookupJoin, view: TableView, row: Ints) -> JoinedEvents:
        """Return the rows that a further join makes of these rows.

        Args:
            probe: For each new row, the row that it is made of; ascending. A row that is not in `probe` is left out.
            node: The join.
            view: The table.
            row: For each new row, the row of the table; -1 for none.
        """
        rows = {name: (table, taken[probe]) for name, (table, taken) in self._rows.items()}
        rows[node.prefix] = (view, row)
        undecided = {name: before.taken(self, probe) for name, before in self._undecided.items()}
        if node.undecided:
            undecided[node.prefix] = UndecidedRows.of(probe, row)
        event = self.event[probe]
        return JoinedEvents(
            self._events,
            event,
            rows,
            several=self._several or not node.single,
            numbers=self._numbers.after(node, event, probe, row),
            undecided=undecided,
        )

    def partners(self, prefix: str, rows: NDArray[np.integer]) -> Partners:
        """Return the partners of some rows in a LEFT JOIN with constants in ON (`rows.partners`).

        Args:
            prefix: The prefix of the join's table.
            rows: The rows.
        """
        return self._undecided[prefix].partners(rows)

    @cached_property
    def number(self) -> Ints | None:
        """The number of each row within its event, from 0; None if a query can have at most one row of an event.

        Two rows of an event have the same number only if no query can have both (`Numbers`). If events are elements of
        a record's array, the number also contains the element's number.
        """
        number, of_event = self._numbers.of(self.event), self._events.number
        if of_event is None:
            return number
        # The element's number is in the high bits, so numbers ascend by element, then by row.
        own = self._by_row(of_event)
        return own if number is None else (own << NUMBER_BITS) | number

    @cached_property
    def removals(self) -> NDArray[np.bool_] | None:
        """Whether the event of each row removes a row of a table; None if no event does."""
        removals = self._events.removals
        return None if removals is None else self._by_row(removals)

    @cached_property
    def source(self) -> pa.RecordBatch:
        """The source record of each row, for dead letters."""
        return self._events.source if self._same else self._events.source.take(pa.array(self.event))

    @cached_property
    def partitions(self) -> NDArray[np.int32]:
        """The source partition of each row's event."""
        return self._by_row(self._events.partitions)

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """The position of each row's event."""
        return self._by_row(self._events.offsets)

    @cached_property
    def time_ms(self) -> NDArray[np.int64]:
        """The record time of each row's event, epoch milliseconds."""
        return self._by_row(self._events.time_ms)

    @cached_property
    def record_bytes(self) -> NDArray[np.int64]:
        """An upper bound for the bytes of each row's columns: the columns of its event and of its rows of tables."""
        return self._by_row(self._events.record_bytes) + sum(view.longest_row for view, _ in self._rows.values())

    @cached_property
    def longest_record(self) -> int:
        """The largest of `record_bytes`."""
        return int(self.record_bytes.max(initial=0))

    def values_at(self, name: Reference, rows: NDArray[np.int32]) -> Sequence[object]:
        """Return a column of some rows as Python values; `rows` must be distinct and ascend."""
        if isinstance(name, TableColumn):
            view, taken = self._rows[name.prefix]
            found: list[object] = view.take(name.name, taken[rows]).to_pylist()
            return found
        if self._same:
            return self._events.values_at(name, rows)
        values = self._events.values(name)
        return [values[event] for event in self.event[rows].tolist()]

    def column(self, name: Reference) -> pa.Array:
        """Return a column of the stream or of a table, or a field of the source record, as a plain Arrow array."""
        array = self._arrays.get(name)
        if array is None:
            array = self._arrays[name] = plain(self.encoded(name))
        return array

    def encoded(self, name: Reference) -> pa.Array:
        """Return a column as `column` does; a table's column with repeated texts is dictionary-encoded."""
        array = self._encoded.get(name)
        if array is None:
            if isinstance(name, TableColumn):
                view, rows = self._rows[name.prefix]
                array = view.encoded(name.name, rows)
            else:
                array = self._events.column(name)
                array = array if self._same else array.take(pa.array(self.event))
            self._encoded[name] = array
        return array

    def type_of(self, name: Reference) -> SqlType:
        """Return the SQL type of a column."""
        if isinstance(name, TableColumn):
            return self._rows[name.prefix][0].type_of(name.name)
        return self._events.type_of(name)

    def declares(self, name: Reference) -> bool:
        """Tell whether the stream or a table declares the column; fields that every record has are not declared."""
        return isinstance(name, TableColumn) or self._events.declares(name)

    def _by_row(self, of_events: NDArray[Any]) -> NDArray[Any]:
        """Return for each row the value of its event."""
        return of_events if self._same else of_events[self.event]
