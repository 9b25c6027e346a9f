"""Adds units to times, measures differences in units, and returns parts of times; NULL outside the years 1 to 9999."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal

import polars as pl

from grouping.model.sql_type import TIMESTAMP, decimal
from spark_jobs.engine.expressions.by_value import each_distinct
from spark_jobs.engine.expressions.times.dates import FIRST_MICROS, LAST_MICROS, moved_months
from spark_jobs.engine.expressions.times.formats import date_format, from_unixtime, to_timestamp
from spark_jobs.engine.expressions.types import Operand, polars_type

__all__ = ["BY_UNIT"]

_MICROS = {
    "WEEK": 604_800_000_000,
    "DAY": 86_400_000_000,
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MILLISECOND": 1000,
    "MICROSECOND": 1,
}
_MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}


def _timestampadd(unit: str, args: Sequence[Operand]) -> pl.Expr:
    count, time = args
    if unit in _MONTHS:

        def moved(months: int, start: datetime) -> datetime | None:
            day = moved_months(start.date(), months * _MONTHS[unit])
            return None if day is None else start.replace(year=day.year, month=day.month, day=day.day)

        return each_distinct([count.expr, time.expr], moved, polars_type(TIMESTAMP))
    micros = time.expr.cast(pl.Int64).cast(pl.Int128) + count.expr.cast(pl.Int128) * _MICROS[unit]
    known = pl.when(micros.is_between(FIRST_MICROS, LAST_MICROS)).then(micros)
    return known.cast(pl.Int64).cast(polars_type(TIMESTAMP))


def _timestampdiff(unit: str, args: Sequence[Operand]) -> pl.Expr:
    """Return the whole units from one time to another, as Java's ``ChronoUnit.between``: cut towards zero."""
    start, end = (argument.expr for argument in args)
    if unit in _MONTHS:
        return _cut(_months(start, end), _MONTHS[unit] * _MONTH_STEP)
    return _cut(end.cast(pl.Int64) - start.cast(pl.Int64), _MICROS[unit])


_MONTH_STEP = 32
"""A number above the number of days in every month.

So dates have the same order as their months times this number plus their days (as in ``LocalDate.monthsUntil``).
"""


def _months(start: pl.Expr, end: pl.Expr) -> pl.Expr:
    """Return the difference of the months times `_MONTH_STEP`, plus the difference of the days, which may be negative.

    The quotient by `_MONTH_STEP`, cut towards zero, is the number of whole months. To respect the times of day, the
    last day is moved by a day if the days and the times of day have different orders.
    """
    days = [time.dt.date().cast(pl.Int32) for time in (start, end)]
    clocks = [time.cast(pl.Int64) % _MICROS["DAY"] for time in (start, end)]
    short = (days[1] > days[0]) & (clocks[1] < clocks[0])
    over = (days[1] < days[0]) & (clocks[1] > clocks[0])
    last = days[1] - pl.when(short).then(1).otherwise(0) + pl.when(over).then(1).otherwise(0)
    return _packed(last.cast(pl.Int32).cast(pl.Date)) - _packed(start.dt.date())


def _packed(day: pl.Expr) -> pl.Expr:
    months = day.dt.year().cast(pl.Int64) * 12 + day.dt.month().cast(pl.Int64)
    return months * _MONTH_STEP + day.dt.day().cast(pl.Int64)


def _cut(size: pl.Expr, step: int) -> pl.Expr:
    whole = size.abs() // step
    return pl.when(size < 0).then(-whole).otherwise(whole)


def _date_part(field: str, args: Sequence[Operand]) -> pl.Expr:
    (time,) = args
    if field == "YEAROFWEEK":
        return time.expr.dt.iso_year().cast(pl.Int32)
    return each_distinct(
        [time.expr.cast(pl.Int64) % _MICROS["MINUTE"]],
        lambda micros: Decimal(micros).scaleb(-6),
        polars_type(decimal(8, 6)),
    )


BY_UNIT: dict[str, tuple[int, Callable[[str, Sequence[Operand]], pl.Expr]]] = {
    "timestampadd": (0, _timestampadd),
    "timestampdiff": (0, _timestampdiff),
    "date_part": (0, _date_part),
    "date_format": (1, date_format),
    "from_unixtime": (1, from_unixtime),
    "to_timestamp": (1, to_timestamp),
}
"""By function: the place of the argument that is a unit, a field or a format, and the implementation.

In the plan, this argument is a literal and never a slot.
"""
