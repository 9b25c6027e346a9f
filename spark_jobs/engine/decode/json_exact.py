"""Reads JSON records slowly and exactly, and decides about records that the fast decoder refuses.

Numbers are read as texts, so that no number is rounded before its check. Bytes that are no valid UTF-8 become
surrogates, so that they make only the value of their own column wrong.
"""

from __future__ import annotations

import binascii
import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import NoReturn

from grouping.model.catalog import StreamColumn
from grouping.model.column_place import RecordPath
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
from grouping.values.iso8601 import parse_date, parse_timestamp
from grouping.values.variant import MISSING, variant_number, write_variant
from spark_jobs.engine.decode.json_lenient import STRICT, Leniency, relaxed
from spark_jobs.engine.decode.json_number import JsonNumber
from spark_jobs.engine.decode.misfit import Misfit, misfit_detail
from spark_jobs.engine.decode.time_misfit import time_reason

__all__ = [
    "DECIMAL_TEXT",
    "FLOAT_BOUND",
    "NOT_ONE_OBJECT",
    "WrongRecord",
    "fit_decimal",
    "json_kind",
    "read_json",
    "read_record",
    "read_text",
    "takes_any_json",
    "value_at",
]

NOT_ONE_OBJECT = "The value is not one JSON object: "
"""The beginning of the detail of a dead letter; the reason follows."""
DECIMAL_TEXT = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?")
"""Matches a decimal number. Python's own conversion would accept spaces, underscores, NaN and other scripts' digits."""

_INTEGER = re.compile(r"-?[0-9]+")
_JSON_NUMBER = re.compile(r"-?[0-9]{1,30}(?:\.[0-9]{1,30})?")
_BOUNDS = {TINYINT: 2**7, SMALLINT: 2**15, INT: 2**31, BIGINT: 2**63}
FLOAT_BOUND = (2 - 2**-24) * 2.0**127
"""The least DOUBLE that is too large for a FLOAT, because rounding it to a FLOAT would give infinity."""
_LONGEST_INTEGER = 20
"""The number of characters of the longest BIGINT. A longer text is refused without a conversion."""


class WrongRecord(ValueError):
    """The record becomes a dead letter; the message is the letter's detail, a full sentence."""


def read_record(
    value: bytes | None,
    columns: Sequence[StreamColumn],
    leniency: Leniency = STRICT,
    misfits: Counter[str] | None = None,
    *,
    any_json: bool = False,
) -> list[object]:
    """Return the values of the columns, in their order.

    Args:
        value: The record.
        columns: The columns.
        leniency: The options of the stream.
        misfits: For a lenient stream: by column, the number of values that did not fit and became NULL. The function
            adds to it.
        any_json: Whether the record may be any JSON value. Otherwise the record must be an object, unless
            `takes_any_json` is true for the columns.

    Raises:
        WrongRecord: The record is a dead letter by the rules in docs/expressions.md.

    Example:
        >>> read_record(b'{"n": "x", "n": 7}', [StreamColumn("n", "INT")])
        [7]
    """
    record = read_json(value, any_json=any_json or takes_any_json(columns))
    found = ((value_at(record, column.place.path or ()), column) for column in columns)
    return [_read_column(each, column, leniency, misfits) for each, column in found]


def read_json(value: bytes | None, *, any_json: bool) -> object:
    """Return a record's value, with numbers as `JsonNumber`, and with surrogates for bytes that are no valid UTF-8.

    Args:
        value: The record.
        any_json: Whether the record may be any JSON value; otherwise the record must be an object.

    Raises:
        WrongRecord: The record is not a single JSON value, or must be an object and is none.
    """
    if value is None:
        raise WrongRecord("The record has no value.")
    try:
        record = _loads(value)
    except RecursionError:
        raise WrongRecord("The value is nested too deeply.") from None
    except json.JSONDecodeError as exc:
        raise WrongRecord(f"{NOT_ONE_OBJECT}{exc.msg.removesuffix(' at')} at character {exc.pos}.") from None
    if not isinstance(record, dict) and not any_json:
        raise WrongRecord("The value is JSON but no object.")
    return record


