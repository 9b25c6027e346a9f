"""The Arrow types of SQL's scalar types, as constants are stored and events are held."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from grouping.model.sql_type import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, SqlType

__all__ = ["ARROW_TYPES"]

ARROW_TYPES: Mapping[SqlType, pa.DataType] = {
    STRING: pa.string(),
    BOOLEAN: pa.bool_(),
    INT: pa.int32(),
    BIGINT: pa.int64(),
    DOUBLE: pa.float64(),
    DATE: pa.date32(),
    TIMESTAMP: pa.timestamp("us", "UTC"),
}
"""DECIMAL is none of them: constants of it are kept as text, columns in their own precision and scale."""
