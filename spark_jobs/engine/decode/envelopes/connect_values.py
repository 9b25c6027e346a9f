"""Conversion of Debezium's values to the values of plain JSON records; a schema or an option says how they are written.

The converters never guess the meaning of a value. A text of digits may be a decimal number, or the base64 of another
number; and a number for a TIMESTAMP has no unit by itself. If neither a schema nor an option decides, these values are
refused.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import NoReturn

import msgspec

from grouping.model.change_format import ValueEncoding
from grouping.model.sql_type import DATE, DOUBLE, FLOAT, STRING, TIMESTAMP, SqlType
from spark_jobs.engine.decode.envelopes.connect_schema import ConnectSchema
from spark_jobs.engine.decode.json_exact import DECIMAL_TEXT

__all__ = ["Convert", "scalar_converter"]

Convert = Callable[[bytes], bytes]
"""Takes the JSON text of a value other than null, and returns the JSON text for the column.

Raises ValueError if the value does not fit; the message is the reason, as a part of a sentence.
"""

_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_VARIABLE = "io.debezium.data.VariableScaleDecimal"
_INSTANTS = {
    "io.debezium.time.Timestamp": 1_000,
    "io.debezium.time.MicroTimestamp": 1_000_000,
    "io.debezium.time.NanoTimestamp": 1_000_000_000,
    "org.apache.kafka.connect.data.Timestamp": 1_000,
}
"""The names of the types for times since 1970, and the number of each type's units in a second."""
_INSTANT_TEXTS = ("io.debezium.time.ZonedTimestamp", "io.debezium.time.IsoTimestamp")
_DAYS = ("io.debezium.time.Date", "org.apache.kafka.connect.data.Date")
_DATE_TEXTS = ("io.debezium.time.IsoDate",)
_CLOCKS = {
    "io.debezium.time.Time": 1_000,
    "io.debezium.time.MicroTime": 1_000_000,
    "io.debezium.time.NanoTime": 1_000_000_000,
    "org.apache.kafka.connect.data.Time": 1_000,
}
"""The names of the types for times of day, and the number of each type's units in a second."""
_CLOCK_TEXTS = ("io.debezium.time.ZonedTime", "io.debezium.time.IsoTime")
_TYPE_OF = {
    **dict.fromkeys((*_INSTANTS, *_INSTANT_TEXTS), "a TIMESTAMP"),
    **dict.fromkeys((*_DAYS, *_DATE_TEXTS), "a DATE"),
    **dict.fromkeys(_CLOCKS, "a BIGINT or a STRING"),
    **dict.fromkeys(_CLOCK_TEXTS, "a STRING"),
}
"""By the name of a type: the SQL type to declare for a column with values of this type."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_WHOLE = re.compile(rb"-?[0-9]{1,20}")
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_ISO_DATE = re.compile(rb'"[0-9]{4}-[0-9]{2}-[0-9]{2}Z"')
_MOST_BYTES = 64
"""The largest number of bytes of an unscaled number; the widest DECIMAL has 16."""
_PLAIN_SCALE = 100
"""The largest scale with which numbers are written without an exponent."""
_DAY_SECONDS = 86_400
_EXACT = Context(prec=1_000)
"""A context with enough digits for every number within `_MOST_BYTES` and `_PLAIN_SCALE`."""


def scalar_converter(
    sql_type: SqlType, schema: ConnectSchema | None, encoding: ValueEncoding, per_second: int = 0
) -> Convert | None:
    """Return the converter of values for a column; None if the values need no conversion.

    Args:
        sql_type: The column's type, which must not be nested.
        schema: The schema of the values; None if the record has none.
        encoding: The format of the records, and its options.
        per_second: For an envelope's own field with a time since 1970, the number of its units in a second; else 0.
    """
    name = (schema.name if schema is not None else None) or ""
    if sql_type.is_decimal:
        return _decimal_converter(sql_type, schema, encoding)
    if sql_type == DATE:
        return _date_converter(schema, name)
    if sql_type == TIMESTAMP:
        return _instant_converter(name, encoding, per_second)
    if sql_type == STRING and name in _CLOCKS:
        return lambda raw: _clock(raw, _CLOCKS[name])
    if (sql_type.is_whole or sql_type in (DOUBLE, FLOAT)) and schema is not None and name in (_DECIMAL, _VARIABLE):
        return lambda raw: raw if _is_number(raw) else _unscaled(raw, schema.scale if name == _DECIMAL else None)
    return None


# -- DECIMAL -----------------------------------------------------------------------------------------------------------


def _decimal_converter(sql_type: SqlType, schema: ConnectSchema | None, encoding: ValueEncoding) -> Convert:
    """Return a converter to decimal texts; numbers, and strings with the schema of a plain string, stay as they are."""
    name = schema.name if schema is not None else None
    scale, decimals = sql_type.scale, encoding.decimals
    if schema is not None and schema.type == "string" and name is None:
        decimals = "string"
    elif schema is not None and name == _DECIMAL:
        decimals = "base64"
        found = schema.scale
        if found is None:
            return lambda raw: raw if _is_number(raw) else _fail("the Decimal in its schema has no scale")
        scale = found

    def convert(raw: bytes) -> bytes:
        if _is_number(raw):
            return raw
        if raw[:1] == b"{":
            return b'"' + _unscaled(raw, None) + b'"'
        if raw[:1] != b'"' or decimals == "string":
            return raw
        if decimals == "base64":
            return b'"' + _unscaled(raw, scale) + b'"'
        return _decimal_text(raw)

    return convert


def _decimal_text(raw: bytes) -> bytes:
    """Check that a text is a decimal number, and cannot be base64."""
    text = _text(raw)
    if not DECIMAL_TEXT.fullmatch(text):
        raise ValueError(
            "the text is no decimal number; base64 (decimal.handling.mode = precise) takes the option decimals = "
            "'base64' with the scale of the database"
        )
    if _BASE64.fullmatch(text):
        raise ValueError(
            "the text may be a decimal number or base64; give the option decimals = 'string' or 'base64', or set "
            "schemas.enable = true in the connector"
        )
    return raw


class _VariableDecimal(msgspec.Struct):
    scale: int
    value: str


_decode_variable = msgspec.json.Decoder(_VariableDecimal).decode


def _unscaled(raw: bytes, scale: int | None) -> bytes:
    """Return a number from base64: big-endian two's complement, divided by 10 to the power of the scale.

    Args:
        raw: The JSON of the base64 text; if `scale` is None, of an object with the scale and this text.
        scale: The scale, or None.

    Raises:
        ValueError: The value does not have this form.
    """
    if scale is None:
        try:
            parts = _decode_variable(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise ValueError("the value is no object of a scale and a value in base64") from None
        scale, text = parts.scale, parts.value
    else:
        text = _text(raw)
    try:
        body = binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        body = b""
    if not body:
        raise ValueError("the text is no base64 of a number")
    if len(body) > _MOST_BYTES or abs(scale) > 10**9 - 1:
        raise ValueError("the number is out of range")
    number = int.from_bytes(body, "big", signed=True)
    if abs(scale) > _PLAIN_SCALE:
        return f"{number}e{-scale}".encode()
    return f"{Decimal(number).scaleb(-scale, _EXACT):f}".encode()


# -- times -------------------------------------------------------------------------------------------------------------


def _date_converter(schema: ConnectSchema | None, name: str) -> Convert:
    if schema is not None and name not in (*_DAYS, *_DATE_TEXTS):
        why = f"its schema has {name}, which is {_TYPE_OF[name]}" if name in _TYPE_OF else ""
        why = why or "its schema has no date; a number is read by a column of its type"
        return lambda raw: _fail(why) if _is_number(raw) or name in _TYPE_OF else _without_zone(raw)
    return lambda raw: _day(raw) if _is_number(raw) else _without_zone(raw)


def _day(raw: bytes) -> bytes:
    try:
        return b'"' + date.fromordinal(_EPOCH_DAY + _whole(raw)).isoformat().encode() + b'"'
    except (OverflowError, ValueError) as exc:
        reason = "the date is beyond the years 1 to 9999"
        raise ValueError(str(exc) if str(exc).startswith("the number") else reason) from None


def _without_zone(raw: bytes) -> bytes:
    """Return a date without the ``Z`` that Debezium's isostring has."""
    return raw[:-2] + b'"' if _ISO_DATE.fullmatch(raw) else raw


