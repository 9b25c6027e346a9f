"""The rows of results that are edges, or changes of a table. A row may enter for one query and exit for another."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.model.catalog import Stream
from grouping.model.expression import Reference, read_reference
from grouping.model.sql_type import STRING, SqlType
from spark_jobs.engine.rows.arrays import Ints
from spark_jobs.engine.rows.columns import TakenPlaces
from spark_jobs.engine.rows.row_source import RowSource
from spark_jobs.engine.rows.rows_before import RowsBefore
from spark_jobs.engine.rows.value_sizes import value_sizes

__all__ = ["DELETE", "EDGE", "ENTER", "EXIT", "INSERT", "KINDS", "KIND_BITS", "SNAPSHOT", "UPDATE", "EdgeRows"]

EDGE = "_edge"
"""The field of a result that says which edge the result is; a declared column of this name hides the field."""
KINDS = ("enter", "exit", "insert", "delete", "update", "snapshot")
"""How a row differs from the previous row of the same key. A delete has the columns of the previous row.

A row of a snapshot is a row of the table as it was when a query began.
"""
ENTER, EXIT, INSERT, DELETE, UPDATE, SNAPSHOT = range(len(KINDS))
KIND_BITS = 3
"""The number of bits that hold a kind."""


class EdgeRows(TakenPlaces):
    """Rows, each with its kind (`rows.row_source.RowSource`)."""

    removals: NDArray[np.bool_] | None = None
    """None, because each row is a result, even if its event removes a row of a table."""

    def __init__(self, rows: RowSource, row: Ints, kinds: NDArray[np.int8], before: RowsBefore | None = None) -> None:
        """Take rows.

        Args:
            rows: The rows of the batch.
            row: For each row here, the row of the batch; ascending. A row of the batch may occur with several kinds.
            kinds: The kind of each row here, as an index into `KINDS`.
            before: The previous rows, which deletes and updates need; None if there are no deletes and no updates.
        """
        self.stream: Stream = rows.stream
        super().__init__(rows, row)
        self.count = int(row.size)
        self.kinds: NDArray[np.int8] | None = kinds
        self._rows = rows
        self._before = before
        self._kinds = kinds
        deleted = np.flatnonzero(kinds == DELETE)
        self._place: Ints | None = None
        """The place of each row's values: the row of the batch; for a delete, `rows.count` plus the place in `before`.

        None if no row is a delete.
        """
        if deleted.size:
            assert before is not None, "a delete has a previous row"
            self._place = row.copy()
            self._place[deleted] = rows.count + np.searchsorted(before.of, row[deleted])

    @cached_property
    def earlier(self) -> EdgeRows:
        """The same rows, except that an update has the values of the previous row."""
        kinds = np.where(self._kinds == UPDATE, DELETE, self._kinds).astype(np.int8)
        return EdgeRows(self._rows, self._taken, kinds, self._before)

    @cached_property
    def source(self) -> pa.RecordBatch:
        """The source record of each row's event, for dead letters."""
        return self._rows.source.take(pa.array(self._taken))

    @cached_property
    def number(self) -> Ints | None:
        """The number of each row within its record; None if a record has at most one row."""
        return None if self._rows.number is None else self._rows.number[self._taken]

    @cached_property
    def record_bytes(self) -> NDArray[np.int64]:
        """An upper bound for the bytes of each row's columns."""
        sizes: NDArray[np.int64] = self._rows.record_bytes[self._taken]
        if self._place is not None:  # a delete's record is small, but its values are those of the previous row
            names = [read_reference(column.name) for column in self.stream.columns]
            sizes = sum((value_sizes(self.column(name)) for name in names), sizes)
        return sizes

    @cached_property
    def longest_record(self) -> int:
        """An upper bound of `record_bytes`."""
        return self._rows.longest_record if self._place is None else int(self.record_bytes.max(initial=0))

    def values_at(self, name: Reference, rows: NDArray[np.int32]) -> Sequence[object]:
        """Return a column of some rows as Python values; `rows` must be distinct and ascend."""
        if self._is_edge(name) or self._place is not None:
            found: list[object] = self.column(name).take(pa.array(rows)).to_pylist()
            return found
        taken = self._taken[rows]
        if (np.diff(taken) > 0).all():
            return self._rows.values_at(name, taken.astype(np.int32))
        distinct, which = np.unique(taken, return_inverse=True)
        values = self._rows.values_at(name, distinct.astype(np.int32))
        return [values[place] for place in which.tolist()]

    def column(self, name: Reference) -> pa.Array:
        """Return a column as a plain Arrow array."""
        if self._is_edge(name):
            return pa.array(np.array(KINDS)[self._kinds], pa.string())
        values = self._rows.column(name)
        if self._place is None or self._before is None:
            return values.take(pa.array(self._taken))
        return pa.concat_arrays([values, self._before.column(name)]).take(pa.array(self._place))

    def encoded(self, name: Reference) -> pa.Array:
        """Return a column as `column` does, but dictionary-encoded if the batch has the column dictionary-encoded."""
        if self._is_edge(name) or self._place is not None:
            return self.column(name)
        return self._rows.encoded(name).take(pa.array(self._taken))

    def type_of(self, name: Reference) -> SqlType:
        """Return the SQL type of a column."""
        return STRING if self._is_edge(name) else self._rows.type_of(name)

    def declares(self, name: Reference) -> bool:
        """Tell whether a source declares the column."""
        return self._rows.declares(name)

    def _is_edge(self, name: Reference) -> bool:
        return name == EDGE and not self._rows.declares(name)
