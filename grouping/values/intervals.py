"""The texts of INTERVAL literals, as Spark reads them, each as a whole number.

An interval of years and months is a number of months; one of weeks and days a number of days; any other a number of
microseconds. A fraction belongs to seconds, and is cut off after microseconds.
"""

from __future__ import annotations

import re

__all__ = ["DAY_MICROS", "MONTHS", "UNITS", "interval_kind", "parse_interval"]

DAY_MICROS = 86_400_000_000
MONTHS = {"YEAR": 12, "MONTH": 1}
_DAYS = {"WEEK": 7, "DAY": 1}
_MICROS = {
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MILLISECOND": 1000,
    "MICROSECOND": 1,
}
UNITS = (*MONTHS, *_DAYS, *_MICROS)
"""The units, each in the plural too."""
_NUMBER = re.compile(r"\s*([+-]?)([0-9]{1,18})(?:\.([0-9]{0,9}))?\s*", re.ASCII)
_YEARS = re.compile(r"\s*([+-]?)([0-9]{1,9})-([0-9]{1,2})\s*", re.ASCII)
_PARTS = ("DAY", "HOUR", "MINUTE", "SECOND")
_PART = {"DAY": r"([0-9]{1,9})", "SECOND": r"([0-9]{1,2}(?:\.[0-9]{1,9})?)"}
_LIMITS = {"HOUR": 24, "MINUTE": 60, "SECOND": 60}
_MOST_MONTHS = 2**31
_MOST_MICROS = 2**63


def interval_kind(first: str, last: str = "") -> str:
    """Return what an interval of these units counts: ``MONTH``, ``DAY`` or ``SECOND`` (its microseconds).

    Raises:
        ValueError: There is no such interval.
    """
    if first in MONTHS and last in ("", *MONTHS):
        return "MONTH"
    if first in _DAYS and (not last or last == first):
        return "DAY"
    if last and (first not in _PARTS or last not in _PARTS or _PARTS.index(first) >= _PARTS.index(last)):
        raise ValueError(f"no interval of {first} to {last}")
    return "SECOND"


def parse_interval(text: str, first: str, last: str = "") -> int:
    """Return the months, days or microseconds of an interval.

    Args:
        text: What stands behind INTERVAL, without its quotes.
        first: The unit behind it.
        last: The unit behind TO, where there is one.

    Raises:
        ValueError: The text is no interval of these units, or too long.

    Example:
        >>> parse_interval("5", "WEEK"), parse_interval("1-2", "YEAR", "MONTH")
        (35, 14)
        >>> parse_interval("-1 02:03:04.5", "DAY", "SECOND")
        -93784500000
    """
    if last and last != first:
        found = _months(text) if first in MONTHS else _clock(text, first, last)
    else:
        found = _counted(text, first)
    kind = interval_kind(first, last)
    most = _MOST_MONTHS if kind == "MONTH" else _MOST_MICROS // (DAY_MICROS if kind == "DAY" else 1)
    if not -most <= found < most:
        raise ValueError("too long an interval")
    return found


def _counted(text: str, unit: str) -> int:
    number = _NUMBER.fullmatch(text)
    if number is None or (number[3] is not None and unit != "SECOND"):
        raise ValueError(f"no number of {unit}S")
    size = int(number[2]) * (MONTHS.get(unit) or _DAYS.get(unit) or _MICROS[unit])
    if number[3]:
        size += int(number[3].ljust(6, "0")[:6])
    return -size if number[1] == "-" else size


def _months(text: str) -> int:
    found = _YEARS.fullmatch(text)
    if found is None or int(found[3]) >= MONTHS["YEAR"]:
        raise ValueError("not of the form '1-2'")
    months = int(found[2]) * MONTHS["YEAR"] + int(found[3])
    return -months if found[1] == "-" else months


def _clock(text: str, first: str, last: str) -> int:
    """Read ``1 02:03:04`` and parts of it; the first part may be any number, the others are those of a clock."""
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
            raise ValueError(f"{whole} is beyond a clock's {unit}S")
        total += int(whole) * (_MICROS.get(unit) or DAY_MICROS) + int(fraction.ljust(6, "0")[:6])
    return -total if found[1] == "-" else total
