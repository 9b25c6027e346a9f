"""The rows over which the body of a lambda is evaluated: one for each element of an array, with the event's columns."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from grouping.model.expression import Call, Reference
from spark_jobs.engine.expressions.types import polars_type
from spark_jobs.engine.rows.columns import Columns
from spark_jobs.engine.rows.event_column import as_plain, rows_of_elements

__all__ = ["ElementSource"]


class ElementSource:
    """A row for each element of the arrays: the columns of the element's event, and the element as a further column."""

    def __init__(self, outer: Columns, events: NDArray[np.integer], variable: Reference, arrays: pl.Series) -> None:
        """Flatten the arrays.

        Args:
            outer: The events, or the elements of the enclosing lambda.
            events: The row in `outer` of each array.
            variable: The name of the column with the element.
            arrays: The arrays.
        """
        self._arrays = arrays.to_arrow()
        self._elements = as_plain(self._arrays.flatten())
        self.of = rows_of_elements(self._arrays)
        """The index of each element's array."""
        self._outer = outer
        self._events = events[self.of]
        self._variable = variable

    @property
    def count(self) -> int:
        """The number of elements."""
        return len(self._elements)

    @property
    def arrays(self) -> int:
        """The number of arrays."""
        return len(self._arrays)

    def column(self, name: Reference) -> pa.Array:
        """Return the elements, or a column of each element's event."""
        if name == self._variable:
            return self._elements
        return self._outer.column(name).take(pa.array(self._events))

    def encoded(self, name: Reference) -> pa.Array:
        """Return the same array as `column`: a dictionary of repeated values is not known here."""
        return self.column(name)

    def result(self, call: Call, body: pl.Series) -> pl.Series:
        """Return a function's value for each array, given the body's value for each element (not for reduce)."""
        if call.op in ("exists", "forall"):
            return self._decided(body, by=call.op == "exists")
        values, of = body.to_arrow(), self.of
        if call.op in ("filter", "map_filter"):
            kept = np.flatnonzero(body.fill_null(False).to_numpy())
            values, of = self._elements.take(pa.array(kept)), of[kept]
        offsets = np.concatenate(([0], np.cumsum(np.bincount(of, minlength=len(self._arrays)))))
        made = pl.Series(pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), values))
        there = pl.Series(self._arrays.is_valid())
        kind = polars_type(call.type)
        return pl.select(pl.when(there).then(pl.lit(made.cast(kind)))).to_series()

    def _decided(self, body: pl.Series, *, by: bool) -> pl.Series:
        """Return the value of exists (`by` is True) or forall (`by` is False) for each array.

        The value is `by` if the body is `by` for at least one element. Otherwise the value is NULL if the body is NULL
        for at least one element, and else the opposite of `by`.
        """
        size = len(self._arrays)
        found, unknown = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
        found[self.of[(body == by).fill_null(False).to_numpy()]] = True
        unknown[self.of[body.is_null().to_numpy()]] = True
        unknown = (unknown & ~found) | self._arrays.is_null().to_numpy(zero_copy_only=False)
        return pl.Series(found if by else ~found).set(pl.Series(unknown), None)
