"""Rows of a batch with further columns, such as the results of window functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.model.catalog import Stream
from grouping.model.expression import Reference
from grouping.model.sql_type import SqlType
from spark_jobs.engine.index import Ints
from spark_jobs.engine.rows.columns import TakenPlaces
from spark_jobs.engine.rows.row_source import RowSource
from spark_jobs.engine.rows.value_sizes import value_sizes

__all__ = ["ExtendedRows"]


class ExtendedRows(TakenPlaces):
    """Rows of a batch with further columns (`rows.row_source.RowSource`)."""

    kinds: NDArray[np.int8] | None = None
    removals: NDArray[np.bool_] | None = None
    """See `rows.row_source.RowSource` for both."""

    def __init__(self, rows: RowSource, taken: Ints, values: Mapping[Reference, tuple[SqlType, pa.Array]]) -> None:
        """Take rows.

        Args:
            rows: The rows of the batch.
            taken: The rows of the batch to take, ascending; for frames, the rows for which WHERE is TRUE.
            values: The types and values of the further columns.
        """
        super().__init__(rows, taken)
        self.stream: Stream = rows.stream
        self.count = int(taken.size)
        self.event = taken
        """The place of each row in the batch."""
        self._rows = rows
        self._values = values
        self._same = self.count == rows.count

    @cached_property
    def source(self) -> pa.RecordBatch:
        """The source record of each row's event, for dead letters."""
        return self._rows.source if self._same else self._rows.source.take(pa.array(self._taken))

    @cached_property
    def number(self) -> Ints | None:
        """The number of each row within its record; None if a record has at most one row."""
        return None if self._rows.number is None else self._rows.number[self._taken]

    @cached_property
    def record_bytes(self) -> NDArray[np.int64]:
        """An upper bound for the bytes of each row's columns, including the further columns."""
        own = self._rows.record_bytes[self._taken]
        texts = [values for _, values in self._values.values() if pa.types.is_string(values.type)]
        texts += [values for _, values in self._values.values() if pa.types.is_binary(values.type)]
        return own + sum((value_sizes(values) for values in texts), np.zeros(self.count, np.int64))

    @cached_property
    def longest_record(self) -> int:
        """The largest of `record_bytes`."""
        return int(self.record_bytes.max(initial=0))

    def values_at(self, name: Reference, rows: NDArray[np.int32]) -> Sequence[object]:
        """Return a column of some rows as Python values; `rows` must be distinct and ascend."""
        if name in self._values:
            found: list[object] = self._values[name][1].take(pa.array(rows)).to_pylist()
            return found
        return self._rows.values_at(name, self._taken[rows].astype(np.int32))

    def column(self, name: Reference) -> pa.Array:
        """Return a column as a plain Arrow array."""
        if name in self._values:
            return self._values[name][1]
        column = self._rows.column(name)
        return column if self._same else column.take(pa.array(self._taken))

    def encoded(self, name: Reference) -> pa.Array:
        """Return a column as `column` does, but dictionary-encoded if the batch has the column dictionary-encoded."""
        if name in self._values:
            return self._values[name][1]
        column = self._rows.encoded(name)
        return column if self._same else column.take(pa.array(self._taken))

    def type_of(self, name: Reference) -> SqlType:
        """Return the SQL type of a column."""
        return self._values[name][0] if name in self._values else self._rows.type_of(name)

    def declares(self, name: Reference) -> bool:
        """Tell whether a source declares the column."""
        return name not in self._values and self._rows.declares(name)
