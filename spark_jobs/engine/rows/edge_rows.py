"""The rows of results that are edges: a row that enters for one query may exit for another query."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.model.catalog import Stream
from grouping.model.reference import Reference
from grouping.model.sql_type import STRING, SqlType
from spark_jobs.engine.rows.arrays import Ints
from spark_jobs.engine.rows.columns import TakenPlaces
from spark_jobs.engine.rows.row_source import RowSource

__all__ = ["EDGE", "ENTER", "EXIT", "EdgeRows"]

EDGE = "_edge"
"""The field of a result that says which edge the result is; a declared column of this name hides the field."""
ENTER, EXIT = "enter", "exit"


class EdgeRows(TakenPlaces):
    """Rows, each with its edge (`rows.row_source.RowSource`)."""

    def __init__(self, rows: RowSource, row: Ints, exits: NDArray[np.bool_]) -> None:
        """Take rows.

        Args:
            rows: The rows of the batch.
            row: For each row here, the row of the batch; ascending, twice where both edges are results.
            exits: Whether each row here is an exit, else an enter; the enter comes first.
        """
        self.stream: Stream = rows.stream
        super().__init__(rows, row)
        self.count = int(row.size)
        self.exits: NDArray[np.bool_] | None = exits
        self._rows = rows
        self._edges = np.where(exits, EXIT, ENTER)

    @cached_property
    def source(self) -> pa.RecordBatch:
        """The source record of each row's event, for dead letters."""
        return self._rows.source.take(pa.array(self._taken))

    @cached_property
    def number(self) -> Ints | None:
        """The number of each row within its record; None where a record has one row at most."""
        return None if self._rows.number is None else self._rows.number[self._taken]

    @cached_property
    def record_bytes(self) -> NDArray[np.int64]:
        """The bytes that the columns of each row have at most."""
        return self._rows.record_bytes[self._taken]

    @property
    def longest_record(self) -> int:
        """An upper bound of `record_bytes`."""
        return self._rows.longest_record

    def values_at(self, name: Reference, rows: NDArray[np.int32]) -> Sequence[object]:
        """Return a column of some rows, distinct and ascending, as Python values."""
        if self._is_edge(name):
            found: list[object] = self._edges[rows].tolist()
            return found
        distinct, which = np.unique(self._taken[rows], return_inverse=True)
        values = self._rows.values_at(name, distinct.astype(np.int32))
        return values if distinct.size == rows.size else [values[place] for place in which.tolist()]

    def column(self, name: Reference) -> pa.Array:
        """Return a column as a plain Arrow array."""
        if self._is_edge(name):
            return pa.array(self._edges, pa.string())
        return self._rows.column(name).take(pa.array(self._taken))

    def encoded(self, name: Reference) -> pa.Array:
        """Return a column as `column` does, dictionary-encoded where the rows of the batch are."""
        return self.column(name) if self._is_edge(name) else self._rows.encoded(name).take(pa.array(self._taken))

    def type_of(self, name: Reference) -> SqlType:
        """Return the SQL type of a column."""
        return STRING if self._is_edge(name) else self._rows.type_of(name)

    def declares(self, name: Reference) -> bool:
        """Tell whether a source declares the column."""
        return self._rows.declares(name)

    def _is_edge(self, name: Reference) -> bool:
        return name == EDGE and not self._rows.declares(name)
