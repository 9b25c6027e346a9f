"""Reads values that are not nested for from_json, each from the current token, as Spark converts Jackson's tokens."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from grouping.model.sql_type import DATE, TIMESTAMP, WHOLE_BITS, SqlType
from grouping.values.java_double import json_double
from spark_jobs.engine.expressions.casts import read_text
from spark_jobs.engine.expressions.nested.json_reader import encodable, quoted
from spark_jobs.engine.expressions.nested.json_tokens import BrokenJsonError, JsonTokens, Token

__all__ = ["VALUE_READERS", "expect"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INFINITIES = {"+INF": "inf", "+Infinity": "inf", "Infinity": "inf", "-INF": "-inf", "-Infinity": "-inf"}
_ODD = {"NaN": "nan", **_INFINITIES}
_MICROS = 1_000_000
_DAYS = re.compile(r"[+-]?(?:[0-9]{1,3}|[0-9]{8,10})")
_FIRST_GREGORIAN = -141_427
"""The day October 15, 1582, the first of the Gregorian calendar, as a number of days since 1970."""
_JULIAN_DAYS = 2_440_588 + 32_082
"""The number of days from March 1 of the year -4800 to January 1, 1970."""
_NUMBERS = (Token.WHOLE, Token.FLOAT)

ValueReader = Callable[[JsonTokens], Any]


def expect(tokens: JsonTokens, *wanted: Token) -> None:
    """Check that the current token is of one of the kinds `wanted`; raises `BrokenJsonError` if not."""
    if tokens.current not in wanted:
        raise BrokenJsonError


def _string(_: SqlType) -> ValueReader:
    return lambda tokens: encodable(tokens.string()) if tokens.current is Token.STRING else _copied(tokens)


def _copied(tokens: JsonTokens) -> str:
    """Return the text that Jackson writes for the value that begins at the current token.

    Raises:
        BrokenJsonError: The value is broken.
    """
    parts: list[str] = []
    depth = 0
    while True:
        token = tokens.current
        closes = token in (Token.OBJECT_END, Token.ARRAY_END)
        if closes and not depth:
            raise BrokenJsonError
        if parts and not closes and parts[-1][-1:] not in ("{", "[", ":"):
            parts.append(",")
        parts.append(_written(tokens))
        depth += (token in (Token.OBJECT, Token.ARRAY)) - closes
        if depth == 0:
            return "".join(parts)
        if tokens.next() is None:
            raise BrokenJsonError


def _written(tokens: JsonTokens) -> str:
    match tokens.current:
        case Token.NAME:
            return f"{quoted(tokens.name or '')}:"
        case Token.STRING:
            return quoted(tokens.string())
        case Token.WHOLE:
            return str(int(tokens.text))
        case Token.FLOAT:
            return json_double(float(_ODD.get(tokens.text, tokens.text)))
        case token if token in _WORDS:
            return _WORDS[token]
    raise BrokenJsonError


_WORDS = {
    Token.TRUE: "true",
    Token.FALSE: "false",
    Token.NULL: "null",
    Token.OBJECT: "{",
    Token.OBJECT_END: "}",
    Token.ARRAY: "[",
    Token.ARRAY_END: "]",
}


def _truth(_: SqlType) -> ValueReader:
    def read(tokens: JsonTokens) -> bool:
        expect(tokens, Token.TRUE, Token.FALSE)
        return tokens.current is Token.TRUE

    return read


def _whole(sql_type: SqlType) -> ValueReader:
    bound = 1 << (WHOLE_BITS[sql_type.name] - 1)
    top = 2 * bound if sql_type.name == "TINYINT" else bound  # Jackson accepts 128 to 255 as bytes: 200 becomes -56

    def read(tokens: JsonTokens) -> int:
        expect(tokens, Token.WHOLE)
        number = int(tokens.text)
        if not -bound <= number < top:
            raise BrokenJsonError
        return number if number < bound else number - 2 * bound

    return read


def _double(_: SqlType) -> ValueReader:
    def read(tokens: JsonTokens) -> float:
        if tokens.current is Token.STRING and (text := tokens.string()) in _ODD:
            return float(_ODD[text])
        expect(tokens, *_NUMBERS)
        number = float(_ODD.get(tokens.text, tokens.text))
        return number + 0.0 if tokens.current is Token.WHOLE else number  # "-0" is the whole number 0, without a sign

    return read


def _decimal(sql_type: SqlType) -> ValueReader:
    def read(tokens: JsonTokens) -> Decimal:
        expect(tokens, Token.STRING, *_NUMBERS)
        if not tokens.text.isprintable() or " " in tokens.text:
            raise BrokenJsonError  # unlike a CAST, from_json skips no blanks
        number = read_text(tokens.text, sql_type)
        if not isinstance(number, Decimal):
            raise BrokenJsonError
        return number if number else abs(number)

    return read


def _time(_: SqlType) -> ValueReader:
    def read(tokens: JsonTokens) -> datetime | None:
        if tokens.current is Token.WHOLE:
            return _of_seconds(int(tokens.text))
        expect(tokens, Token.STRING)
        found = read_text(tokens.text, TIMESTAMP) or read_text(tokens.text.replace("GMT", ""), TIMESTAMP)
        if not isinstance(found, datetime):
            raise BrokenJsonError
        return found

    return read


def _of_seconds(seconds: int) -> datetime | None:
    """Return the time `seconds` after 1970. Java multiplies the seconds by a million, and keeps 64 bits."""
    if not -(1 << 63) <= seconds < 1 << 63:
        raise BrokenJsonError
    micros = (seconds * _MICROS + (1 << 63)) % (1 << 64) - (1 << 63)
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return None


def _day(_: SqlType) -> ValueReader:
    def read(tokens: JsonTokens) -> date:
        expect(tokens, Token.STRING)
        text = tokens.text
        found = read_text(text, DATE) or read_text(text.replace("GMT", ""), DATE) or _of_days(text)
        if not isinstance(found, date):
            raise BrokenJsonError
        return found

    return read


def _of_days(text: str) -> date | None:
    """Return the date that is a number of days after January 1, 1970; None if the text is not read as such a number.

    A text is read as a number of days if it has at most three digits or eight to ten. A text of four digits is a year,
    which a CAST reads.
    """
    if not _DAYS.fullmatch(text):
        return None
    days = int(text)
    try:
        return (_EPOCH + timedelta(days=days)).date() if days >= _FIRST_GREGORIAN else _of_julian(days)
    except (OverflowError, ValueError):
        return None


def _of_julian(days: int) -> date:
    """Return the date with the year, month and day that the Julian calendar has for a day before October 15, 1582."""
    shifted = 4 * (days + _JULIAN_DAYS) + 3
    day_of_year = shifted % 1461 // 4
    month = (5 * day_of_year + 2) // 153
    first = date(shifted // 1461 - 4800 + month // 10, month + 3 - 12 * (month // 10), 1)
    return first + timedelta(days=day_of_year - (153 * month + 2) // 5)


VALUE_READERS: dict[str, Callable[[SqlType], ValueReader]] = {
    "BOOLEAN": _truth,
    "DATE": _day,
    "DECIMAL": _decimal,
    "DOUBLE": _double,
    "STRING": _string,
    "TIMESTAMP": _time,
    **dict.fromkeys(WHOLE_BITS, _whole),
}
"""The function that makes a type's reader, by the name of the type.

`grouping.binding.variants` refuses the other types that are not nested.
"""
