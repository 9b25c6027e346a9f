"""Functions that make an interval from numbers: make_dt_interval and make_ym_interval."""

from __future__ import annotations

from collections.abc import Callable

from grouping.binding.arithmetic import arithmetic
from grouping.binding.bound import Bound, Constant, is_null
from grouping.binding.intervals import interval
from grouping.binding.operands import cast
from grouping.model.expression import Value
from grouping.model.refusals import mismatch
from grouping.model.sql_type import BIGINT, INT, decimal
from grouping.values.intervals import DAY_MICROS

__all__ = ["INTERVAL_CALLS"]

_WHOLE = ("TINYINT", "SMALLINT", "INT")
_SECONDS = decimal(18, 6)
_SECOND = 1_000_000
_MICROS = (DAY_MICROS, 3600 * _SECOND, 60 * _SECOND)
"""Microseconds of a day, an hour and a minute."""
_NOTHING = Constant(0, INT)


def _months(name: str, *args: Bound) -> Bound:
    """Return an interval of years and months; missing arguments are 0."""
    years, months = (*(_whole(name, part) for part in args), _NOTHING, _NOTHING)[:2]
    # The sum is computed as a BIGINT and then CAST to INT, because it may fit an INT even if `years * 12` does not.
    wide = arithmetic("+", _times(years, 12), cast(months, BIGINT))
    return interval("MONTH", cast(wide, INT))


def _days(name: str, *args: Bound) -> Bound:
    """Return an interval of days, hours, minutes and seconds; missing arguments are 0."""
    parts = [_whole(name, part) for part in args[:3]]
    total = _micros(name, args[3]) if len(args) > 3 else _times(_NOTHING, 1)
    for part, micros in zip(parts, _MICROS, strict=False):
        total = arithmetic("+", total, _times(part, micros))
    return interval("SECOND", total)


def _whole(name: str, argument: Bound) -> Bound:
    if is_null(argument):
        return Constant(None, INT)
    if argument.type.name not in _WHOLE:
        raise mismatch(f'an argument of "{name}" is {argument.type}', "The argument must be INT.", "CAST it.")
    return argument


def _times(count: Bound, micros: int) -> Bound:
    return arithmetic("*", cast(count, BIGINT), Value(micros, "BIGINT"))


def _micros(name: str, seconds: Bound) -> Bound:
    """Return seconds with a fraction as microseconds."""
    if not is_null(seconds) and not (seconds.type.is_decimal or seconds.type.name in _WHOLE):
        raise mismatch(f'the seconds of "{name}" are {seconds.type}', "They must be DECIMAL or INT.", "CAST them.")
    return cast(arithmetic("*", cast(seconds, _SECONDS), Value(_SECOND, "INT")), BIGINT)


INTERVAL_CALLS: dict[str, Callable[..., Bound]] = {"make_dt_interval": _days, "make_ym_interval": _months}
"""Binders by function, called with the function's name and the bound arguments."""
