"""The rows that results are made of: the events of a batch, or the rows of a computation over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.model.catalog import Stream
from grouping.model.expression import Reference
from grouping.model.sql_type import SqlType
from spark_jobs.engine.rows.columns import PlacedColumns

__all__ = ["NUMBER_BITS", "RowSource"]

NUMBER_BITS = 31
"""How many low bits have the number of a joined row within its event. The higher bits have the number of the record's
element."""


class RowSource(PlacedColumns, Protocol):
    """Decoded rows, numbered from 0, each of which belongs to one event, such as `Events` and `JoinedEvents`."""

    @property
    def stream(self) -> Stream:
        """The stream of the events."""

    @property
    def source(self) -> pa.RecordBatch:
        """The source record of each row's event, for dead letters."""

    @property
    def number(self) -> NDArray[np.int64] | None:
        """The number of each row within its record, from 0; None if a record has at most one row."""

    @property
    def kinds(self) -> NDArray[np.int8] | None:
        """How each row differs from its key's previous row (`rows.edge_rows.KINDS`); None if rows have no kinds.

        Rows have kinds only if they are results of queries with EMIT.
        """

    @property
    def removals(self) -> NDArray[np.bool_] | None:
        """Whether each row removes a row of a table; a removal is no match. None if no row is a removal."""

    @property
    def record_bytes(self) -> NDArray[np.int64]:
        """An upper bound for the bytes of each row's columns, each column counted once."""

    @property
    def longest_record(self) -> int:
        """The largest of `record_bytes`."""

    def values_at(self, name: Reference, rows: NDArray[np.int32]) -> Sequence[object]:
        """Return a declared column of some rows as Python values.

        Args:
            name: The column.
            rows: The rows, which must be distinct and ascending.

        Returns:
            The values; the list may be shared, so the caller must not change it.
        """

    def type_of(self, name: Reference) -> SqlType:
        """Return the SQL type of a column or of one of the record's own fields."""

    def declares(self, name: Reference) -> bool:
        """Tell whether the stream or a table declares the column; the fields that every record has are not declared."""
