"""Reads the texts of INTERVAL literals as Spark does; an interval becomes a whole number.

An interval of years and months is a number of months; an interval of weeks and days is a number of days; any other
interval is a number of microseconds. Only seconds have a fraction, which is truncated to microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import combinations

from grouping.model.errors import InputError
from grouping.model.sql_type import BIGINT, INT, SqlType

__all__ = ["DAY_MICROS", "INTERVAL_READERS", "UNITS", "interval_kind", "parse_interval", "unreadable"]

DAY_MICROS = 86_400_000_000
_MONTHS = {"YEAR": 12, "MONTH": 1}
_DAYS = {"WEEK": 7, "DAY": 1}
_MICROS = {
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MILLISECOND": 1000,
    "MICROSECOND": 1,
}
UNITS = (*_MONTHS, *_DAYS, *_MICROS)
"""The units; each is also accepted in the plural."""
_NUMBER = re.compile(r"\s*([+-]?)(?=\.?[0-9])([0-9]{0,18})(?:\.([0-9]{0,9}))?\s*", re.ASCII)
_YEARS = re.compile(r"\s*([+-]?)([0-9]{1,9})-([0-9]{1,2})\s*", re.ASCII)
_PARTS = ("DAY", "HOUR", "MINUTE", "SECOND")
_PART = {"DAY": r"([0-9]{1,9})", "SECOND": r"([0-9]{1,2}(?:\.[0-9]{1,9})?)"}
_LIMITS = {"HOUR": 24, "MINUTE": 60, "SECOND": 60}
_FORMS = "Write INTERVAL 5 MINUTES, INTERVAL '1 02:03:04' DAY TO SECOND or INTERVAL '1-2' YEAR TO MONTH."
_MOST_MONTHS = 2**31
_MOST_MICROS = 2**63


def interval_kind(first: str, last: str = "") -> str:
    """Return the kind of an interval: ``MONTH`` for months, ``DAY`` for days, ``SECOND`` for microseconds.

    Raises:
        ValueError: There is no such interval.
    """
    if first in _MONTHS and last in ("", *_MONTHS):
        return "MONTH"
    if first in _DAYS and (not last or last == first):
        return "DAY"
    if last and (first not in _PARTS or last not in _PARTS or _PARTS.index(first) >= _PARTS.index(last)):
        raise ValueError(f"no interval of {first} to {last}")
    return "SECOND"


def parse_interval(text: str, first: str, last: str = "") -> int:
    """Return the months, days or microseconds of an interval.

    Args:
        text: The text after INTERVAL, without quotes.
        first: The unit after the text.
        last: The unit after TO, if any.

    Raises:
        ValueError: The text is no interval of these units, or too long.

    Example:
        >>> parse_interval("5", "WEEK"), parse_interval("1-2", "YEAR", "MONTH")
        (35, 14)
        >>> parse_interval("-1 02:03:04.5", "DAY", "SECOND")
        -93784500000
    """
    if last and last != first:
        found = _months(text) if first in _MONTHS else _clock(text, first, last)
    else:
        found = _counted(text, first)
    kind = interval_kind(first, last)
    most = _MOST_MONTHS if kind == "MONTH" else _MOST_MICROS // (DAY_MICROS if kind == "DAY" else 1)
    if not -most <= found < most:
        raise ValueError("too long a time in it")
    return found


def _counted(text: str, unit: str) -> int:
    number = _NUMBER.fullmatch(text)
    if number is None or (number[3] is not None and unit != "SECOND"):
        raise ValueError(f"no number of {unit}S")
    size = int(number[2] or 0) * (_MONTHS.get(unit) or _DAYS.get(unit) or _MICROS[unit])
    if number[3]:
        size += int(number[3].ljust(6, "0")[:6])
    return -size if number[1] == "-" else size


def _months(text: str) -> int:
    found = _YEARS.fullmatch(text)
    if found is None or int(found[3]) >= _MONTHS["YEAR"]:
        raise ValueError("no text of the form '1-2' in it")
    months = int(found[2]) * _MONTHS["YEAR"] + int(found[3])
    return -months if found[1] == "-" else months


def _clock(text: str, first: str, last: str) -> int:
    """Read ``1 02:03:04`` or some of its parts. The first part may be any number; others are limited as on a clock."""
    units = _PARTS[_PARTS.index(first) : _PARTS.index(last) + 1]
    form = "".join(
        (" +" if before == "DAY" else ":" if before else "") + (_PART.get(unit) or r"([0-9]{1,9})")
        for before, unit in zip(("", *units), units, strict=False)
    )
    found = re.fullmatch(rf"\s*([+-]?){form}\s*", text, re.ASCII)
    if found is None:
        raise ValueError(f"no interval of {first} to {last}")
    total = 0
    for unit, part in zip(units, found.groups()[1:], strict=True):
        whole, _, fraction = part.partition(".")
        if unit != first and int(whole) >= _LIMITS[unit]:
            raise ValueError(f"{whole}, which is beyond a clock's {unit.lower()}s")
        total += int(whole) * (_MICROS.get(unit) or DAY_MICROS) + int(fraction.ljust(6, "0")[:6])
    return -total if found[1] == "-" else total


def unreadable(text: str, why: ValueError) -> InputError:
    """Return the refusal of a text that is no interval."""
    return InputError(f'"{text}" is not an interval', code="type-mismatch", detail=f"There is {why}.", hint=_FORMS)


def _reader(first: str, last: str) -> Callable[[str], tuple[SqlType, int]]:
    sql_type = BIGINT if interval_kind(first, last) == "SECOND" else INT

    def read(text: str) -> tuple[SqlType, int]:
        try:
            return sql_type, parse_interval(text, first, last)
        except ValueError as error:
            raise unreadable(text, error) from None

    return read


_SINGLE = {unit: _reader(unit, "") for unit in UNITS}
INTERVAL_READERS = {
    **{f"interval {unit}": read for unit, read in _SINGLE.items()},
    **{f"number of interval {unit}": read for unit, read in _SINGLE.items()},
    **{f"interval {a} TO {b}": _reader(a, b) for a, b in (*combinations(_PARTS, 2), ("YEAR", "MONTH"))},
}
"""Readers by the units after INTERVAL: from a literal's text to the type and the value of its slot.

Numbers and strings have different readers, so the fast path never exchanges a number for a string."""
