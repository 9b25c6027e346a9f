"""Readers of literals, which turn a text into an exact value. Each use of a constant has a reader (`READERS`)."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, time
from decimal import Context, Decimal, InvalidOperation

from grouping.model.decimal_types import WIDEST
from grouping.model.errors import InputError
from grouping.model.group import ConstantValue
from grouping.model.refusals import unsupported
from grouping.model.sql_type import BIGINT, DATE, DOUBLE, INT, NUMERIC, STRING, TIMESTAMP, SqlType, decimal
from grouping.values.intervals import INTERVAL_READERS
from grouping.values.iso8601 import padded, parse_date, parse_timestamp
from grouping.values.like_pattern import check_escapes, is_too_large
from grouping.values.patterns import occurrences, rust_groups, rust_pattern
from grouping.values.replacement import check_replacement
from grouping.values.time_zone import time_zone

__all__ = ["EXACT", "LARGEST_COUNT", "OF_STRINGS", "READERS", "exact_or_decimal"]

_LONGEST_NUMBER = 400
_SURE = 18
"""A number of at most this many characters fits every type, so the number is read without checks."""
LARGEST_COUNT = 1000
"""The largest number of repetitions of a text or value, and the largest length to which a text is padded."""
_LAST_OF_JAVA = 0xFFFF
"""The last character that takes a single `char` in Java."""
_SHOWN = 20
"""The largest number of characters of a literal that an error shows."""
_PLAIN_KEY = re.compile("[A-Za-z0-9_%~=:;@!,'& -]*")
EXACT = Context(prec=2 * _LONGEST_NUMBER)
"""A context whose precision suffices for all numbers that a reader accepts, so no number is rounded."""


def _exact(text: str) -> tuple[SqlType, ConstantValue]:
    """Read a number exactly: a BIGINT if it fits, else NUMERIC."""
    if len(text) <= _SURE:  # a shortcut, since a list may have thousands of numbers
        whole, _, fraction = text.partition(".")
        if whole.removeprefix("-").isdecimal():
            if not fraction.strip("0"):
                return BIGINT, int(whole)
            if fraction.isdecimal():
                return NUMERIC, Decimal(text.rstrip("0"))
    if "e" in text or "E" in text:
        _double(text)  # refuses a number beyond the range of DOUBLE, as all readers do
    value = _decimal(text)
    if value == value.to_integral_value() and -(2**63) <= value < 2**63:
        return BIGINT, int(value)
    return NUMERIC, EXACT.normalize(value)


def exact_or_decimal(text: str) -> tuple[SqlType, ConstantValue]:
    """Read a number exactly, as a BIGINT or a DECIMAL.

    Raises:
        InputError: ``type-mismatch`` if the text is no number, or out of range.
    """
    sql_type, value = _exact(text)
    if not isinstance(value, Decimal):
        return sql_type, value
    parts = value.as_tuple()
    scale = max(0, -int(parts.exponent))
    return decimal(max(len(parts.digits) + max(0, int(parts.exponent)), scale), scale), value


def _double(text: str) -> tuple[SqlType, ConstantValue]:
    if len(text) <= _SURE and text.removeprefix("-").replace(".", "", 1).isdecimal():
        return DOUBLE, float(text) + 0.0
    value = float(_decimal(text))
    if value in (float("inf"), float("-inf")):
        raise _unreadable(text, DOUBLE)
    return DOUBLE, value + 0.0


def _literal(text: str) -> tuple[SqlType, ConstantValue]:
    """Read a number with the type that Spark gives to the literal, for uses in which no column decides the type."""
    if len(text) <= _SURE and text.isdecimal():
        number = int(text)
        return (INT if number < 2**31 else BIGINT), number
    if "e" in text or "E" in text:
        return _double(text)
    whole, _, fraction = text.partition(".")
    if len(text) <= _SURE and whole.isdecimal() and fraction.isdecimal():
        return decimal(max(len((whole + fraction).lstrip("0")), len(fraction)), len(fraction)), Decimal(text)
    value = _decimal(text)
    if "." not in text and -(2**63) <= value < 2**63:
        return (INT if -(2**31) <= value < 2**31 else BIGINT), int(value)
    return decimal(_precision(value), max(0, -int(value.as_tuple().exponent))), value


def _decimal(text: str) -> Decimal:
    if len(text) > _LONGEST_NUMBER:
        raise _unreadable(text[:_SHOWN] + "…")
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise _unreadable(text) from None
    # The exponent of a zero is checked too: converting 0e999999999 to an int would take a gigabyte.
    if not value.is_finite() or abs(value.adjusted()) > _LONGEST_NUMBER:
        raise _unreadable(text)
    if "e" not in text and "E" not in text and _precision(value) > WIDEST:
        raise _too_precise(text, value)
    return value


def _precision(value: Decimal) -> int:
    """Return the number of digits that a DECIMAL needs for a number without an exponent."""
    return max(len(value.as_tuple().digits), -int(value.as_tuple().exponent))


def _string(text: str) -> tuple[SqlType, ConstantValue]:
    return STRING, text


def _date(text: str) -> tuple[SqlType, ConstantValue]:
    try:
        return DATE, parse_date(text)
    except ValueError:
        raise _unreadable(text, DATE) from None


def _timestamp(text: str) -> tuple[SqlType, ConstantValue]:
    """Read a TIMESTAMP. A date is read as the midnight at its beginning, as SQL compares a DATE with a TIMESTAMP."""
    try:
        return TIMESTAMP, parse_timestamp(text)
    except ValueError:
        pass
    try:
        return TIMESTAMP, datetime.combine(parse_date(text), time(), UTC)
    except ValueError:
        raise _unreadable(text, TIMESTAMP) from None


def _cast_date(text: str) -> tuple[SqlType, ConstantValue]:
    """Read the text of a CAST to DATE. The text may lack zeros and parts."""
    filled = padded(text)
    return _date(text if filled == text else filled[: len("2026-11-21")])


def _cast_timestamp(text: str) -> tuple[SqlType, ConstantValue]:
    """Read the text of a CAST to TIMESTAMP. The text may lack zeros and parts."""
    return _timestamp(padded(text))


def _precise(text: str) -> tuple[SqlType, ConstantValue]:
    """Read a number that is used with a DECIMAL. As in Spark, a whole number has the precision of its digits."""
    sql_type, value = _literal(text)
    if isinstance(value, int):
        value = Decimal(value)
        sql_type = decimal(len(value.as_tuple().digits), 0)
    return sql_type, value


def _negated(text: str) -> tuple[SqlType, ConstantValue]:
    """Read a number with a minus before its parentheses, as in ``-(5)``. The minus does not change the type."""
    sql_type, value = _literal(text.removeprefix("-"))
    return sql_type, -value  # type: ignore[operator]  # it is a number


def _count(text: str) -> tuple[SqlType, ConstantValue]:
    """Read the number of repetitions of a text, or the length to which a text is padded."""
    sql_type, value = _literal(text)
    if sql_type != INT or not isinstance(value, int) or value > LARGEST_COUNT:
        raise InputError(
            f'"{text}" is too large, or not an INT',
            code="unsupported-query",
            detail=f"The length or number of repetitions of a string is an INT of at most {LARGEST_COUNT:,}.",
        )
    return sql_type, value


def _pattern(text: str) -> tuple[SqlType, ConstantValue]:
    rust_pattern(text)
    return STRING, text


def _groups(text: str) -> tuple[SqlType, ConstantValue]:
    rust_groups(text)
    return STRING, text


def _occurrences(text: str) -> tuple[SqlType, ConstantValue]:
    occurrences(text)
    return STRING, text


def _replacement(text: str) -> tuple[SqlType, ConstantValue]:
    check_replacement(text)
    return STRING, text


def _mask(text: str) -> tuple[SqlType, ConstantValue]:
    """Read the character with which `mask` replaces other characters."""
    if len(text) != 1 or ord(text) > _LAST_OF_JAVA:
        raise InputError(
            f'"{text[:_SHOWN]}" is not one character',
            code="type-mismatch",
            detail="A mask is a string of one character, or NULL.",
        )
    return STRING, text


def _key(text: str) -> tuple[SqlType, ConstantValue]:
    """Read the name of a URL's parameter. Spark puts the name into a regular expression; special signs are refused."""
    if not _PLAIN_KEY.fullmatch(text):
        raise unsupported(
            f'the key "{text[:_SHOWN]}" of a URL', "The key may have letters, digits, and _ - % ~ = : ; @ ! , ' &."
        )
    return STRING, text


