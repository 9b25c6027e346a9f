"""Spark's functions of dates and times over typed Polars expressions; the calendar has the years 1 to 9999."""

from __future__ import annotations

import math
from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import polars as pl

from grouping.model.sql_type import BIGINT, DATE, DOUBLE, INT, STRING, TIMESTAMP, UNKNOWN, SqlType
from grouping.values.literals import EXACT
from spark_jobs.engine.expressions.by_value import each_distinct
from spark_jobs.engine.expressions.times.zones import from_utc, to_utc
from spark_jobs.engine.expressions.types import Implementation, Operand, by_value, polars_type

__all__ = ["FIRST_MICROS", "FUNCTIONS", "LAST_MICROS", "moved_months", "timestamp_of_decimal", "timestamp_of_double"]

_EPOCH = date(1970, 1, 1)
_MICROS = 1_000_000
_FIRST_DAY, _LAST_DAY = (date.min - _EPOCH).days, (date.max - _EPOCH).days
FIRST_MICROS, LAST_MICROS = _FIRST_DAY * 86_400_000_000, (_LAST_DAY + 1) * 86_400_000_000 - 1


def _part(read: Callable[[pl.Expr], pl.Expr]) -> Implementation:
    return lambda args, _: Operand(read(args[0].expr).cast(pl.Int32), INT)


def _date_step(sign: int) -> Implementation:
    """Return the implementation that moves a date by days. A date outside the years 1 to 9999 is NULL.

    A DATE cannot hold such a date, and Polars would panic.
    """

    def apply(args: list[Operand], _: SqlType) -> Operand:
        day, count = args
        moved = day.expr.cast(pl.Int32).cast(pl.Int64) + sign * count.expr.cast(pl.Int64)
        known = pl.when(moved.is_between(_FIRST_DAY, _LAST_DAY)).then(moved)
        return Operand(known.cast(pl.Int32).cast(pl.Date), DATE)

    return apply


def _datediff(args: list[Operand], _: SqlType) -> Operand:
    end, start = (argument.expr.cast(pl.Int32).cast(pl.Int64) for argument in args)
    return Operand((end - start).cast(pl.Int32, strict=False), INT)


def _within_calendar(function: Callable[..., object], sql_type: SqlType) -> Implementation:
    """Return the implementation of a function in Python; NULL for a NULL argument or a date outside the calendar."""

    def guarded(*values: object) -> object:
        try:
            return function(*values)
        except (ValueError, OverflowError):
            return None

    return by_value(guarded, sql_type)


