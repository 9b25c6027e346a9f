"""SQL types and their Polars counterparts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import polars as pl

from grouping.functions.results import common_type
from grouping.model.errors import InternalError
from grouping.model.sql_type import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    VARIANT,
    SqlType,
)
from spark_jobs.engine.expressions.by_value import each_distinct

__all__ = ["Implementation", "Operand", "by_value", "polars_type", "to_double", "widened", "wider"]


class Operand(NamedTuple):
    """A Polars expression and its SQL type."""

    expr: pl.Expr
    type: SqlType


Implementation = Callable[[list[Operand], SqlType], Operand]
"""Computes an operator or function from the arguments and the result's type, `UNKNOWN` if the plan lacks this type."""

_POLARS_TYPES: dict[SqlType, pl.DataType] = {
    STRING: pl.String(),
    BOOLEAN: pl.Boolean(),
    TINYINT: pl.Int8(),
    SMALLINT: pl.Int16(),
    INT: pl.Int32(),
    BIGINT: pl.Int64(),
    FLOAT: pl.Float32(),
    DOUBLE: pl.Float64(),
    DATE: pl.Date(),
    BINARY: pl.Binary(),
    VARIANT: pl.String(),
    TIMESTAMP: pl.Datetime("us", "UTC"),
}


def polars_type(sql_type: SqlType) -> pl.DataType:
    """Return the Polars type of a column or constant type."""
    if sql_type.is_decimal:
        return pl.Decimal(sql_type.precision, sql_type.scale)
    if sql_type.fields:
        return pl.Struct({name: polars_type(field) for name, field in sql_type.fields})
    if sql_type.element is not None:
        element = polars_type(sql_type.element)
        return pl.List(pl.Struct({"key": pl.String(), "value": element}) if sql_type.key else element)
    return _POLARS_TYPES[sql_type]


def by_value(function: Callable[..., object], sql_type: SqlType = STRING) -> Implementation:
    """Return an implementation in Python, called for each distinct combination of arguments without a NULL.

    The result is NULL in each row in which an argument is NULL.
    """
    return lambda args, _: Operand(
        each_distinct([argument.expr for argument in args], function, polars_type(sql_type)), sql_type
    )


def wider(kinds: Sequence[SqlType]) -> SqlType:
    """Return the common type of some types."""
    if set(kinds) == {DATE, TIMESTAMP}:
        return TIMESTAMP
    sql_type = common_type(kinds)
    if not sql_type:
        raise InternalError(f"{' and '.join(map(str, kinds))} have no common type")
    return sql_type


def to_double(value: Operand) -> pl.Expr:
    """Convert a number to the nearest DOUBLE; Polars' cast of a DECIMAL would round twice."""
    if value.type.is_decimal:
        return each_distinct([value.expr], float, pl.Float64)
    return value.expr.cast(pl.Float64)


def widened(value: Operand, sql_type: SqlType) -> pl.Expr:
    """Convert a value to a type that can hold it, or to DOUBLE."""
    return to_double(value) if sql_type == DOUBLE else value.expr.cast(polars_type(sql_type))