def _like(text: str) -> tuple[SqlType, ConstantValue]:
    """Read a pattern of LIKE."""
    check_escapes(text)
    return _escaped(text)


def _escaped(text: str) -> tuple[SqlType, ConstantValue]:
    """Read a pattern of LIKE with ESCAPE."""
    if is_too_large(text):
        raise InputError(
            f'the pattern of LIKE "{text[:_SHOWN]}…" is too large',
            code="unsupported-query",
            detail="A pattern has at most 100,000 bytes and 5,000 wildcards.",
            hint="Search for a shorter part of the text.",
        )
    return STRING, text


def _ilike(text: str) -> tuple[SqlType, ConstantValue]:
    """Read a pattern of ILIKE, which Spark compares in lower case."""
    return _like(text.lower())


def _escaped_ilike(text: str) -> tuple[SqlType, ConstantValue]:
    return _escaped(text.lower())


def _zone(text: str) -> tuple[SqlType, ConstantValue]:
    try:
        time_zone(text)
    except ValueError:
        raise InputError(
            f'"{text[:_SHOWN]}" is not a time zone',
            code="unsupported-query",
            detail="A zone is one of the IANA database, in its spelling, or an offset.",
            hint="Write 'Europe/Madrid' or '+01:00'.",
        ) from None
    return STRING, text


