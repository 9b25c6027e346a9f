"""The further values that a lenient stream accepts for its columns, and numbers that are read as TIMESTAMPs.

`relaxed` converts a JSON value to a value that `json_exact` accepts. The typed decoder accepts the same texts in its
lax mode; `LENIENT_DELICATE` finds the records in which the decoder would round a number.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import ROUND_FLOOR, Decimal, InvalidOperation
from typing import NamedTuple

import msgspec

from grouping.model.sql_type import BINARY, BOOLEAN, STRING, TIMESTAMP, VARIANT, SqlType
from grouping.values.variant import MISSING
from spark_jobs.engine.decode.json_number import JsonNumber
from spark_jobs.engine.decode.misfit import Misfit

__all__ = ["LENIENT_DELICATE", "STRICT", "Leniency", "relaxed", "time_reader"]


class Leniency(NamedTuple):
    """The options of a stream that let more values fit its columns."""

    lenient: bool = False
    timestamps: str = ""
    """The unit of numbers for a TIMESTAMP: ``seconds``, ``millis`` or ``micros``. Empty: numbers are refused."""


STRICT = Leniency()

_MICROS = {"seconds": 1_000_000, "millis": 1000, "micros": 1}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBER = re.compile(r"([+-]?)(?:([0-9]++)\.?([0-9]*+)|\.([0-9]++))((?:[eE][+-]?[0-9]{1,9})?)", re.ASCII)
"""A number in a text. Signs, zeros and points that JSON refuses are accepted, as in the text of a DECIMAL."""
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False, "-0": False}
_MOST_DIGITS = 40
"""The largest number of digits of a whole number or a time; every type refuses a longer number."""
_ZONE = re.compile(r" ?([+-][0-9]{2}:?[0-9]{2})(?: UTC)?$")
_decode_time = msgspec.json.Decoder(datetime).decode
_HALVES = re.compile("[\ud800-\udfff]")

LENIENT_DELICATE = (
    r"[0-9]{15,}\.|[0-9]{10,14}\.(?:00|99)|\.(?:0{5}|9{5})|[0-9][eE][+-]?[0-9]|\\u00(?:3[0-9]|2[dDeEbB]|[46]5)"
)
"""Matches records with numbers that the lax decoder may round when it reads them as whole numbers.

The decoder reads a number with a fraction or an exponent as a double.
"""


def relaxed(value: object, sql_type: SqlType, leniency: Leniency) -> object:
    """Return a JSON value converted for a column's type, as far as the stream's options allow this.

    Raises:
        Misfit: A number is no time.
    """
    if value is None or value is MISSING:
        return value
    is_number, is_text = isinstance(value, JsonNumber), isinstance(value, str) and not isinstance(value, JsonNumber)
    if leniency.lenient and is_text:
        value = _of_text(str(value), sql_type)
        is_number = isinstance(value, JsonNumber)
    if value is None or sql_type in (STRING, VARIANT):
        return value
    if sql_type.is_nested:
        return _nested(value, sql_type, leniency)
    if sql_type == TIMESTAMP and is_number and leniency.timestamps:
        try:
            return epoch_time(str(value), leniency.timestamps).isoformat()
        except ValueError as exc:
            raise Misfit(str(exc), sql_type) from None
    if leniency.lenient and is_number:
        return _of_number(str(value), sql_type)
    return value


def _of_text(text: str, sql_type: SqlType) -> object:
    """Return the value that a text has for a column: a number, a boolean, NULL, or the text itself."""
    if sql_type == STRING:
        return _HALVES.sub("\N{REPLACEMENT CHARACTER}", text)
    if sql_type == VARIANT:
        return text
    if text.lower() == "null" or (not text and sql_type != BINARY):
        return None
    if sql_type == BINARY:  # every base64 text is a value, even digits and the empty text
        return text
    if sql_type == BOOLEAN:
        return _BOOLEANS.get(text.lower(), text)
    if sql_type == TIMESTAMP or (sql_type.is_number and not sql_type.is_decimal):
        return _number(text) or _ZONE.sub(r"\1", text)
    return text


def _number(text: str) -> JsonNumber | None:
    """Return the number in a text as JSON spells it; None for any other text."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    sign, whole, fraction, alone, exponent = found.groups()
    fraction = fraction or alone
    whole = (whole or "").lstrip("0") or "0"
    return JsonNumber(f"{sign.removeprefix('+')}{whole}{f'.{fraction}' if fraction else ''}{exponent}")


def _of_number(text: str, sql_type: SqlType) -> object:
    if sql_type == BOOLEAN:
        return _BOOLEANS.get(text, JsonNumber(text))
    if sql_type.is_whole and not text.lstrip("-").isdigit():
        try:
            number = Decimal(text)
            if number.adjusted() < _MOST_DIGITS and number == number.to_integral_value():
                return JsonNumber(int(number))
        except InvalidOperation:
            pass  # Decimal holds no exponent of 19 digits; no type of whole numbers holds the number either
    return JsonNumber(text)


def _nested(value: object, sql_type: SqlType, leniency: Leniency) -> object:
    """Return a nested value whose parts `relaxed` has converted; return a value that is not nested unchanged."""
    element = sql_type.element
    if isinstance(value, list) and element is not None and sql_type.key is None:
        return [_part(each, element, leniency, place) for place, each in enumerate(value)]
    if isinstance(value, dict) and element is not None and sql_type.key is not None:
        return {key: _part(each, element, leniency, key) for key, each in value.items()}
    if isinstance(value, dict) and element is None:
        return {name: _part(value.get(name, MISSING), part, leniency, name) for name, part in sql_type.fields}
    return value


def _part(value: object, sql_type: SqlType, leniency: Leniency, step: str | int) -> object:
    try:
        return relaxed(value, sql_type, leniency)
    except Misfit as exc:
        exc.within(step)
        raise


def epoch_time(text: str, unit: str) -> datetime:
    """Return the instant of a number of seconds, milliseconds or microseconds since 1970.

    Raises:
        ValueError: The instant is beyond the years 1 to 9999.

    Example:
        >>> epoch_time("1763719200.5", "seconds").isoformat()
        '2025-11-21T10:00:00.500000+00:00'
    """
    try:
        if text.lstrip("-").isdigit() and len(text) <= _MOST_DIGITS:
            return _EPOCH + timedelta(microseconds=int(text) * _MICROS[unit])
        number = Decimal(text)
        if number.adjusted() < _MOST_DIGITS:
            micros = (number * _MICROS[unit]).to_integral_value(ROUND_FLOOR)
            return _EPOCH + timedelta(microseconds=int(micros))
    except (OverflowError, InvalidOperation):
        pass  # InvalidOperation: Decimal holds no exponent of 19 digits
    raise ValueError("the time is beyond the years 1 to 9999")


def time_reader(leniency: Leniency) -> Callable[[bytes], datetime | None]:
    """Return a fast function that reads TIMESTAMPs from JSON texts. A text that is refused may still fit (`relaxed`).

    The texts must not match the patterns in `json_events` for records that must be read exactly.
    """
    unit = leniency.timestamps

    def read(raw: bytes) -> datetime | None:
        if raw[:1] == b'"':
            return _decode_time(raw)
        if raw == b"null":
            return None
        if unit and raw[:1] in b"-0123456789":
            return epoch_time(raw.decode(), unit)
        raise msgspec.ValidationError

    return read
