"""VARIANTs as columns of JSON texts: values at paths, converted to other types as Spark's try_variant_get does."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import isfinite
from typing import Any

import msgspec
import polars as pl

from grouping.model.sql_type import STRING, WHOLE_BITS, SqlType
from grouping.values.java_double import java_double
from grouping.values.variant import (
    MISSING,
    parse_variant,
    parse_variant_path,
    part_of,
    read_variant,
    shown,
    write_variant,
)
from spark_jobs.engine.expressions.by_value import each_distinct
from spark_jobs.engine.expressions.casts import read_text
from spark_jobs.engine.expressions.nested.json_texts import json_of
from spark_jobs.engine.expressions.numbers.decimals import fitted
from spark_jobs.engine.expressions.types import Operand, polars_type

__all__ = ["VARIANTS"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROS = 1_000_000


def _variant_get(value: Operand, sql_type: SqlType, path: object) -> pl.Expr:
    steps = parse_variant_path(str(path))

    def part(text: str) -> object:
        found = part_of(read_variant(text), steps)
        return None if found is MISSING else _as(found, sql_type)

    return each_distinct([value.expr], part, polars_type(sql_type))


def _as(value: Any, sql_type: SqlType) -> object:
    """Convert a value to a type as try_variant_get does; None if Spark cannot. A MAP is a list of entries."""
    match sql_type.name:
        case "VARIANT":
            return write_variant(value)
        case "ARRAY":
            return [_as(each, _element(sql_type)) for each in value] if isinstance(value, list) else None
        case "MAP" if isinstance(value, dict):
            return [{"key": name, "value": _as(each, _element(sql_type))} for name, each in value.items()]
        case "STRUCT" if isinstance(value, dict):
            return {name: _as(value[name], field) if name in value else None for name, field in sql_type.fields}
        case "MAP" | "STRUCT":
            return None
    match value:
        case None:
            return None
        case str():
            return value if sql_type == STRING else read_text(value, sql_type)
        case list() | dict():
            return shown(write_variant(value)) if sql_type == STRING else None
        case bool():
            return _TRUTHS[sql_type.name](value, sql_type) if sql_type.name in _TRUTHS else None
    number = _number(value)
    convert = (_DOUBLES if isinstance(number, float) else _EXACT).get(sql_type.name)
    return convert(number, sql_type) if convert else None


def _element(sql_type: SqlType) -> SqlType:
    assert sql_type.element is not None, "an ARRAY or a MAP"
    return sql_type.element


def _number(value: int | msgspec.Raw) -> Decimal | float:
    """Return a number as Spark reads it: a DOUBLE if it has an exponent, else a DECIMAL."""
    if isinstance(value, int):
        return Decimal(value)
    digits = bytes(value).decode()
    return float(digits) if "e" in digits or "E" in digits else Decimal(digits)


def _whole(number: Decimal, sql_type: SqlType) -> int | None:
    bound = 1 << (WHOLE_BITS[sql_type.name] - 1)
    whole = int(number)
    return whole if -bound <= whole < bound else None


def _double_to_whole(number: float, sql_type: SqlType) -> int | None:
    """Cut the fraction off. Spark compares with the bounds as doubles, so 2^63 passes and is the largest BIGINT."""
    if not isfinite(number):
        return None
    most = (1 << (WHOLE_BITS[sql_type.name] - 1)) - 1
    whole = int(number)
    if sql_type.name == "BIGINT" and whole == most + 1:
        return most
    return whole if -most - 1 <= whole <= most else None


def _time(micros: Decimal | float) -> datetime | None:
    """Return the time `micros` after the epoch, cut to whole microseconds; None outside the years 1 to 9999."""
    try:
        return _EPOCH + timedelta(microseconds=int(micros))
    except (OverflowError, ValueError):
        return None


Converter = Callable[[Any, SqlType], object]
_EXACT: dict[str, Converter] = {
    **dict.fromkeys(WHOLE_BITS, _whole),
    "BOOLEAN": lambda number, _: bool(number),
    "DOUBLE": lambda number, _: float(number),
    "DECIMAL": fitted,
    "STRING": lambda number, _: format(number, "f"),
    "TIMESTAMP": lambda seconds, _: _time(seconds * _MICROS),
}
"""The conversion of a BIGINT or a DECIMAL, by the name of the target type."""
_DOUBLES: dict[str, Converter] = {
    **dict.fromkeys(WHOLE_BITS, _double_to_whole),
    "BOOLEAN": lambda number, _: bool(number),
    "DOUBLE": lambda number, _: number,
    "DECIMAL": lambda number, sql_type: fitted(Decimal(repr(number)), sql_type) if isfinite(number) else None,
    "STRING": lambda number, _: java_double(number),
    "TIMESTAMP": lambda seconds, _: _time(seconds * _MICROS),
}
_TRUTHS: dict[str, Converter] = {
    **dict.fromkeys(WHOLE_BITS, lambda flag, _: int(flag)),
    "BOOLEAN": lambda flag, _: flag,
    "DOUBLE": lambda flag, _: float(flag),
    "DECIMAL": lambda flag, sql_type: fitted(Decimal(flag), sql_type),
    "STRING": lambda flag, _: "true" if flag else "false",
}

VARIANTS: dict[str, Callable[..., pl.Expr]] = {
    "variant_get": _variant_get,
    "parse_json": lambda text, kind: each_distinct([text.expr], parse_variant, polars_type(kind)),
    "is_variant_null": lambda value, _: (value.expr == "null").fill_null(False),
    "to_json": lambda value, kind: (
        json_of(value, kind) if value.type.is_nested else each_distinct([value.expr], shown, polars_type(kind))
    ),
}
"""By operator: the implementation, which takes the value, the result's type, and for variant_get the path."""
