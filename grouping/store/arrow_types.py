"""The Arrow types of SQL's scalar types, for stored constants and for events."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

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

__all__ = ["ARROW_TYPES"]

ARROW_TYPES: Mapping[SqlType, pa.DataType] = {
    STRING: pa.string(),
    BOOLEAN: pa.bool_(),
    TINYINT: pa.int8(),
    SMALLINT: pa.int16(),
    INT: pa.int32(),
    BIGINT: pa.int64(),
    FLOAT: pa.float32(),
    DOUBLE: pa.float64(),
    DATE: pa.date32(),
    TIMESTAMP: pa.timestamp("us", "UTC"),
    BINARY: pa.binary(),
    VARIANT: pa.string(),
}
"""A VARIANT is held as its text (`grouping.values.variant`). DECIMAL has no entry: DECIMAL constants are stored as
text, and the Arrow type of a DECIMAL column depends on its precision and scale.
"""