def takes_any_json(columns: Sequence[StreamColumn]) -> bool:
    """Tell whether records may be any JSON value, because a column is the whole value or an element of it."""
    return any(not column.place.path or isinstance(column.place.path[0], int) for column in columns)


def read_text(
    value: bytes, column: StreamColumn, leniency: Leniency = STRICT, misfits: Counter[str] | None = None
) -> object:
    """Return the value of a column that is the whole text of a record's key or header.

    For STRING and BINARY, the value is the bytes themselves. A DATE, TIMESTAMP or DECIMAL is read from the text. Values
    of other types are read as JSON. With the option `timestamps`, a numeric text is read as a TIMESTAMP.

    Raises:
        WrongRecord: The text is no value of the column's type.
    """
    if column.type == BINARY:
        return value
    text: object = value.decode("utf-8", "surrogateescape")
    if not (column.type in (STRING, DATE, TIMESTAMP) or column.type.is_decimal):
        try:
            text = _loads(value)
        except (WrongRecord, RecursionError, json.JSONDecodeError):
            if misfits is None:
                raise WrongRecord(misfit_detail(column, Misfit("the text is no JSON", column.type))) from None
    elif column.type == TIMESTAMP and leniency.timestamps and _JSON_NUMBER.fullmatch(str(text)):
        text = JsonNumber(text)
    return _read_column(text, column, leniency, misfits)


def _loads(value: bytes) -> object:
    return json.loads(
        value.decode("utf-8", "surrogateescape"),
        parse_int=JsonNumber,
        parse_float=JsonNumber,
        parse_constant=_refuse_constant,
    )


def value_at(record: object, path: RecordPath) -> object:
    """Return the value at a path; `MISSING` if the record has none."""
    for step in path:
        if isinstance(step, str):
            record = record.get(step, MISSING) if isinstance(record, dict) else MISSING
        else:
            record = record[step] if isinstance(record, list) and step < len(record) else MISSING
    return record


def _refuse_constant(name: str) -> NoReturn:
    raise WrongRecord(f"{NOT_ONE_OBJECT}{name} is no JSON.")


def _read_column(value: object, column: StreamColumn, leniency: Leniency, misfits: Counter[str] | None) -> object:
    try:
        return _fitted(value, column, leniency)
    except WrongRecord:
        if misfits is None:
            raise
        misfits[column.name] += 1
        return None


def _fitted(value: object, column: StreamColumn, leniency: Leniency) -> object:
    try:
        if leniency != STRICT:
            value = relaxed(value, column.type, leniency)
        return _value(value, column.type)
    except RecursionError:
        raise WrongRecord(f'Column "{column.name}" is nested too deeply.') from None
    except Misfit as exc:
        raise WrongRecord(misfit_detail(column, exc)) from None


def _value(value: object, sql_type: SqlType, step: str | int | None = None) -> object:
    """Return a value of a column, a field or an element; None for NULL. JSON's null is NULL, except in a VARIANT.

    Raises:
        Misfit: The type cannot hold the value. The exception's path begins with `step`, the place of the value in the
            enclosing value.
    """
    if value is MISSING or (value is None and sql_type != VARIANT):
        return None
    try:
        return _convert(value, sql_type)
    except Misfit as exc:
        misfit = exc
    except ValueError as exc:
        misfit = Misfit(str(exc), sql_type)
    if step is not None:
        misfit.within(step)
    raise misfit from None


