"""Nested values as JSON texts, as Spark's to_json writes them with Jackson."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from datetime import datetime
from typing import Any

import polars as pl

from grouping.model.sql_type import VARIANT, SqlType
from grouping.values.java_double import json_double
from grouping.values.variant import shown
from spark_jobs.engine.expressions.nested.json_reader import plainly_quoted
from spark_jobs.engine.expressions.types import Operand, polars_type

__all__ = ["json_of"]

JsonTextWriter = Callable[[Any], str]


def json_of(value: Operand, sql_type: SqlType) -> pl.Expr:
    """Return the texts of STRUCTs, ARRAYs, MAPs or VARIANTs.

    A NULL field of a STRUCT is left out. A NULL in an ARRAY or MAP becomes ``null``.
    """
    writer = _writer(value.type)

    def write(column: pl.Series) -> pl.Series:
        texts = [None if each is None else writer(each) for each in column.to_list()]
        return pl.Series(texts, dtype=polars_type(sql_type))

    return value.expr.map_batches(write, return_dtype=polars_type(sql_type))


def _writer(sql_type: SqlType) -> JsonTextWriter:
    if sql_type.fields:
        return _struct_writer([(f"{plainly_quoted(name)}:", name, _writer(field)) for name, field in sql_type.fields])
    if sql_type.element is None:
        return _WRITERS.get(sql_type.name, str)
    element = _writer(sql_type.element)
    if sql_type.key is not None:
        return lambda entries: _joined(
            (f"{plainly_quoted(each['key'])}:{_or_null(element, each['value'])}" for each in entries), "{}"
        )
    return lambda values: _joined((_or_null(element, each) for each in values), "[]")


def _struct_writer(fields: list[tuple[str, str, JsonTextWriter]]) -> JsonTextWriter:
    def write(row: dict[str, Any]) -> str:
        return _joined((head + writer(row[name]) for head, name, writer in fields if row[name] is not None), "{}")

    return write


def _joined(parts: Any, ends: str) -> str:
    return f"{ends[0]}{','.join(parts)}{ends[1]}"


def _or_null(writer: JsonTextWriter, value: Any) -> str:
    return "null" if value is None else writer(value)


def _instant(value: datetime) -> str:
    return f'"{value.replace(tzinfo=None).isoformat(timespec="milliseconds")}Z"'


_WRITERS: dict[str, JsonTextWriter] = {
    "STRING": plainly_quoted,
    "BOOLEAN": lambda value: "true" if value else "false",
    "DOUBLE": json_double,
    "DATE": lambda value: f'"{value.isoformat()}"',
    "TIMESTAMP": _instant,
    "BINARY": lambda value: f'"{b64encode(value).decode()}"',
    VARIANT.name: shown,
}
"""The writer of values, by the name of the type.

The types without an entry are whole numbers and DECIMALs, which ``str`` writes as Java does.
"""
