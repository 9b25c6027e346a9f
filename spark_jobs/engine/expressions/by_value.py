"""Functions that Python computes, once for each distinct combination of values in the rows.

These functions are slower than Polars' functions, but have exactly Spark's results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from grouping.model.errors import InputError, InternalError
from spark_jobs.engine.rows.cpu_budget import checked

__all__ = ["converted", "distinct_rows", "each_distinct", "of_one_length"]

T = TypeVar("T")


def each_distinct(
    exprs: Sequence[pl.Expr], convert: Callable[..., Any], dtype: pl.DataType | type[pl.DataType]
) -> pl.Expr:
    """Return the result of `convert` for each row; NULL if one of the row's values is NULL, or if the result is None.

    `convert` must return the same for -0.0 and 0.0, because these values of a DOUBLE are not distinguished.

    Raises:
        InternalError: During evaluation, when `convert` raises. The error stops only the group of the expression.
    """

    def apply(columns: Sequence[pl.Series]) -> pl.Series:
        distinct, codes = distinct_rows(of_one_length(columns))
        return pl.Series(converted(distinct, convert), dtype=dtype).gather(codes)

    return pl.map_batches(list(exprs), apply, return_dtype=dtype)


def of_one_length(columns: Sequence[pl.Series]) -> list[pl.Series]:
    """Return columns with as many rows as the longest column; a column of one row repeats this row."""
    size = max(len(column) for column in columns)
    return [column if len(column) == size else column.new_from_index(0, size) for column in columns]


def converted(rows: Sequence[tuple[Any, ...]], convert: Callable[..., T]) -> list[T | None]:
    """Return the result of `convert` for each row; None for a row in which a value is None.

    Raises:
        InternalError: `convert` raises an error about a value.
        CpuExceeded: No CPU time is left.
    """
    try:
        return [None if None in row else convert(*row) for row in checked(rows)]
    except (ArithmeticError, InputError, TypeError, ValueError) as exc:
        raise InternalError("a function raised an error about a value") from exc


def distinct_rows(columns: Sequence[pl.Series]) -> tuple[list[tuple[Any, ...]], NDArray[np.int64]]:
    """Return the distinct combinations of the rows' values, and for each row the number of its combination."""
    encoded = [column.to_arrow().dictionary_encode(null_encoding="encode") for column in columns]
    codes = encoded[0].indices.to_numpy().astype(np.int64)
    if len(encoded) == 1:
        return [(value,) for value in encoded[0].dictionary.to_pylist()], codes
    for other in encoded[1:]:
        codes = codes * len(other.dictionary) + other.indices.to_numpy()
    _, first, which = np.unique(codes, return_index=True, return_inverse=True)
    places = pa.array(first)
    values = [each.dictionary.take(each.indices.take(places)).to_pylist() for each in encoded]
    return list(zip(*values, strict=True)), which
