"""The five fields of a cron expression: bounds, names, and the check of an expression."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from cronsim import CronSim, CronSimError

__all__ = [
    "BOUNDS",
    "DAY",
    "DAYS",
    "FIELDS",
    "HOUR",
    "LONGEST",
    "MACROS",
    "MINUTE",
    "MONTHS",
    "MONTH",
    "NAMES",
    "SIZES",
    "WEEKDAY",
    "check_fields",
    "is_valid_field",
    "plain_fields",
    "value_number",
]

FIELDS = 5
MINUTE, HOUR, DAY, MONTH, WEEKDAY = range(FIELDS)
LONGEST = 200
"""The largest number of characters of an expression."""
MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
DAYS = "SUNDAY MONDAY TUESDAY WEDNESDAY THURSDAY FRIDAY SATURDAY".split()
MONTHS = "JANUARY FEBRUARY MARCH APRIL MAY JUNE JULY AUGUST SEPTEMBER OCTOBER NOVEMBER DECEMBER".split()
NAMES = {MONTH: (MONTHS, 1), WEEKDAY: (DAYS, 0)}
"""Field → the names of its values, and the number of the first value."""
BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_UNITS = ("minute", "hour", "day", "month", "day")
SIZES = (60, 24, 31, 12, 7)
"""For each field, the number of its values, which a step must not exceed."""
_BASE = datetime(2000, 1, 1, tzinfo=UTC)
"""The instant at which the search for a first tick begins. Any instant would do, since expressions repeat forever."""
_NAME_LENGTH = 3
_WORD = re.compile(r"[A-Za-z]{3,}")
_STEP = re.compile(r"[^/]+/([0-9]{1,9})", re.ASCII)


def plain_fields(fields: list[str]) -> list[str]:
    """Return the fields with ``?`` as ``*``, and full names of days and months as their first three letters.

    Example:
        >>> plain_fields(["0", "8", "?", "january", "Monday-Friday"])
        ['0', '8', '*', 'jan', 'Mon-Fri']
    """
    return [_plain(field, place) for place, field in enumerate(fields)]


def _plain(field: str, place: int) -> str:
    if field == "?" and place in (DAY, WEEKDAY):
        return "*"
    if place not in NAMES:
        return field
    names = NAMES[place][0]
    return _WORD.sub(lambda found: found[0][:3] if found[0].upper() in names else found[0], field)


def value_number(written: str, place: int) -> int | None:
    """Return the number of a value, which may be a number or the beginning of a name; None for any other text.

    Example:
        >>> value_number("07", HOUR), value_number("Thurs", WEEKDAY), value_number("ju", MONTH)
        (7, 4, None)
    """
    if written.isascii() and written.isdecimal():
        return int(written[:9])
    names, first = NAMES.get(place, ((), 0))
    word = written.upper()[:_NAME_LENGTH]
    found = [number for number, name in enumerate(names) if len(word) > 1 and name.startswith(word)]
    return found[0] + first if len(found) == 1 else None


def is_valid_field(field: str, place: int) -> bool:
    """Return whether a field is valid in an expression in which all other fields are ``*``."""
    fields = ["*"] * FIELDS
    fields[place] = field
    try:
        check_fields(fields)
    except (ValueError, StopIteration):
        return False
    return True


def check_fields(fields: list[str]) -> None:
    """Check an expression. A step must not be longer than its field: ``*/90`` of minutes would fire every hour.

    Raises:
        ValueError: The expression is not valid; the text of the error is a sentence without its full stop.
        StopIteration: No day matches all fields.
    """
    if len(fields) != FIELDS:
        raise ValueError(f"There are {len(fields)} fields, not {FIELDS}")
    try:
        next(CronSim(" ".join(fields), _BASE))
    except CronSimError as error:
        raise ValueError(str(error)) from None
    except (ArithmeticError, AssertionError, ValueError):
        raise ValueError("A field cannot be read") from None
    for field, whole, unit in zip(fields, SIZES, _UNITS, strict=True):
        for part in field.split(","):
            if (found := _STEP.fullmatch(part)) and int(found[1]) > whole:
                raise ValueError(f"A step of {found[1]} {unit}s is longer than the {whole} {unit}s of its field")
