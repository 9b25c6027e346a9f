"""The rows over which the lambda of reduce is evaluated: in each step, the next element and the accumulated value."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from grouping.model.expression import Reference
from spark_jobs.engine.rows.columns import Columns
from spark_jobs.engine.rows.event_column import as_plain

__all__ = ["MOST_ELEMENTS", "ReductionSource"]

MOST_ELEMENTS = 10_000
"""The largest number of elements of an array in `reduce`, which takes a step for each. A longer array gives NULL."""


class ReductionSource:
    """A row for each array with elements left: the event's columns, the next element and the accumulated value."""

    def __init__(
        self, outer: Columns, events: NDArray[np.integer], names: tuple[Reference, Reference], arrays: pl.Series
    ) -> None:
        """Flatten the arrays.

        Args:
            outer: The events, or the elements of the enclosing lambda.
            events: The row in `outer` of each array.
            names: The names of the columns with the accumulated value and with the element.
            arrays: The arrays.
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
        """The indexes of the arrays that have an element left."""

    def begin(self, start: pl.Series) -> None:
        """Set the start value of each array."""
        self._made = start

    def advance(self, values: pl.Series) -> None:
        """Store the values that the lambda has computed from the current elements, and go to the next elements."""
        self._made = self._made.scatter(self.rows, values)
        self._step += 1
        self.rows = self.rows[self._length[self.rows] > self._step]

    def result(self) -> pl.Series:
        """Return the result of each array; NULL for an array that is NULL or too long."""
        return self._made.set(self._unknown, None)

    @property
    def count(self) -> int:
        """The number of rows in this step."""
        return self.rows.size

    def column(self, name: Reference) -> pa.Array:
        """Return the current elements, the accumulated values, or a column of each row's event."""
        if name == self._total:
            return self._made.gather(self.rows).to_arrow()
        if name == self._variable:
            return self._elements.take(pa.array(self._first[self.rows] + self._step))
        return self._outer.column(name).take(pa.array(self._events[self.rows]))

    def encoded(self, name: Reference) -> pa.Array:
        """Return the same array as `column`.

        The array is not dictionary-encoded, since it is not known which of its values are repeated.
        """
        return self.column(name)
