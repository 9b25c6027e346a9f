"""Converts Avro's values to values of columns: checks each value by its type, and drops fields that the type lacks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

from grouping.model.catalog import StreamColumn
from grouping.model.sql_type import DATE, STRING, TIMESTAMP, SqlType
from schemas.avro_columns import AvroTypes
from spark_jobs.engine.decode.misfit import Misfit, checked_part, whole_check

__all__ = ["NestedChecks", "check_texts", "plain_check"]

Check = Callable[[Any], object]
"""Converts a value that is not NULL to the column's value; raises Misfit if the value does not fit."""

_NARROW = ("TINYINT", "SMALLINT", "INT")
"""Types that cannot hold all whole numbers of Avro."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1).toordinal()


def plain_check(sql_type: SqlType, kind: str) -> Check | None:
    """Return a check and conversion for a type that is not nested; None if the values need neither.

    Args:
        sql_type: The type of the column, or of a part of it.
        kind: The Avro type with which the values are written. Avro may promote this type to the type of the column.
    """
    if kind in ("int", "long") and sql_type.name in ("FLOAT", "DOUBLE"):
        return float
    if kind == "bytes" and sql_type == STRING:
        return _text
    if kind == "string" and sql_type.name == "BINARY":
        return lambda text: text.encode("utf-8", "surrogateescape")
    if sql_type.name in _NARROW:
        return whole_check(sql_type)
    return (lambda unscaled: _decimal(unscaled, sql_type)) if sql_type.is_decimal else None


class NestedChecks:
    """Checks and conversions of nested columns, in which fastavro leaves times as numbers and decimals as bytes.

    A named type may occur in several places of a schema, even in fields without a column. If fastavro converted the
    logical types in nested columns, it would convert them in all these places, and a bad value in a field without a
    column would make the record wrong. So fastavro converts only DATE and TIMESTAMP columns, and nested values are
    converted here.
    """

    def __init__(self, types: AvroTypes) -> None:
        """Take the types of the stream's schema."""
        self._types = types

    def column(self, column: StreamColumn) -> Check:
        """Return a check and conversion of the values of a nested column."""
        return _each(self._check(self._types.fields[column.name], column.type))

    def _check(self, avro: Any, sql_type: SqlType) -> Check | None:
        definition = self._types.found(avro)
        if sql_type.name == "STRUCT":
            types = {field["name"]: field["type"] for field in definition["fields"]}
            parts = [(name, self._check(types[name], field)) for name, field in sql_type.fields if name in types]
            return _struct(parts, [name for name, _ in sql_type.fields if name not in types])
        if sql_type.element is not None:
            part = definition["items" if sql_type.name == "ARRAY" else "values"]
            return (_array if sql_type.name == "ARRAY" else _map)(self._check(part, sql_type.element))
        if sql_type == DATE:
            return partial(_date, sql_type)
        if sql_type == TIMESTAMP:
            step = 1000 if definition["logicalType"] == "timestamp-millis" else 1
            return partial(_time, sql_type, step)
        return plain_check(sql_type, str(definition.get("type")))


def check_texts(value: object) -> None:
    """Check that the texts of a value are UTF-8.

    Raises:
        UnicodeEncodeError: A text has a lone surrogate, which represents a byte of invalid UTF-8 (``surrogateescape``).
    """
    match value:
        case str():
            value.encode()
        case list():
            for each in value:
                check_texts(each)
        case dict():
            for key, each in value.items():
                check_texts(key)
                check_texts(each)


def _struct(parts: list[tuple[str, Check | None]], absent: list[str]) -> Check:
    """Return a conversion of records; the fields in `absent`, which the writer's schema lacks, are NULL."""
    checks = [(name, _each(check)) for name, check in parts]
    nulls = dict.fromkeys(absent)

    def convert(record: dict[str, Any]) -> dict[str, object]:
        return {name: checked_part(check, record[name], name) for name, check in checks} | nulls

    return convert


def _array(check: Check | None) -> Check | None:
    if check is None:
        return None
    each = _each(check)
    return lambda values: [checked_part(each, value, place) for place, value in enumerate(values)]


def _map(check: Check | None) -> Check | None:
    if check is None:
        return None
    each = _each(check)
    return lambda entries: {key: checked_part(each, value, key) for key, value in entries.items()}


def _each(check: Check | None) -> Check:
    """Return the check for values that may be NULL."""
    if check is None:
        return lambda value: value
    return lambda value: None if value is None else check(value)


def _decimal(unscaled: bytes, sql_type: SqlType) -> Decimal:
    number = int.from_bytes(unscaled, "big", signed=True)
    if abs(number) >= 10**sql_type.precision:
        raise Misfit(f"the number has more than {sql_type.precision} digits", sql_type)
    return Decimal(f"{number}E-{sql_type.scale}")  # from text: arithmetic would round to the context's 28 digits


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise Misfit("the bytes are no valid UTF-8", STRING) from None


def _date(sql_type: SqlType, days: int) -> date:
    try:
        return date.fromordinal(_EPOCH_DAY + days)
    except (ValueError, OverflowError):
        raise Misfit("the date is beyond the years 1 to 9999", sql_type) from None


def _time(sql_type: SqlType, step: int, count: int) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=count * step)
    except OverflowError:
        raise Misfit("the time is beyond the years 1 to 9999", sql_type) from None
