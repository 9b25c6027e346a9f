"""SQL types and their Polars counterparts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from grouping.errors import InternalError
from grouping.functions import common_type
from spark_jobs.events import decimal_size

__all__ = ["Typed", "polars_type", "wider"]


class Typed(NamedTuple):
    """A Polars expression and its SQL type."""

    expr: pl.Expr
    type: str


_POLARS_TYPES: dict[str, pl.DataType] = {
    "STRING": pl.String(),
    "BOOLEAN": pl.Boolean(),
    "INT": pl.Int32(),
    "BIGINT": pl.Int64(),
    "DOUBLE": pl.Float64(),
    "DATE": pl.Date(),
    "TIMESTAMP": pl.Datetime("us", "UTC"),
}


def polars_type(kind: str) -> pl.DataType:
    """Return the Polars type of a column or constant type."""
    if kind.startswith("DECIMAL"):
        return pl.Decimal(*decimal_size(kind))
    return _POLARS_TYPES[kind]


def wider(kinds: Sequence[str]) -> str:
    """Return the type in which values of these types meet."""
    if set(kinds) == {"DATE", "TIMESTAMP"}:
        return "TIMESTAMP"
    kind = common_type(kinds)
    if not kind:
        raise InternalError(f"{' and '.join(kinds)} have no common type")
    return kind
