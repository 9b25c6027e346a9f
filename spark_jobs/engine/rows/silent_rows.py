"""Rows that waited for the watermark. The id of a result of such a row names the computation, not an event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.model.catalog import Stream
from grouping.model.expression import Reference, stored_reference
from grouping.model.sql_type import STRING, SqlType
from grouping.plan.lasting import LastingMatches
from spark_jobs.engine.rows.arrays import Ints
from spark_jobs.engine.rows.edge_rows import EDGE, KINDS
from spark_jobs.engine.rows.events import arrow_type
from spark_jobs.engine.rows.extremes import extremes_name
from spark_jobs.engine.rows.row_source import RowSource
from spark_jobs.engine.rows.rows_before import RowsBefore, StayRows
from spark_jobs.engine.rows.value_sizes import value_sizes

__all__ = [
    "AFTER",
    "BEFORE",
    "BEFORE_OFFSET",
    "CHAIN",
    "ENTERED",
    "IS_MATCH",
    "KIND",
    "LEAST",
    "NOW",
    "LastingRows",
    "LatestMatches",
    "SilentRows",
    "cause_offsets",
]

KIND, NOW, BEFORE, BEFORE_OFFSET, IS_MATCH, AFTER = "#kind", "#now", "#before", "#before_offset", "#is_match", "#after"
"""Columns of rows with which stays began or ended. With these columns, one look-up finds the queries with such a stay.

`KIND` is the kind of the edge. `NOW` is the value of the row; for an enter without UNTIL, `NOW` is the lowest value
within the interval. `BEFORE` and `BEFORE_OFFSET` are the value and the offset of the previous row; for an exit, they
are the lowest value of the stay and the offset of the row with which the stay began. `IS_MATCH` is 1 if `NOW` is a
match for some constants, else 0. `AFTER` is an offset: the row is only for queries that began after this offset.
"""

CHAIN, ENTERED, LEAST = "#chain", "#entered", "#least"
"""Further columns of these rows for queries with UNTIL.

`CHAIN` has the packed extremes before the row with which the stays began, `ENTERED` the value of that row as an
integer (NULL for stays that began before all waiting rises), and `LEAST` the lowest value of the interval.
"""

_OFFSET_BITS = 21
"""The number of low bits of a position that are bits of the offset."""
_LATEST_MS = (1 << 42) - 1
"""The latest time in a position: the year 2109."""


class LatestMatches(NamedTuple):
    """Rows of keys that waited for the watermark, each with the time at which its interval ended."""

    due: Ints
    """The event time of the row plus the interval, in epoch milliseconds."""
    causes: Ints
    """The offset of the row."""
    completed: Ints
    """The offset of the event that moved the watermark to `due`, or the offset of the next event if a mark did so."""
    number: Ints | None
    """The number of the row among the elements of its record; None if a record is one row."""
    columns: Mapping[str, pa.Array]
    """The columns of the rows by stored name."""
    types: Mapping[str, SqlType]
    """The types of all columns; a column that `columns` lacks is NULL."""

    @property
    def positions(self) -> Ints:
        """The position of each row in its partition: the bits of `due`, then the low bits of the row's offset.

        A position depends only on the row and the interval, so a row has the same position whenever it is evaluated.
        """
        times = np.clip(self.due, 0, _LATEST_MS)
        return (times << _OFFSET_BITS) | (self.causes & ((1 << _OFFSET_BITS) - 1))

    @classmethod
    def joined(cls, parts: Sequence[LatestMatches]) -> LatestMatches:
        """Return the rows of all parts; there must be at least one part."""
        types = parts[0].types
        number = None
        if any(part.number is not None for part in parts):
            numbers = [np.zeros(part.due.size, np.int64) if part.number is None else part.number for part in parts]
            number = np.concatenate(numbers)
        columns = {name: pa.concat_arrays([part.column(name) for part in parts]) for name in types}
        due, causes, completed = (
            np.concatenate(arrays)
            for arrays in zip(*((part.due, part.causes, part.completed) for part in parts), strict=True)
        )
        return cls(due, causes, completed, number, columns, types)

    def in_order(self) -> LatestMatches:
        """Return the rows in the order of their positions."""
        number = np.zeros(self.due.size, np.int64) if self.number is None else self.number
        order = np.lexsort((number, self.positions))
        places = pa.array(order)
        columns = {name: self.column(name).take(places) for name in self.types}
        own = None if self.number is None else self.number[order]
        return LatestMatches(self.due[order], self.causes[order], self.completed[order], own, columns, self.types)

    def column(self, name: str) -> pa.Array:
        """Return a column; all values are NULL if `columns` lacks it."""
        kind = arrow_type(self.types[name])
        values = self.columns.get(name)
        if values is None:
            return pa.nulls(self.due.size, kind)
        return values if values.type == kind else values.cast(kind)


class SilentRows:
    """Rows of keys that fell silent (`rows.row_source.RowSource`). The time of a row is the end of its interval."""

    kinds: NDArray[np.int8] | None = None
    removals: NDArray[np.bool_] | None = None
    """See `rows.row_source.RowSource` for both."""

    def __init__(self, stream: Stream, computation_id: str, partition: int, found: LatestMatches) -> None:
        """Take rows.

        Args:
            stream: The stream of the events.
            computation_id: The source of the results.
            partition: The source partition of the rows.
            found: The rows, in the order of their positions.
        """
        self.stream = stream
        self.computation_id = computation_id
        self.count = int(found.due.size)
        self.partitions: NDArray[np.int32] = np.full(self.count, partition, np.int32)
        self.offsets = found.completed
        self.time_ms = found.due
        self.number = found.number
        self.causes = found.causes
        """The offset of each row."""
        self.positions = found.positions
        """The position of each result in its partition."""
        self._found = found

    @cached_property
    def source(self) -> pa.RecordBatch:
        """The partition and offset of each row's source record, with NULL as key and value, for dead letters."""
        columns = {
            "key": pa.nulls(self.count, pa.binary()),
            "value": pa.nulls(self.count, pa.binary()),
            "partition": pa.array(self.partitions),
            "offset": pa.array(self.causes - self.stream.base),
        }
        return pa.RecordBatch.from_pydict(columns)

    @cached_property
    def record_bytes(self) -> NDArray[np.int64]:
        """An upper bound for the bytes of each row's columns."""
        return sum(map(value_sizes, self._found.columns.values()), np.zeros(self.count, np.int64))

    @cached_property
    def longest_record(self) -> int:
        """The largest of `record_bytes`."""
        return int(self.record_bytes.max(initial=0))

    def values_at(self, name: Reference, rows: NDArray[np.int32]) -> Sequence[object]:
        """Return a column of some rows as Arrow's Python values."""
        found: list[object] = self.column(name).take(pa.array(rows)).to_pylist()
        return found

    def column(self, name: Reference) -> pa.Array:
        """Return a column as a plain Arrow array."""
        return self._found.columns[stored_reference(name)]

    def encoded(self, name: Reference) -> pa.Array:
        """Return the same array as `column`: no dictionary of repeated values is known here."""
        return self.column(name)

    def type_of(self, name: Reference) -> SqlType:
        """Return the SQL type of a column."""
        return self._found.types[stored_reference(name)]

    def has(self, name: Reference) -> bool:
        """Tell whether the rows have a column."""
        return stored_reference(name) in self._found.types

    def declares(self, name: Reference) -> bool:
        """Return False, so that every column is read as an Arrow array."""
        return False


