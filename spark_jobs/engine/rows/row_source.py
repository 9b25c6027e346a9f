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
"""Bits of the number of a joined row within its event; the number of an element within its record is above them."""


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
        """The number of each row within its record, from 0; None where a record has one at most."""

    @property
    def kinds(self) -> NDArray[np.int8] | None:
        """How each row differs from the row before (`rows.edge_rows`); None where each match is a result."""

    @property
    def removals(self) -> NDArray[np.bool_] | None:
        """Whether each row is the removal of a table's row, which is no match; None where none is."""

    @property
    def record_bytes(self) -> NDArray[np.int64]:
        """An upper bound for the bytes of each row's columns, each column counted once."""

    @property
    def longest_record(self) -> int:
        """The largest of `record_bytes`."""

    def values_at(self, name: Reference, rows: NDArray[np.int32]) -> Sequence[object]:
        """Return a declared column of some rows, distinct and ascending, as Python values; don't change the list."""

    def type_of(self, name: Reference) -> SqlType:
        """Return the SQL type of a column or of one of the record's own fields."""

    def declares(self, name: Reference) -> bool:
        """Tell whether a source declares the column (rather than every record having it)."""