_QUOTED = re.compile(r"\s*([+-]?[0-9]+(?:\.[0-9]+)?)\s*", re.ASCII)


def _quoted_whole(text: str) -> tuple[SqlType, ConstantValue]:
    """Read a text that is compared with a whole number. Spark casts the text to BIGINT."""
    found = _QUOTED.fullmatch(text)
    if found is None or "." in found[1] or not -(2**63) <= int(found[1]) < 2**63:
        raise _unreadable(text[:_SHOWN], BIGINT)
    return BIGINT, int(found[1])


def _quoted_double(text: str) -> tuple[SqlType, ConstantValue]:
    """Read a text that is compared with a FLOAT or a DOUBLE. Spark casts the text to DOUBLE."""
    found = _QUOTED.fullmatch(text)
    if found is None:
        raise _unreadable(text[:_SHOWN], DOUBLE)
    return _double(found[1])


READERS: dict[str, Callable[[str], tuple[SqlType, ConstantValue]]] = {
    "exact": _exact,
    "decimal": exact_or_decimal,
    "double": _double,
    "literal": _literal,
    "whole": _literal,
    "negated": _negated,
    "precise": _precise,
    "count": _count,
    "pattern": _pattern,
    "groups": _groups,
    "occurrences": _occurrences,
    "replacement": _replacement,
    "mask": _mask,
    "key": _key,
    "like": _like,
    "ilike": _ilike,
    "escaped": _escaped,
    "escaped ilike": _escaped_ilike,
    "string": _string,
    "date": _date,
    "timestamp": _timestamp,
    "cast date": _cast_date,
    "cast timestamp": _cast_timestamp,
    "zone": _zone,
    "quoted whole": _quoted_whole,
    "quoted double": _quoted_double,
    **INTERVAL_READERS,
}
"""Name → reader: from a literal's text to the type and the value of its slot."""
_OF_NUMBERS = frozenset(("exact", "decimal", "double", "literal", "whole", "negated", "precise", "count"))
OF_STRINGS = frozenset(
    reader for reader in READERS if reader not in _OF_NUMBERS and not reader.startswith("number of interval")
)
"""The readers of quoted texts: all readers except those of numbers."""


def _unreadable(text: str, sql_type: SqlType | None = None) -> InputError:
    form = sql_type and {DATE: "2026-11-21", TIMESTAMP: "2026-11-21T10:00:00Z"}.get(sql_type)
    return InputError(
        f'"{text}" is not a {sql_type or "number"}',
        code="type-mismatch",
        detail=f"A {sql_type} is written in ISO 8601." if form else "The value is out of range, or not a number.",
        hint=f"Write it as '{form}'." if form else None,
    )


def _too_precise(text: str, value: Decimal) -> InputError:
    """Return the refusal of a number without an exponent that fits no DECIMAL. Spark refuses the number too."""
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return InputError(
        f'"{shown}" has too many digits',
        code="type-mismatch",
        detail=f"A DECIMAL for it needs {_precision(value)} digits; a DECIMAL has at most {WIDEST}.",
        hint="With an exponent, as in 1.5e40, a number is a DOUBLE.",
    )
