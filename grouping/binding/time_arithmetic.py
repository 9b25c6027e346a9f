"""Arithmetic with dates, times and intervals, as in Spark, built from functions such as timestampadd and datediff."""

from __future__ import annotations

from grouping.binding.bound import Bound, Constant, Term, is_null
from grouping.binding.constants import coerce
from grouping.binding.intervals import alike, counted, interval, interval_unit, is_interval, whole
from grouping.binding.operands import as_timestamp, cast
from grouping.functions.functions import result_type
from grouping.model.expression import Value
from grouping.model.refusals import mismatch, unsupported
from grouping.model.sql_type import BIGINT, DATE, STRING, TIMESTAMP

__all__ = ["is_timed", "negative_interval", "timed"]

_TIMES = (DATE, TIMESTAMP)
_DAYS = ("TINYINT", "SMALLINT", "INT")
_ADDED_UNITS = {"MONTH": "MONTH", "DAY": "DAY", "SECOND": "MICROSECOND"}


def is_timed(operand: Bound) -> bool:
    """Return whether an operand is a DATE, a TIMESTAMP or an interval."""
    return operand.type in _TIMES or is_interval(operand)


def timed(op: str, left: Bound, right: Bound) -> Bound:
    """Return arithmetic with a DATE, a TIMESTAMP or an interval as an operand.

    Raises:
        InputError: ``type-mismatch``, or ``unsupported-query`` if the result would not be exactly Spark's.
    """
    if op == "-" and left.type in _TIMES and not is_interval(right) and right.type in (*_TIMES, STRING):
        return _difference(left, right)
    if op == "-" and right.type in _TIMES and left.type == STRING:
        return _difference(left, right)
    if op == "+" and right.type in _TIMES:
        left, right = right, left
    if op in ("+", "-") and left.type in _TIMES:
        if is_interval(right):
            return _moved(op, left, right)
        if op == "+" and is_null(right):
            return Constant(None, TIMESTAMP)  # as in Spark, also for a DATE
        if left.type == DATE and right.type.name in _DAYS:
            return _function("date_add" if op == "+" else "date_sub", left, right)
    if op in ("+", "-") and is_interval(left) and is_interval(right):
        unit, counts = alike((left, right))
        return interval(unit, Term(op, counts, result_type(op, [count.type for count in counts])))
    if op == "*":
        return _multiple(*((left, right) if is_interval(left) else (right, left)))
    if op == "/" and is_interval(left):
        raise unsupported("division of an interval", "Spark rounds the result.", "Multiply the other side instead.")
    raise mismatch(
        f'"{op}" cannot combine {left.type} and {right.type}',
        "An interval can be added or subtracted, and for a DATE also a number of days of type INT.",
        "Write INTERVAL 5 MINUTES.",
    )


def negative_interval(operand: Bound) -> Bound:
    """Return the negation of an interval."""
    count = counted(operand)
    return interval(interval_unit(operand), Term("neg", (count,), count.type))


def _difference(end: Bound, start: Bound) -> Bound:
    """Return the interval between two times: days for two DATEs, otherwise microseconds."""
    sql_type = DATE if TIMESTAMP not in (end.type, start.type) else TIMESTAMP
    end, start = (
        coerce(side, sql_type) if isinstance(side, Constant) and side.type == STRING else side for side in (end, start)
    )
    end, start = (cast(side, sql_type) if side.type == STRING else side for side in (end, start))
    if sql_type == DATE:
        return interval("DAY", _function("datediff", end, start))
    ends = (as_timestamp(start), as_timestamp(end))
    return interval("SECOND", _function("timestampdiff", Value("MICROSECOND", "STRING"), *ends))


def _moved(op: str, time: Bound, by: Bound) -> Bound:
    """Return a time moved by an interval; a DATE moved by days or months stays a DATE."""
    unit = interval_unit(by)
    if time.type == DATE and unit == "DAY":
        return _function("date_add" if op == "+" else "date_sub", time, counted(by))
    count = counted(by) if op == "+" else counted(negative_interval(by))
    if time.type == DATE and unit == "MONTH":
        return _function("add_months", time, count)
    return _function("timestampadd", Value(_ADDED_UNITS[unit], "STRING"), count, as_timestamp(time))


def _multiple(one: Bound, times: Bound) -> Bound:
    if not times.type.is_whole or not is_interval(one):
        raise unsupported(
            "an interval times this operand",
            f"The operand is of type {times.type}; intervals are multiplied by TINYINT, SMALLINT, INT or BIGINT.",
            "CAST the number AS INT.",
        )
    count, unit = (counted(one), "MONTH") if interval_unit(one) == "MONTH" else (whole(one), "SECOND")
    if BIGINT not in (count.type, times.type) and unit == "SECOND":
        count = Term("cast", (count,), BIGINT)
    return interval(unit, Term("*", (count, times), result_type("*", [count.type, times.type])))


def _function(name: str, *args: Bound) -> Term:
    return Term(name, args, result_type(name, [argument.type for argument in args]))
