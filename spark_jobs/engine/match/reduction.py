"""The steps of reduce: the next element of each array with the result so far."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from grouping.model.reference import Reference
from spark_jobs.engine.rows.columns import Columns
from spark_jobs.engine.rows.event_column import as_plain

__all__ = ["MOST_ELEMENTS", "ReductionSource"]

MOST_ELEMENTS = 10_000
"""Elements of an array that `reduce` takes, a step each; a longer array gives NULL."""


class ReductionSource:
    """Rows of an event, the next element of its array, and the result so far."""

    def __init__(
        self, outer: Columns, events: NDArray[np.integer], names: tuple[Reference, Reference], arrays: pl.Series
    ) -> None:
        """Take the arrays.

        Args:
            outer: The events, or the elements of a lambda around this one.
            events: The event of each array.
            names: The columns with the result so far, and with the element.
            arrays: By row.
        """
        self._outer = outer
        self._events = events
        self._total, self._variable = names
        lists = arrays.to_arrow()
        self._elements = as_plain(lists.flatten())
        self._length = arrays.list.len().fill_null(0).to_numpy().astype(np.int64)
        self._first = np.cumsum(self._length) - self._length
        self._unknown = arrays.is_null() | (arrays.list.len() > MOST_ELEMENTS).fill_null(False)
        self._length[self._unknown.to_numpy()] = 0
        self._step = 0
        self.rows: NDArray[np.int64] = np.flatnonzero(self._length)
        """Rows whose arrays have an element left."""

    def begin(self, start: pl.Series) -> None:
        """Take the results over no elements, by row."""
        self._made = start

    def advance(self, values: pl.Series) -> None:
        """Take the result after each row's element."""
        self._made = self._made.scatter(self.rows, values)
        self._step += 1
        self.rows = self.rows[self._length[self.rows] > self._step]

    def result(self) -> pl.Series:
        """Return the results by row; NULL for an array that is NULL or too long."""
        return self._made.set(self._unknown, None)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self.rows.size

    def column(self, name: Reference) -> pa.Array:
        """Return the elements, the result so far, or a column of each row's event."""
        if name == self._total:
            return self._made.gather(self.rows).to_arrow()
        if name == self._variable:
            return self._elements.take(pa.array(self._first[self.rows] + self._step))
        return self._outer.column(name).take(pa.array(self._events[self.rows]))

    def encoded(self, name: Reference) -> pa.Array:
        """Return a column as `column` does: which values repeat is not known."""
        return self.column(name)
