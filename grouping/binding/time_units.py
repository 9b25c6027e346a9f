"""Functions that take the name of a time unit, or of a field of a time; the name stays in the signature."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from grouping.binding.bound import Bound, Constant, Term
from grouping.binding.intervals import counted, interval_unit, is_interval, units_within
from grouping.binding.operands import as_day, as_timestamp, whole_number
from grouping.functions.functions import result_type
from grouping.model.errors import InputError, near_name
from grouping.model.expression import Value
from grouping.model.refusals import mismatch, unsupported
from grouping.model.sql_type import BIGINT, INT, STRING, TINYINT, decimal
from grouping.values.intervals import DAY_MICROS

__all__ = ["UNIT_CALLS", "field_of", "text_of", "unit_call"]

UNIT_CALLS = {
    **dict.fromkeys(("timestampadd", "dateadd", "date_add"), "timestampadd"),
    **dict.fromkeys(("timestampdiff", "datediff", "date_diff", "timediff"), "timestampdiff"),
}
"""Functions called with a unit and two further arguments."""
_UNITS = (
    *("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFYEAR"),
    *("HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"),
)
_FIELDS = {
    spelling: field
    for field, spellings in {
        "year": "YEAR Y YEARS YR YRS",
        "YEAROFWEEK": "YEAROFWEEK",
        "quarter": "QUARTER QTR",
        "month": "MONTH MON MONS MONTHS",
        "weekofyear": "WEEK W WEEKS",
        "day": "DAY D DAYS",
        "dayofweek": "DAYOFWEEK DOW",
        "DAYOFWEEK_ISO": "DAYOFWEEK_ISO DOW_ISO",
        "dayofyear": "DOY",
        "hour": "HOUR H HOURS HR HRS",
        "minute": "MINUTE M MIN MINS MINUTES",
        "SECOND": "SECOND S SEC SECONDS SECS",
    }.items()
    for spelling in spellings.split()
}
"""Spelling of a field in upper case → the function that returns the field. A field without a function has its name in
upper case instead."""
_CLOCK = ("DAY", "HOUR", "MINUTE", "SECOND")
"""The units of intervals of days or seconds."""
_COUNTED_AS = {"WEEK": "DAY", "MILLISECOND": "SECOND", "MICROSECOND": "SECOND"}
"""Unit that Spark's interval types lack → the unit to which Spark converts a number of this unit."""
_OF_TIMES = frozenset(("hour", "minute", "SECOND"))


def unit_call(name: str, unit: exp.Expr, args: Sequence[Bound]) -> Bound:
    """Return one of `UNIT_CALLS` applied to a unit and two arguments.

    Raises:
        InputError: ``type-mismatch``.
    """
    written = unit.name.upper() if isinstance(unit, exp.Column) and len(unit.parts) == 1 else ""
    between = UNIT_CALLS[name] == "timestampdiff"
    if written not in _UNITS or (between and written == "DAYOFYEAR"):
        raise mismatch(
            f'"{unit.name}" is not a unit of "{name}"',
            f"The units are {', '.join(_UNITS)}.",
            near_name(unit.name, _UNITS),
        )
    value = Value("DAY" if written == "DAYOFYEAR" else written, "STRING")
    if between:
        return _term("timestampdiff", value, *map(as_timestamp, args))
    count, time = args
    return _term("timestampadd", value, whole_number(count, name), as_timestamp(time))


def field_of(written: str, time: Bound) -> Bound:
    """Return a field of a DATE or TIMESTAMP, as EXTRACT and date_part do.

    Raises:
        InputError: ``type-mismatch``, ``unsupported-query``.
    """
    field = _FIELDS.get(written.upper())
    if field is None:
        known = sorted(_FIELDS)
        raise InputError(
            f'"{written}" is not a field of a time',
            code="type-mismatch",
            detail=f"The fields are {', '.join(known)}.",
            hint=near_name(written.upper(), known),
        )
    if is_interval(time):
        return _of_interval(field, time)
    time = as_timestamp(time) if field in _OF_TIMES else as_day(time)
    if field == "DAYOFWEEK_ISO":
        return Term("+", (_term("weekday", time), Value(1, "INT")), INT)
    if field == "SECOND":
        return Term("date_part", (Value(field, "STRING"), time), decimal(8, 6))
    if field == "YEAROFWEEK":
        return Term("date_part", (Value(field, "STRING"), time), INT)
    return _term(field, time)


def _of_interval(field: str, time: Bound) -> Bound:
    """Return a field of an interval: days as INT, hours and minutes as TINYINT, as in Spark."""
    unit, count = interval_unit(time), counted(time)
    if (units := _units_of(count)) and field.upper() in _CLOCK and field.upper() not in units:
        raise mismatch(f"the interval has no {field.upper()}", f"The literal has {' TO '.join(units)}.")
    if field == "day" and unit == "DAY":
        return Term("cast", (count,), INT) if count.type != INT else count
    if field == "day" and unit == "SECOND":
        return Term("cast", (Term("div", (count, Value(DAY_MICROS, "BIGINT")), BIGINT),), INT)
    if (field, unit) in _WITHIN_INTERVALS:
        around, own = (Value(micros, "BIGINT") for micros in _WITHIN_INTERVALS[field, unit])
        return Term("cast", (Term("div", (Term("%", (count, around), BIGINT), own), BIGINT),), TINYINT)
    raise unsupported(
        f"{field.upper()} of an interval",
        "The supported fields are DAY, HOUR and MINUTE, of an interval without years and months.",
        "timestampdiff(SECOND, a, b) gives a number.",
    )


_WITHIN_INTERVALS = {
    ("hour", "SECOND"): (DAY_MICROS, DAY_MICROS // 24),
    ("minute", "SECOND"): (DAY_MICROS // 24, DAY_MICROS // 24 // 60),
}
"""(field, unit of the interval) → the microseconds of the next larger field, and of the field itself."""


def _term(name: str, *args: Bound) -> Term:
    return Term(name, args, result_type(name, [argument.type for argument in args]))


def text_of(argument: Bound, what: str) -> str:
    """Return the value of a constant text that stays in the signature.

    Raises:
        InputError: ``unsupported-query`` for an argument that is not a constant STRING.
    """
    if not isinstance(argument, Constant) or argument.type != STRING or not isinstance(argument.value, str):
        raise unsupported(f"{what} that is not a constant", "The argument must be a constant STRING.")
    return argument.value


def _units_of(count: Bound) -> tuple[str, ...]:
    """Return the units of a literal of days or seconds, or of a sum of literals; empty for any other interval."""
    if isinstance(count, Term):
        first, *others = count.args
        if count.op == "neg" or (count.op == "*" and isinstance(others[0], Value)):  # `intervals.whole` multiplies days
            return _units_of(first)
        added = [_units_of(part) for part in count.args] if count.op in ("+", "-") else [()]
        return _span(part for units in added for part in units) if all(added) else ()
    if not isinstance(count, Constant):
        return ()
    if count.reader is None:
        return _span(units_within(count.text))
    return _span(count.reader.rpartition("interval ")[2].split(" TO "))


def _span(units: Iterable[str]) -> tuple[str, ...]:
    """Return all units of `_CLOCK` from the largest to the smallest of the given units; empty for months and years."""
    places = sorted(_CLOCK.index(unit) for each in units if (unit := _COUNTED_AS.get(each, each)) in _CLOCK)
    return _CLOCK[places[0] : places[-1] + 1] if places else ()