def _convert(value: object, sql_type: SqlType) -> object:
    if sql_type == VARIANT:
        return write_variant(_as_variant(value))
    if sql_type == BOOLEAN:
        if not isinstance(value, bool):
            raise ValueError(f"{json_kind(value)} is no boolean")
        return value
    if sql_type in _BOUNDS:
        return _integer(_number(value), _BOUNDS[sql_type])
    if sql_type in (DOUBLE, FLOAT):
        return _double(_number(value), FLOAT_BOUND if sql_type == FLOAT else math.inf)
    if sql_type.is_decimal:
        text = _number(value) if isinstance(value, JsonNumber) else _text(value)
        return fit_decimal(text, sql_type.precision, sql_type.scale)
    if sql_type in (DATE, TIMESTAMP):
        try:
            return (parse_date if sql_type == DATE else parse_timestamp)(_text(value))
        except ValueError as exc:
            raise ValueError(time_reason(value, str(exc), sql_type)) from None
    if sql_type == BINARY:
        return _binary(_text(value))
    if sql_type.is_nested:
        return _nested(value, sql_type)
    return _text(value)


def _nested(value: object, sql_type: SqlType) -> object:
    """Return a nested value: for a STRUCT or a MAP, the object as a dict; for an ARRAY, the array as a list."""
    if sql_type.name == "ARRAY":
        if not isinstance(value, list):
            raise ValueError(f"{json_kind(value)} is no array")
        return [_value(each, _element(sql_type), place) for place, each in enumerate(value)]
    if not isinstance(value, dict):
        raise ValueError(f"{json_kind(value)} is no object")
    if sql_type.name == "MAP":
        return {_text(key): _value(each, _element(sql_type), key) for key, each in value.items()}
    return {name: _value(value.get(name, MISSING), field, name) for name, field in sql_type.fields}


def _as_variant(value: object) -> object:
    """Return any JSON value with its numbers converted to those of VARIANTs, and with checked texts."""
    match value:
        case JsonNumber():
            return variant_number(value)
        case str():
            return _text(value)
        case list():
            return [_as_variant(each) for each in value]
        case dict():
            return {_text(name): _as_variant(each) for name, each in value.items()}
    return value


def _element(sql_type: SqlType) -> SqlType:
    assert sql_type.element is not None, "an ARRAY or a MAP"
    return sql_type.element


def json_kind(value: object) -> str:
    """Return the name of the value's type in JSON."""
    if isinstance(value, JsonNumber):
        return "a number"
    return {str: "a string", bool: "a boolean", dict: "an object"}.get(type(value), "an array")


def _number(value: object) -> str:
    if not isinstance(value, JsonNumber):
        raise ValueError(f"{json_kind(value)} is no number")
    return str(value)


def _text(value: object) -> str:
    if not isinstance(value, str) or isinstance(value, JsonNumber):
        raise ValueError(f"{json_kind(value)} is no string")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("the string is no valid UTF-8 or has half of a surrogate pair") from None
    return value


def _integer(text: str, bound: int) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError("the number has a fraction or an exponent")
    if len(text) > _LONGEST_INTEGER or not -bound <= int(text) < bound:
        raise ValueError("the number is out of range")
    return int(text)


def _binary(text: str) -> bytes:
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        raise ValueError("the string is no base64") from None


def _double(text: str, bound: float) -> float:
    number = float(text)
    if abs(number) >= bound:
        raise ValueError("the number is out of range")
    return number


def fit_decimal(text: str, precision: int, scale: int) -> Decimal:
    """Return the number in a text. The number must fit the precision and the scale without rounding.

    The result has no trailing zeros: with them, it might have more digits than Arrow accepts for a DECIMAL.

    Raises:
        ValueError: The number does not fit, or the text is no number.

    Example:
        >>> fit_decimal("1e1", 4, 2), fit_decimal("1.50", 2, 1)
        (Decimal('1E+1'), Decimal('1.5'))
    """
    if not DECIMAL_TEXT.fullmatch(text):
        raise ValueError("the text is no decimal number")
    number = Decimal(text)
    if not number:
        return Decimal(0)
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)  # the pattern lets neither NaN nor Infinity through
    zeros = 0
    while digits[-1 - zeros] == 0:
        zeros += 1
    if exponent + zeros < -scale or number.adjusted() >= precision - scale:
        raise ValueError(f"the number does not fit {precision} digits, {scale} of them after the point")
    return Decimal((sign, digits[: len(digits) - zeros], exponent + zeros))
