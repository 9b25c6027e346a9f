"""The elements of events' arrays as rows, with their events' columns: the body of a lambda is evaluated over them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from grouping.model.expression import Call
from grouping.model.reference import Reference
from spark_jobs.engine.expressions.types import polars_type
from spark_jobs.engine.rows.columns import Columns
from spark_jobs.engine.rows.event_column import as_plain, rows_of_elements

__all__ = ["ElementSource"]


class ElementSource:
    """Rows made of an event and one element of its array, with the element as a column of its own."""

    def __init__(self, outer: Columns, events: NDArray[np.integer], variable: Reference, arrays: pl.Series) -> None:
        """Take the arrays.

        Args:
            outer: The events, or the elements of a lambda around this one.
            events: The event of each array.
            variable: The column with the element.
            arrays: By row.
        """
        self._arrays = arrays.to_arrow()
        self._elements = as_plain(self._arrays.flatten())
        self.of = rows_of_elements(self._arrays)
        """The array of each element."""
        self._outer = outer
        self._events = events[self.of]
        self._variable = variable

    @property
    def count(self) -> int:
        """How many elements there are."""
        return len(self._elements)

    @property
    def arrays(self) -> int:
        """How many arrays there are."""
        return len(self._arrays)

    def column(self, name: Reference) -> pa.Array:
        """Return the elements, or a column of each element's event."""
        if name == self._variable:
            return self._elements
        return self._outer.column(name).take(pa.array(self._events))

    def encoded(self, name: Reference) -> pa.Array:
        """Return a column as `column` does: which values repeat is not known."""
        return self.column(name)

    def result(self, call: Call, body: pl.Series) -> pl.Series:
        """Return the value of a function (but reduce) by row, from its body's value for each element."""
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
        """Return `by` if the body equals `by` for some element, else NULL if NULL for any, else the contrary."""
        size = len(self._arrays)
        found, unknown = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
        found[self.of[(body == by).fill_null(False).to_numpy()]] = True
        unknown[self.of[body.is_null().to_numpy()]] = True
        unknown = (unknown & ~found) | self._arrays.is_null().to_numpy(zero_copy_only=False)
        return pl.Series(found if by else ~found).set(pl.Series(unknown), None)