def _instant_converter(name: str, encoding: ValueEncoding, per_second: int) -> Convert:
    if name in _TYPE_OF and name not in _INSTANTS and name not in _INSTANT_TEXTS:
        return lambda _: _fail(f"its schema has {name}, which is {_TYPE_OF[name]}")
    per_second = _INSTANTS.get(name, per_second)

    def convert(raw: bytes) -> bytes:
        if not _is_number(raw):
            return raw
        if per_second:
            return _instant(raw, per_second)
        if not encoding.timestamps:
            _fail("the number has no unit; give the option timestamps = 'millis' or 'micros', or declare BIGINT")
        return raw  # the reader of records applies the option

    return convert


def _instant(raw: bytes, per_second: int) -> bytes:
    micros = _whole(raw) * 1_000_000 // per_second
    try:
        return b'"' + (_EPOCH + timedelta(microseconds=micros)).isoformat().encode() + b'"'
    except OverflowError:
        raise ValueError("the time is beyond the years 1 to 9999") from None


def _clock(raw: bytes, per_second: int) -> bytes:
    """Return a time of day as a text; a value that is a text already stays as it is."""
    if not _is_number(raw):
        return raw
    seconds, rest = divmod(_whole(raw), per_second)
    if not 0 <= seconds <= _DAY_SECONDS or (seconds == _DAY_SECONDS and rest):
        raise ValueError("the time is not within a day; declare BIGINT")
    fraction = f".{rest:0{len(str(per_second)) - 1}}".rstrip("0").rstrip(".")
    return f'"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction}"'.encode()


# -- texts and numbers -------------------------------------------------------------------------------------------------


def _is_number(raw: bytes) -> bool:
    return raw[:1] in b"-0123456789"


def _whole(raw: bytes) -> int:
    if not _WHOLE.fullmatch(raw):
        raise ValueError("the number is not whole or is out of range")
    return int(raw)


def _text(raw: bytes) -> str:
    try:
        return msgspec.json.decode(raw, type=str)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise ValueError("the value is no text") from None


def _fail(reason: str) -> NoReturn:
    raise ValueError(reason)
