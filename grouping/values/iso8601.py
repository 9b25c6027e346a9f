"""ISO 8601 dates and times: the reader for JSON records, SQL constants and clauses.

All uses accept these forms. A date is a calendar date (``2026-11-21``), a week date (``2026-W47-6``; without a day, the
Monday is meant) or an ordinal date (``2026-325``), with hyphens or without. A time has hours, perhaps minutes, and
perhaps seconds, with colons or without. The last part may have a fraction of any length, which is truncated to
microseconds, as in Spark. ``24:00`` is the end of the day. There are no leap seconds.

Further rules depend on the use. A TIMESTAMP in a record must have a time of day; without a zone, the time is in UTC. A
constant that is compared with a TIMESTAMP may also be a date, which stands for the midnight at its beginning. A time in
a clause must have a zone (`grouping.values.times`).
"""

from __future__ import annotations

import re
from calendar import isleap
from datetime import UTC, date, datetime, timedelta

__all__ = ["padded", "parse_date", "parse_time", "parse_timestamp"]

_ORDINAL = re.compile(r"([0-9]{4})-?([0-9]{3})")
_USUAL = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})?"
)
"""Forms that the standard library can read."""
_TIME = re.compile(
    r"(?P<date>[0-9W-]{7,10})[Tt ]"
    r"(?P<time>(?P<hour>[0-9]{2})(?:(?P<colon>:?)(?P<minute>[0-9]{2})(?:(?P=colon)(?P<second>[0-9]{2}))?)?)"
    r"(?:[.,](?P<fraction>[0-9]+))?"
    r"(?P<zone>[Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)?"
)
_MOST_DIGITS = 100
"""The largest number of digits of a fraction that are read. Further digits are far below a microsecond."""
_DAY = timedelta(days=1)


def parse_date(text: str) -> date:
    """Return the date of an ISO 8601 text.

    Raises:
        ValueError: The text is no date, or beyond the years 1 to 9999.

    Example:
        >>> parse_date("20261121") == parse_date("2026-325") == parse_date("2026-W47-6") == date(2026, 11, 21)
        True
    """
    if ordinal := _ORDINAL.fullmatch(text):
        year, day = int(ordinal[1]), int(ordinal[2])
        if not 1 <= day <= 365 + isleap(year):
            raise ValueError("no such day of the year")
        return date(year, 1, 1) + timedelta(days=day - 1)
    if not text.isascii():  # the library also accepts digits of other scripts
        raise ValueError("not an ISO 8601 date")
    try:
        return date.fromisoformat(text)
    except ValueError as exc:
        if "isoformat" in str(exc):
            raise ValueError("not an ISO 8601 date") from None
        raise


def parse_timestamp(text: str) -> datetime:
    """Return the instant, in UTC, of an ISO 8601 date and time; without a zone, the text is in UTC.

    Raises:
        ValueError: The text is no date and time, or beyond the years 1 to 9999 in UTC.

    Example:
        >>> parse_timestamp("2026-11-21T10:00+01:00")
        datetime.datetime(2026, 11, 21, 9, 0, tzinfo=datetime.timezone.utc)
    """
    found = parse_time(text)
    return found if found.tzinfo is UTC else found.replace(tzinfo=UTC)


def parse_time(text: str) -> datetime:
    """Return an ISO 8601 date and time: in UTC if it has a zone, else as written, without a zone.

    Raises:
        ValueError: The text is no date and time, or beyond the years 1 to 9999 in UTC.

    Example:
        >>> parse_time("2026-W47-6T24:00")
        datetime.datetime(2026, 11, 22, 0, 0)
    """
    try:
        if usual := _USUAL.fullmatch(text):
            if not text.startswith("24", 11):
                found = datetime.fromisoformat(text)
                return found.astimezone(UTC) if usual[1] else found
        return _parts(text)
    except OverflowError as exc:
        raise ValueError("beyond the years 1 to 9999") from exc
    except ValueError as exc:
        if "timedelta" in str(exc):
            raise ValueError("the zone is a day or more from UTC") from None
        raise


_SHORT = re.compile(
    r"\s*([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2})"
    r"(?:[ T]([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2}(?:\.[0-9]*)?))?(Z?))?)?)?\s*",
    re.ASCII,
)


def padded(text: str) -> str:
    """Complete a date, or a date and time, with the parts that Spark's CAST does not require; keep any other text.

    Example:
        >>> padded("2026-1-5 9:03"), padded("2026"), padded("today")
        ('2026-01-05T09:03:00', '2026-01-01', 'today')
    """
    found = _SHORT.fullmatch(text)
    if found is None:
        return text
    year, month, day, hour, minute, second, zone = found.groups()
    written = f"{year}-{int(month or 1):02}-{int(day or 1):02}"
    if hour is None:
        return written
    whole, point, fraction = (second or "0").partition(".")
    return f"{written}T{int(hour):02}:{int(minute):02}:{int(whole):02}{point * bool(fraction)}{fraction}{zone}"


def _parts(text: str) -> datetime:
    """Read a text in any form: rewrite the text for the standard library, and complete missing parts."""
    parts = _TIME.fullmatch(text)
    if parts is None:
        raise ValueError("not an ISO 8601 date and time")
    day, clock, more = parse_date(parts["date"]), parts["time"], timedelta()
    if parts["fraction"]:
        unit = 1 if parts["second"] else 60 if parts["minute"] else 3600
        more = timedelta(microseconds=_micros(parts["fraction"], unit))
    if parts["hour"] == "24":
        if more or clock.strip("0:") != "24":
            raise ValueError("a day ends at 24:00")
        clock, more = "00", _DAY
    found = datetime.fromisoformat(f"{day.isoformat()}T{clock}{(parts['zone'] or '').upper()}")
    if more:
        found += more
    return found.astimezone(UTC) if parts["zone"] else found


def _micros(fraction: str, seconds: int) -> int:
    """Return the whole microseconds in a decimal fraction of a unit of `seconds` seconds."""
    digits = fraction[:_MOST_DIGITS]
    return int(digits) * seconds * 1_000_000 // int(10 ** len(digits))
