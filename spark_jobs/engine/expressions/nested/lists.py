"""Columns of arrays as a single array of all elements, with the row of each element.

A function of arrays chooses elements and their rows, so values of any type stay unchanged. Elements are compared by
codes: equal elements have equal codes, and codes have the order of the elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import nan
from typing import NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from grouping.model.sql_type import SqlType
from spark_jobs.engine.expressions.by_value import of_one_length
from spark_jobs.engine.expressions.types import Operand, polars_type
from spark_jobs.engine.rows.arrays import Ints
from spark_jobs.engine.rows.event_column import rows_of_elements

__all__ = ["Ints", "Lists", "codes_of", "identities_of", "lists_of", "made_of", "over"]


class Lists(NamedTuple):
    """A column of arrays, as the elements of all arrays and the row of each element."""

    elements: pa.Array
    row: Ints
    """The row of each element."""
    null: NDArray[np.bool_]
    """Whether the array of each row is NULL."""

    @property
    def place(self) -> Ints:
        """The place of each element in its array."""
        return np.arange(self.row.size) - self.begin[self.row]

    @property
    def length(self) -> Ints:
        """The number of elements of each row's array."""
        return np.bincount(self.row, minlength=self.null.size).astype(np.int64)

    @property
    def begin(self) -> Ints:
        """The place of each row's first element among all elements."""
        return np.cumsum(self.length) - self.length


def lists_of(column: pl.Series) -> Lists:
    """Return a column of arrays as its elements."""
    array = column.to_arrow()
    null = array.is_null().to_numpy(zero_copy_only=False)
    return Lists(array.flatten(), rows_of_elements(array), null)


def made_of(elements: pa.Array, chosen: Ints, row: Ints, null: NDArray[np.bool_], sql_type: SqlType) -> pl.Series:
    """Return arrays of chosen elements.

    Args:
        elements: The elements to choose from.
        chosen: The places of the chosen elements, ordered by row; -1 for a NULL element.
        row: The row of each chosen element.
        null: For each row, whether its array is NULL.
        sql_type: The type of the arrays.
    """
    taken = elements.take(pa.array(chosen, mask=chosen < 0))
    offsets = np.concatenate(([0], np.cumsum(np.bincount(row, minlength=null.size))))
    made = pl.Series(pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), taken)).cast(polars_type(sql_type))
    return made.set(pl.Series(null), None) if null.any() else made


def identities_of(elements: pa.Array) -> Ints:
    """Return a code for each element; codes are equal if Spark's set functions take the elements as equal.

    For these functions, 0.0 and -0.0 differ.
    """
    codes = codes_of(elements)
    if pa.types.is_floating(elements.type):
        values = elements.fill_null(1.0).to_numpy()
        codes = np.where(codes < 0, -1, codes * 2 + ((values == 0.0) & np.signbit(values)))
    return codes


def codes_of(elements: pa.Array) -> Ints:
    """Return a whole number for each element, with the order of the elements: -1 for NULL, the greatest for NaN."""
    if pa.types.is_floating(elements.type):
        elements = pc.add(elements, 0.0)  # turns -0.0 into 0.0, and may change the sign of a NaN
        elements = pc.if_else(pc.is_nan(elements), pa.scalar(nan, elements.type), elements)
    encoded = elements.dictionary_encode()
    known = encoded.dictionary
    if pa.types.is_boolean(known.type):
        known = known.cast(pa.int8())
    rank = np.empty(len(known) + 1, np.int64)
    rank[pc.sort_indices(known).to_numpy()] = np.arange(len(known))
    rank[-1] = -1
    codes: Ints = rank[encoded.indices.fill_null(len(known)).to_numpy()]
    return codes


def over(compute: Callable[..., pl.Series], dtype: pl.DataType, first: Operand, *others: Operand) -> pl.Expr:
    """Return an expression that calls `compute` with the operands' columns, all with the same number of rows."""

    def apply(columns: Sequence[pl.Series]) -> pl.Series:
        return compute(*of_one_length(columns))

    return pl.map_batches([operand.expr for operand in (first, *others)], apply, return_dtype=dtype)
