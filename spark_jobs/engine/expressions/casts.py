"""CAST with the results of Spark's try_cast: a value that cannot be converted becomes NULL."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from math import isfinite

import polars as pl

from grouping.model.errors import InternalError
from grouping.model.sql_type import BIGINT, WHOLE_BITS, SqlType
from spark_jobs.engine.expressions.by_value import each_distinct
from spark_jobs.engine.expressions.numbers.decimals import fitted
from spark_jobs.engine.expressions.times.dates import timestamp_of_decimal, timestamp_of_double
from spark_jobs.engine.expressions.times.zones import to_utc
from spark_jobs.engine.expressions.types import Operand, polars_type, to_double

__all__ = ["CASTS", "cast", "read_text", "to_bigint"]

_TOP = 2.0**63
_BLANK = "".join(map(chr, (*range(0x21), 0x7F)))
"""The characters that Spark trims around a number or a date: white space and control characters of ASCII."""
_JAVA_BLANK = "".join(map(chr, range(0x21)))
_WHOLE = re.compile(r"[+-]?[0-9]+")
_DOUBLE = re.compile(r"[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?[dDfF]?")
_HEXADECIMAL = re.compile(r"([+-]?)0[xX]([0-9a-fA-F]*)\.?([0-9a-fA-F]*)[pP]([+-]?[0-9]+)[dDfF]?")
_SPECIAL = re.compile(r"([+-]?)(?i:inf|infinity)|(?i:nan)|[+-]NaN", re.A)
_DECIMAL = re.compile(r"[+-]?(?:\d++\.?\d*+|\.\d++)(?:[eE][+-]?\d{1,9})?")
_DATE = re.compile(r"([+-]?)([0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.S)
_TIMESTAMP = re.compile(
    r"(?P<sign>[+-]?)(?P<year>[0-9]{4,6})(?:-(?P<month>[0-9]{1,2})(?:-(?P<day>[0-9]{1,2})"
    r"(?:[ T](?P<hour>[0-9]{1,2})(?::(?P<minute>[0-9]{1,2})(?::(?P<second>[0-9]{1,2})"
    r"(?:\.(?P<fraction>[0-9]*))?(?P<zone>[^0-9.].*)?)?)?)?)?)?",
    re.ASCII | re.DOTALL,
)
_FIELDS = (("year", 1), ("month", 1), ("day", 1), ("hour", 0), ("minute", 0), ("second", 0))
_TRUE = frozenset(("t", "true", "y", "yes", "1"))
_FALSE = frozenset(("f", "false", "n", "no", "0"))
_MICROS = 1_000_000
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799
_LONGEST_EXPONENT = 5000
_MOST_BITS = 1200
"""A number above the absolute value of any DOUBLE's binary exponent."""


def cast(args: list[Operand], sql_type: SqlType) -> Operand:
    """Compile a CAST."""
    (value,) = args
    convert = CASTS.get((value.type.name, sql_type.name))
    if convert is None and value.type != sql_type:
        raise InternalError(f"no cast of {value.type} to {sql_type}")
    return Operand(convert(value, sql_type) if convert else value.expr, sql_type)


def to_bigint(value: pl.Expr) -> pl.Expr:
    """Convert whole doubles as Java's ``(long)``: NaN to 0, a value outside the range to the nearest BIGINT."""
    return (
        pl.when(value.is_nan())
        .then(pl.lit(0, pl.Int64))
        .when(value >= _TOP)
        .then(pl.lit(2**63 - 1, pl.Int64))
        .when(value <= -_TOP)
        .then(pl.lit(-(2**63), pl.Int64))
        .otherwise(value.cast(pl.Int64, strict=False))
    )


Caster = Callable[[Operand, SqlType], pl.Expr]


def _plain(value: Operand, sql_type: SqlType) -> pl.Expr:
    return value.expr.cast(polars_type(sql_type), strict=False)


def _by_value(convert: Callable[..., object]) -> Caster:
    """Return the cast that calls a function with each distinct value and the target type."""
    return lambda value, sql_type: each_distinct(
        [value.expr], lambda one: convert(one, sql_type), polars_type(sql_type)
    )


def _double_to_whole(value: Operand, sql_type: SqlType) -> pl.Expr:
    number = to_double(value)
    whole = pl.when(number < 0).then(number.ceil()).otherwise(number.floor())
    most = 2.0 ** (WHOLE_BITS[sql_type.name] - 1)
    top = _TOP if sql_type == BIGINT else most - 1  # Spark compares doubles, so 2^63 fits
    fits = (whole <= top) & (whole >= -most)
    return pl.when(fits).then(to_bigint(whole)).cast(polars_type(sql_type), strict=False)


def _double_to_decimal(value: Operand, sql_type: SqlType) -> pl.Expr:
    """Round a number's shortest decimal form; a FLOAT is first converted to the DOUBLE of the same value."""

    def read(number: float) -> Decimal | None:
        return fitted(Decimal(repr(number)), sql_type) if isfinite(number) else None

    return each_distinct([to_double(value)], read, polars_type(sql_type))


