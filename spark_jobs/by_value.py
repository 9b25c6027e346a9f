"""Functions computed in Python, once for each distinct combination of values: slow by value, exact, and cached."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

from grouping.errors import InputError, InternalError

__all__ = ["each_distinct"]


def each_distinct(
    exprs: Sequence[pl.Expr], convert: Callable[..., Any], dtype: pl.DataType | type[pl.DataType]
) -> pl.Expr:
    """Return `convert` of the values of each row, NULL where one of them is NULL or the result is None.

    A double's -0.0 must mean to `convert` what 0.0 does.

    Raises:
        InternalError: While it is evaluated, when `convert` raises: a fault of ours, which stops its group only.
    """

    def apply(columns: Sequence[pl.Series]) -> pl.Series:
        size = max(len(column) for column in columns)
        rows = list(zip(*(column.to_list() * (size if len(column) < size else 1) for column in columns), strict=True))
        try:
            converted = {row: None if None in row else convert(*row) for row in set(rows)}
            return pl.Series([converted[row] for row in rows], dtype=dtype)
        except (ArithmeticError, InputError, TypeError, ValueError) as exc:
            raise InternalError("a function met a value that it does not know") from exc

    return pl.map_batches(list(exprs), apply, return_dtype=dtype)