def moved_months(day: date, months: int) -> date | None:
    """Return the day `months` months later, at most that month's last day; None for a day outside the calendar."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    if not date.min.year <= year <= date.max.year:
        return None
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


_UNITS = {
    unit: names.split()[0]
    for names in ("year yyyy yy", "quarter", "month mon mm", "week", "day dd", "hour", "minute", "second",
                  "millisecond", "microsecond")
    for unit in names.split()
}  # fmt: skip


def _truncated_day(day: date, unit: str | None) -> date | None:
    match unit:
        case "year":
            return day.replace(month=1, day=1)
        case "quarter":
            return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case "month":
            return day.replace(day=1)
        case "week":
            return day - timedelta(days=day.weekday())
    return None


def _trunc(day: date, unit: str) -> date | None:
    return _truncated_day(day, _UNITS.get(unit.lower()))


_BELOW = {"day": 86_400_000_000, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000, "millisecond": 1000}


def _date_trunc(unit: str, time: datetime) -> datetime | None:
    known = _UNITS.get(unit.lower())
    if known in (None, "microsecond"):
        return time if known else None
    midnight = time.replace(hour=0, minute=0, second=0, microsecond=0)
    if known in _BELOW:
        micros = (time - midnight) // timedelta(microseconds=1)
        return midnight + timedelta(microseconds=micros - micros % _BELOW[known])
    day = _truncated_day(time.date(), known)
    return None if day is None else midnight.replace(year=day.year, month=day.month, day=day.day)


_WEEKDAYS = {
    name: number
    for number, names in enumerate(
        ("mo mon monday", "tu tue tuesday", "we wed wednesday", "th thu thursday", "fr fri friday", "sa sat saturday",
         "su sun sunday")
    )
    for name in names.split()
}  # fmt: skip


def _next_day(day: date, name: str) -> date | None:
    wanted = _WEEKDAYS.get(name.lower())
    return None if wanted is None else day + timedelta(days=(wanted - day.weekday() - 1) % 7 + 1)


_MONTH_NAMES = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
_DAY_NAMES = "Mon Tue Wed Thu Fri Sat Sun".split()
_LAST_SECOND = 60


def _make_timestamp(year: int, month: int, day: int, hour: int, minute: int, seconds: Decimal, *zone: str) -> datetime:
    """Return the time with these fields; a value of 60 seconds is the beginning of the next minute.

    Raises:
        ValueError: A field is out of its range.
    """
    # Spark holds the microseconds in an INT: larger values wrap around.
    whole, fraction = divmod((int(seconds.scaleb(6)) + 2**31) % 2**32 - 2**31, _MICROS)
    if whole < 0 or (whole, fraction) > (_LAST_SECOND, 0):
        raise ValueError("seconds out of range")
    time = datetime(year, month, day, hour, minute, whole % _LAST_SECOND, fraction, UTC)
    time += timedelta(minutes=whole // _LAST_SECOND)
    return to_utc(time, *zone) if zone else time


_MONTH_SECONDS = 31 * 86_400


def _months_between(one: datetime, other: datetime, rounded: bool = True) -> float:
    """Return the months from the second time to the first; days and times of day count as parts of 31 days."""
    months = (one.year - other.year) * 12 + one.month - other.month
    if one.day == other.day or (_is_last(one) and _is_last(other)):
        return float(months)
    seconds = (one.day - other.day) * 86_400 + _clock(one) - _clock(other)
    between = months + seconds / _MONTH_SECONDS
    return math.floor(between * 1e8 + 0.5) / 1e8 if rounded else between


def _is_last(day: date) -> bool:
    return day.day == monthrange(day.year, day.month)[1]


def _clock(time: datetime) -> int:
    return time.hour * 3600 + time.minute * 60 + time.second


def _from_epoch(micros: int) -> Implementation:
    """Return the implementation that converts a number of time units since 1970 to a TIMESTAMP."""

    def apply(args: list[Operand], _: SqlType) -> Operand:
        count = args[0].expr.cast(pl.Int128) * micros
        known = pl.when(count.is_between(FIRST_MICROS, LAST_MICROS)).then(count)
        return Operand(known.cast(pl.Int64).cast(polars_type(TIMESTAMP)), TIMESTAMP)

    return apply


def timestamp_of_double(seconds: pl.Expr) -> pl.Expr:
    """Convert seconds since 1970, cut to microseconds; NULL for NaN, infinities, and years outside 1 to 9999."""
    micros = (seconds * float(_MICROS)).cast(pl.Int64, strict=False)
    return pl.when(micros.is_between(FIRST_MICROS, LAST_MICROS)).then(micros).cast(polars_type(TIMESTAMP))


def timestamp_of_decimal(seconds: pl.Expr, *, exact: bool) -> pl.Expr:
    """Convert a DECIMAL of seconds since 1970 to a TIMESTAMP; NULL for years outside 1 to 9999.

    Args:
        seconds: The DECIMAL.
        exact: Whether a fraction of a microsecond is NULL, as in timestamp_seconds. A CAST cuts the fraction off, and
            keeps the low 64 bits of microseconds that exceed BIGINT, as Java does.
    """

    def micros(number: Decimal) -> int | None:
        scaled = EXACT.scaleb(number, 6)
        whole = int(scaled)
        if exact:
            known = whole == scaled
        else:
            whole, known = (whole + 2**63) % 2**64 - 2**63, True
        return whole if known and FIRST_MICROS <= whole <= LAST_MICROS else None

    return each_distinct([seconds], micros, pl.Int64).cast(polars_type(TIMESTAMP))


def _timestamp_seconds(args: list[Operand], sql_type: SqlType) -> Operand:
    value = args[0]
    if value.type.is_decimal:
        return Operand(timestamp_of_decimal(value.expr, exact=True), TIMESTAMP)
    if value.type.is_whole:
        return _from_epoch(_MICROS)(args, sql_type)
    return Operand(timestamp_of_double(value.expr.cast(pl.Float64)), TIMESTAMP)


def _to_epoch(micros: int) -> Implementation:
    return lambda args, _: Operand(args[0].expr.cast(pl.Datetime("us", "UTC")).cast(pl.Int64) // micros, BIGINT)


FUNCTIONS: dict[str, Implementation] = {
    "year": _part(lambda day: day.dt.year()),
    "quarter": _part(lambda day: day.dt.quarter()),
    "month": _part(lambda day: day.dt.month()),
    "weekofyear": _part(lambda day: day.dt.week()),
    "day": _part(lambda day: day.dt.day()),
    "dayofyear": _part(lambda day: day.dt.ordinal_day()),
    "dayofweek": _part(lambda day: day.dt.weekday() % 7 + 1),
    "weekday": _part(lambda day: day.dt.weekday() - 1),
    "hour": _part(lambda time: time.dt.hour()),
    "minute": _part(lambda time: time.dt.minute()),
    "second": _part(lambda time: time.dt.second()),
    "date_add": _date_step(1),
    "date_sub": _date_step(-1),
    "datediff": _datediff,
    "add_months": _within_calendar(moved_months, DATE),
    "last_day": _within_calendar(lambda day: day.replace(day=monthrange(day.year, day.month)[1]), DATE),
    "next_day": _within_calendar(_next_day, DATE),
    "make_date": _within_calendar(date, DATE),
    "trunc": _within_calendar(_trunc, DATE),
    "date_trunc": _within_calendar(_date_trunc, TIMESTAMP),
    "from_utc_timestamp": _within_calendar(from_utc, TIMESTAMP),
    "to_utc_timestamp": _within_calendar(to_utc, TIMESTAMP),
    "make_timestamp": _within_calendar(_make_timestamp, TIMESTAMP),
    "months_between": _within_calendar(_months_between, DOUBLE),
    "monthname": _within_calendar(lambda day: _MONTH_NAMES[day.month - 1], STRING),
    "dayname": _within_calendar(lambda day: _DAY_NAMES[day.weekday()], STRING),
    "unix_date": lambda args, _: Operand(args[0].expr.cast(pl.Int32), INT),
    "date_from_unix_date": lambda args, _: _date_step(1)([Operand(pl.repeat(_EPOCH, pl.len()), DATE), *args], UNKNOWN),
    "unix_seconds": _to_epoch(1_000_000),
    "unix_millis": _to_epoch(1000),
    "unix_micros": _to_epoch(1),
    "timestamp_seconds": _timestamp_seconds,
    "timestamp_millis": _from_epoch(1000),
    "timestamp_micros": _from_epoch(1),
}
"""The implementation by function; the names are those in `grouping.functions`."""