def _boolean_to_string(value: Operand, _: SqlType) -> pl.Expr:
    return pl.when(value.expr).then(pl.lit("true")).when(~value.expr).then(pl.lit("false"))


def _string_to_whole(text: str, sql_type: SqlType) -> int | None:
    text = text.strip(_BLANK)
    if not _WHOLE.fullmatch(text) or len(text) > _LONGEST_EXPONENT // 2:
        return None
    number = int(text)
    return _in_range(number, sql_type)


def _string_to_double(text: str, _: SqlType) -> float | None:
    plain = text.strip(_JAVA_BLANK)
    if (digits := _digits_of(plain)) is not None:
        return float(digits)
    special = _SPECIAL.fullmatch(plain)
    if special is None:
        return None
    return float(special[1] + "inf") if special[1] is not None else float("nan")


def _digits_of(text: str) -> str | None:
    """Return the decimal digits of a text if Java reads a finite number, else None."""
    if _DOUBLE.fullmatch(text):
        return text.rstrip("dDfF")
    found = _HEXADECIMAL.fullmatch(text)
    if found is None or not found[2] + found[3]:
        return None
    mantissa = int(found[2] + found[3], 16)
    exponent = int(found[4][: _LONGEST_EXPONENT // 2]) - 4 * len(found[3])
    if not mantissa or mantissa.bit_length() + exponent < -_MOST_BITS:
        return f"{found[1]}0"
    if mantissa.bit_length() + exponent > _MOST_BITS:
        return f"{found[1]}1e999"
    spare = max(mantissa.bit_length() - _MOST_BITS, 0)  # the last kept bit is set if any bit that is cut off is set
    mantissa, exponent = mantissa >> spare | bool(mantissa & (1 << spare) - 1), exponent + spare
    digits = f"{mantissa << exponent}" if exponent >= 0 else f"{mantissa * 5**-exponent}e{exponent}"
    return found[1] + digits


def _string_to_float(value: Operand, _: SqlType) -> pl.Expr:
    """Read FLOATs directly from texts; a conversion through DOUBLE would round a number twice."""

    def plain(text: str) -> str | None:
        number = _string_to_double(text, _)
        if number is None or not isfinite(number):
            return None if number is None else str(number)
        return _digits_of(text.strip(_JAVA_BLANK))

    return each_distinct([value.expr], plain, pl.String).cast(pl.Float32)


def _decimal_to_float(value: Operand, _: SqlType) -> pl.Expr:
    return each_distinct([value.expr], lambda number: format(number, "f"), pl.String).cast(pl.Float32)


def _string_to_decimal(text: str, sql_type: SqlType) -> Decimal | None:
    """Read a DECIMAL. Java accepts the digits of any script, if each digit is a single UTF-16 unit."""
    text = text.strip(_BLANK)
    if not _DECIMAL.fullmatch(text) or max(text) > "\uffff":
        return None
    value = Decimal(text)
    return fitted(value, sql_type) if abs(value.adjusted()) < _LONGEST_EXPONENT else (None if value else Decimal(0))


def _string_to_boolean(text: str, _: SqlType) -> bool | None:
    text = text.strip(_BLANK).lower()
    return True if text in _TRUE else False if text in _FALSE else None


def _string_to_date(text: str, _: SqlType) -> date | None:
    match = _DATE.fullmatch(text.strip(_BLANK))
    if match is None or match[1] == "-":
        return None
    try:
        return date(int(match[2]), int(match[3] or 1), int(match[4] or 1))
    except ValueError:
        return None


def _string_to_timestamp(text: str, _: SqlType) -> datetime | None:
    """Read a time. For a time without a date, Spark would take today's date; here the result is NULL."""
    match = _TIMESTAMP.fullmatch(text.strip(_BLANK))
    if match is None or match["sign"] == "-":
        return None
    micros = (match["fraction"] or "")[:6].ljust(6, "0")
    year, month, day, hour, minute, second = (int(match[part] or least) for part, least in _FIELDS)
    try:
        time = datetime(year, month, day, hour, minute, second, int(micros), UTC)
        return to_utc(time, (match["zone"] or "").strip() or "UTC")
    except (ValueError, OverflowError):
        return None


def _timestamp_to_string(time: datetime, _: SqlType) -> str:
    text = f"{time.year:04}-{time.month:02}-{time.day:02} {time.hour:02}:{time.minute:02}:{time.second:02}"
    return f"{text}.{time.microsecond:06}".rstrip("0") if time.microsecond else text


def _seconds_to_timestamp(value: Operand, sql_type: SqlType) -> pl.Expr:
    seconds = value.expr.cast(pl.Int64)
    known = pl.when(seconds.is_between(_FIRST_SECOND, _LAST_SECOND)).then(seconds)
    return (known * _MICROS).cast(polars_type(sql_type))


def _timestamp_to_seconds(value: Operand, sql_type: SqlType) -> pl.Expr:
    return (value.expr.cast(pl.Int64) // _MICROS).cast(polars_type(sql_type), strict=False)


def _timestamp_to_double(value: Operand, _: SqlType) -> pl.Expr:
    """Return the seconds since 1970. NumPy divides by a million; Polars would multiply by the inexact reciprocal."""

    def seconds(column: pl.Series) -> pl.Series:
        return pl.Series(column.to_numpy() / float(_MICROS), dtype=pl.Float64).set(column.is_null(), None)

    return value.expr.cast(pl.Int64).cast(pl.Float64).map_batches(seconds, return_dtype=pl.Float64)


def _decimal_to_whole(number: Decimal, sql_type: SqlType) -> int | None:
    return _in_range(int(number), sql_type)


def _in_range(number: int, sql_type: SqlType) -> int | None:
    bound = 2 ** (WHOLE_BITS[sql_type.name] - 1)
    return number if -bound <= number < bound else None


_TEXT_READERS: dict[str, Callable[[str, SqlType], object]] = {
    **dict.fromkeys(WHOLE_BITS, _string_to_whole),
    "DOUBLE": _string_to_double,
    "DECIMAL": _string_to_decimal,
    "BOOLEAN": _string_to_boolean,
    "TIMESTAMP": _string_to_timestamp,
    "DATE": _string_to_date,
    "BINARY": lambda text, _: text.encode(),
}


def read_text(text: str, sql_type: SqlType) -> object:
    """Return the result of a CAST of a text to a type; None if the result is NULL."""
    return _TEXT_READERS[sql_type.name](text, sql_type)


CASTS: dict[tuple[str, str], Caster] = {
    **dict.fromkeys([(a, b) for a in WHOLE_BITS for b in (*WHOLE_BITS, "FLOAT", "DOUBLE", "STRING")], _plain),
    **dict.fromkeys([(kind, "TIMESTAMP") for kind in WHOLE_BITS], _seconds_to_timestamp),
    **dict.fromkeys([("TIMESTAMP", kind) for kind in WHOLE_BITS], _timestamp_to_seconds),
    **dict.fromkeys([(a, kind) for a in ("FLOAT", "DOUBLE") for kind in WHOLE_BITS], _double_to_whole),
    **dict.fromkeys([(a, "DECIMAL") for a in ("FLOAT", "DOUBLE")], _double_to_decimal),
    **dict.fromkeys([("FLOAT", "DOUBLE"), ("DOUBLE", "FLOAT"), ("BOOLEAN", "FLOAT")], _plain),
    ("BOOLEAN", "DECIMAL"): _by_value(lambda flag, kind: fitted(Decimal(flag), kind)),
    ("TIMESTAMP", "DOUBLE"): _timestamp_to_double,
    **dict.fromkeys(
        [(a, "TIMESTAMP") for a in ("FLOAT", "DOUBLE")], lambda value, _: timestamp_of_double(to_double(value))
    ),
    ("DECIMAL", "TIMESTAMP"): lambda value, _: timestamp_of_decimal(value.expr, exact=False),
    **{("STRING", kind): _by_value(read) for kind, read in _TEXT_READERS.items()},
    ("STRING", "FLOAT"): _string_to_float,
    ("DECIMAL", "FLOAT"): _decimal_to_float,
    ("STRING", "BINARY"): lambda value, _: value.expr.cast(pl.Binary),
    **dict.fromkeys([("DECIMAL", kind) for kind in WHOLE_BITS], _by_value(_decimal_to_whole)),
    **dict.fromkeys([(a, "DECIMAL") for a in (*WHOLE_BITS, "DECIMAL")], _by_value(lambda n, k: fitted(Decimal(n), k))),
    **dict.fromkeys([("BOOLEAN", kind) for kind in (*WHOLE_BITS, "DOUBLE")], _plain),
    **dict.fromkeys([(kind, "BOOLEAN") for kind in (*WHOLE_BITS, "FLOAT", "DOUBLE")], lambda value, _: value.expr != 0),
    ("BOOLEAN", "STRING"): _boolean_to_string,
    ("DATE", "STRING"): lambda value, _: value.expr.dt.strftime("%Y-%m-%d"),
    ("DATE", "TIMESTAMP"): _plain,
    ("TIMESTAMP", "DATE"): lambda value, _: value.expr.dt.date(),
    ("TIMESTAMP", "STRING"): _by_value(_timestamp_to_string),
    ("DECIMAL", "DOUBLE"): lambda value, _: to_double(value),
    ("DECIMAL", "STRING"): _by_value(lambda number, _: format(number, "f")),
    ("DECIMAL", "BOOLEAN"): _by_value(lambda number, _: bool(number)),
}
"""By the names of a type and of the target type: the conversion. A number that does not fit the target becomes NULL."""