class LastingRows(SilentRows):
    """Rows with which keys enter and stay in, or leave after such a stay (`rows.row_source.RowSource`)."""

    def __init__(
        self,
        stream: Stream,
        computation_id: str,
        partition: int,
        found: LatestMatches,
        node: LastingMatches,
        stays: StayRows | None = None,
    ) -> None:
        """Take rows, which have the columns `KIND`, `NOW`, `BEFORE`, `BEFORE_OFFSET`, `IS_MATCH` and `AFTER`.

        Args:
            stream: The stream of the events.
            computation_id: The source of the results.
            partition: The source partition of the rows.
            found: The rows, in the order of their positions.
            node: The computation's node.
            stays: The stays that began or ended with the rows, for a node with UNTIL.
        """
        super().__init__(stream, computation_id, partition, found)
        self.edges = found.columns[KIND].to_numpy().astype(np.int8)
        """The kind of each row."""
        self.kinds: NDArray[np.int8] | None = self.edges
        values, kept = dict(found.columns), {}
        before_offset = found.columns[BEFORE_OFFSET].to_numpy()
        of = np.flatnonzero(before_offset >= 0)
        if node.height is not None:
            name = node.height.column.stored
            values[name], kept[name] = values[NOW], values[BEFORE].take(pa.array(of))
        self.now = SilentRows(stream, computation_id, partition, found._replace(columns=values))
        """The same rows, but with `NOW` as their value.

        For an enter without UNTIL, `NOW` is the lowest value of the interval. So an entry that matches this value also
        matches all rows that followed within the interval.
        """
        self.now.removals = found.columns[IS_MATCH].to_numpy() == 0
        keys, after = [column.stored for column in node.by], found.columns[AFTER].to_numpy()
        extremes = {}
        if stays is not None and node.height is not None:
            extremes[extremes_name(node.height.column, above=node.height.above)] = stays.extremes
        self.before = RowsBefore(
            self.now, of, self.count + np.arange(of.size), before_offset[of], kept, keys, extremes, after, stays
        )
        """The rows with `BEFORE` as their value, if the previous row was a match for some constants.

        For an exit, `BEFORE` is the lowest value of the stay.
        """

    def column(self, name: Reference) -> pa.Array:
        """Return a column as a plain Arrow array."""
        if name == EDGE and not self.has(name):
            return pa.array(np.array(KINDS)[self.edges], pa.string())
        return super().column(name)

    def type_of(self, name: Reference) -> SqlType:
        """Return the SQL type of a column."""
        return STRING if name == EDGE and not self.has(name) else super().type_of(name)


def cause_offsets(rows: RowSource) -> Ints:
    """Return the offset of each row's own event.

    For rows that waited, `offsets` has the offsets of the events that moved the watermark, not those of the rows.
    """
    return rows.causes if isinstance(rows, SilentRows) else rows.offsets
