"""Intervals during compilation: a term that wraps a whole number with its unit.

No column and no result is an INTERVAL. Operators that add to a time, or compare two intervals, unwrap the intervals. An
interval that is still wrapped in the complete query is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from grouping.binding.bound import Bound, Constant, Term
from grouping.functions.functions import result_type
from grouping.model.errors import InputError
from grouping.model.expression import Value
from grouping.model.sql_type import BIGINT, SqlType
from grouping.values.intervals import DAY_MICROS, INTERVAL_READERS, UNITS, interval_kind, parse_interval, unreadable

__all__ = [
    "INTERVAL",
    "alike",
    "counted",
    "interval",
    "interval_literal",
    "interval_unit",
    "is_interval",
    "units_within",
    "whole",
]

INTERVAL = "interval"
"""The operator of the wrapping term."""
_KINDS = {kind: SqlType(f"INTERVAL {kind}") for kind in ("MONTH", "DAY", "SECOND")}


def is_interval(operand: Bound) -> bool:
    """Return whether an operand is an interval."""
    return isinstance(operand, Term) and operand.op == INTERVAL


def interval(kind: str, count: Bound) -> Term:
    """Return a count of months, days or (for SECOND) microseconds as an interval."""
    return Term(INTERVAL, (count,), _KINDS[kind])


def interval_unit(operand: Bound) -> str:
    """Return the unit of an interval: ``MONTH``, ``DAY``, or ``SECOND`` (counted in microseconds)."""
    return operand.type.name.removeprefix("INTERVAL ")


def counted(operand: Bound) -> Bound:
    """Return the whole number of units that an interval counts."""
    assert isinstance(operand, Term), operand
    return operand.args[0]


def alike(intervals: Sequence[Bound]) -> tuple[str, tuple[Bound, ...]]:
    """Return the common unit of intervals, and their counts.

    Raises:
        InputError: ``type-mismatch`` if an operand is no interval, or if months are combined with days or seconds: a
            month has no fixed number of days.
    """
    units = {interval_unit(one) if is_interval(one) else str(one.type) for one in intervals}
    if not units <= set(_KINDS) or ("MONTH" in units and len(units) > 1):
        shown = " and ".join(sorted({str(one.type) for one in intervals}))
        raise InputError(
            "an interval is combined with another kind of value",
            code="type-mismatch",
            detail=f"The operands are {shown}.",
            hint="timestampdiff(SECOND, a, b) gives a number; months have no fixed number of days.",
        )
    if len(units) == 1:
        return units.pop(), tuple(counted(one) for one in intervals)
    return "SECOND", tuple(whole(one) for one in intervals)


def whole(operand: Bound) -> Bound:
    """Return the microseconds of an interval of days or seconds."""
    count = counted(operand)
    if interval_unit(operand) == "SECOND":
        return count
    return Term("*", (count, Value(DAY_MICROS, "BIGINT")), result_type("*", [count.type, BIGINT]))


def interval_literal(text: str, *, is_string: bool, position: int | None, first: str, last: str) -> Term:
    """Return the interval of a literal, such as ``INTERVAL '1-2' YEAR TO MONTH``.

    Args:
        text: The text of the string, or of the number with its sign.
        is_string: Whether the literal is a string in quotes.
        position: The position of the literal; None if the fast path must not exchange the literal.
        first: The unit after the literal; empty if the string contains the units.
        last: The unit after TO, or empty.

    Raises:
        InputError: ``type-mismatch`` for a text that cannot be read as an interval of these units.
    """
    try:
        if not first:
            return _with_units(text, position)
        first, last = _singular(first), _singular(last)
        kind = interval_kind(first, last)
    except ValueError as error:
        raise unreadable(text, error) from None
    reader = f"{'' if is_string else 'number of '}interval {first}{f' TO {last}' if last else ''}"
    if reader not in INTERVAL_READERS:
        raise InputError(
            f"an interval of {first} TO {last} is not supported" if is_string else f'"{text}" is not an interval',
            code="unsupported-query" if is_string else "type-mismatch",
            detail="The larger unit comes before TO, and the value is a string.",
            hint="Write INTERVAL '1-2' YEAR TO MONTH, or INTERVAL '1 02:03' DAY TO MINUTE.",
        )
    kind_of, value = INTERVAL_READERS[reader](text)
    return interval(kind, Constant(value, kind_of, reader, text, position))


def _with_units(text: str, position: int | None) -> Term:
    """Read a string of numbers with units, such as ``1 day 2 hours``."""
    words = text.split()
    if not words or len(words) % 2:
        raise ValueError("no number and unit")
    units = units_within(text)
    kinds = {interval_kind(unit) for unit in units}
    if len(kinds) > 1 and "MONTH" in kinds:
        raise ValueError("a mixture of months and days")
    kind = kinds.pop() if len(kinds) == 1 else "SECOND"
    total = 0
    for number, unit in zip(words[::2], units, strict=True):
        days = kind == "SECOND" and interval_kind(unit) == "DAY"
        total += parse_interval(number, unit) * (DAY_MICROS if days else 1)
    return interval(kind, Constant(total, BIGINT, text=text, position=position, is_pinned=True))


def units_within(text: str) -> list[str]:
    """Return the units in a text such as ``1 day 2 hours``, each in the singular and in upper case.

    Raises:
        ValueError: A word is not a unit.
    """
    return [_singular(unit) for unit in text.split()[1::2]]


def _singular(unit: str) -> str:
    name = unit.upper().removesuffix("S")
    if name and name not in UNITS:
        raise ValueError(f"no unit {unit}")
    return name
