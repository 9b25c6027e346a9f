"""ISO 8601 dates and times, in the forms beyond RFC 3339 too (basic, week and ordinal dates, without seconds)."""

from __future__ import annotations

import re
from calendar import isleap
from datetime import UTC, date, datetime, timedelta

__all__ = ["parse_date", "parse_timestamp"]

_ORDINAL = re.compile(r"([0-9]{4})-?([0-9]{3})")
_TIMESTAMP = re.compile(
    r"(?P<date>[0-9W-]{7,10})[Tt ]"
    r"(?P<time>[0-9]{2}(?::?[0-9]{2}(?::?[0-9]{2}(?P<fraction>[.,][0-9]+)?)?)?)"
    r"(?P<zone>[Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)?"
)
_END_OF_DAY = re.compile(r"24(?::?00(?::?00(?:[.,]0+)?)?)?")


def parse_date(text: str) -> date:
    """Return the date of an ISO 8601 text: calendar, week or ordinal, extended or basic.

    Raises:
        ValueError: It is none, or beyond the years 1 to 9999.

    Example:
        >>> parse_date("20261121") == parse_date("2026-325") == parse_date("2026-W47-6") == date(2026, 11, 21)
        True
    """
    if ordinal := _ORDINAL.fullmatch(text):
        year, day = int(ordinal[1]), int(ordinal[2])
        if not 1 <= day <= 365 + isleap(year):
            raise ValueError("no such day of the year")
        return date(year, 1, 1) + timedelta(days=day - 1)
    if not text.isascii():  # the library reads other scripts' digits
        raise ValueError("not an ISO 8601 date")
    return date.fromisoformat(text)


def parse_timestamp(text: str) -> datetime:
    """Return the instant, in UTC, of an ISO 8601 date and time; one without a zone is UTC.

    What is finer than a microsecond is cut off, as Spark does. There are no leap seconds.

    Raises:
        ValueError: It is none, or beyond the years 1 to 9999 in UTC.

    Example:
        >>> parse_timestamp("2026-11-21T10:00+01:00")
        datetime.datetime(2026, 11, 21, 9, 0, tzinfo=datetime.timezone.utc)
    """
    parts = _TIMESTAMP.fullmatch(text)
    if parts is None:
        raise ValueError("not an ISO 8601 date and time")
    day, time, zone = parse_date(parts["date"]), parts["time"], (parts["zone"] or "Z").upper()
    try:
        if _END_OF_DAY.fullmatch(time):
            day, time = day + timedelta(days=1), "00"
        return datetime.fromisoformat(f"{day.isoformat()}T{time}{zone}").astimezone(UTC)
    except OverflowError as exc:
        raise ValueError("beyond the years 1 to 9999") from exc
