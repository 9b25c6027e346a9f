"""Reading and writing of instants and intervals: the strings of statements are read, and ISO 8601 is written."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache

import isodate

from grouping.model.errors import InputError
from grouping.model.trigger import TimerBased
from grouping.model.wording import counted
from grouping.values.iso8601 import parse_time

__all__ = [
    "LONGEST_INTERVAL",
    "SHORTEST_EVERY",
    "format_instant",
    "format_interval",
    "instant",
    "other_interval",
    "parse_delay",
    "parse_every",
    "parse_instant",
    "parse_interval",
]

SHORTEST_EVERY = timedelta(seconds=1)
LONGEST_INTERVAL = timedelta(days=365_000)
"""The longest interval, about a thousand years. With this limit, an instant plus an interval is still an instant."""

_COUNTED = re.compile(r"([0-9]{1,15})\s+(second|minute|hour|day|week)s?", re.ASCII | re.IGNORECASE)
_OTHER = re.compile(r"(?:@?every[ _]?|interval ?|rate\()?((?:[0-9.]+ ?[a-z]+,? ?(?:and )?)+)\)?", re.ASCII)
_PART = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,3})?) ?([a-z]+)", re.ASCII)
_ONE = re.compile(r"@?every[ _](second|minute|hour|day|week)", re.ASCII)
_WORDS = {"biweekly": "2 weeks", "fortnightly": "2 weeks", "every fortnight": "2 weeks", "every_second": "1 second"}
_SECONDS = {
    "millisecond": Decimal("0.001"),
    "second": Decimal(1),
    "minute": Decimal(60),
    "hour": Decimal(3600),
    "day": Decimal(86_400),
    "week": Decimal(604_800),
}
_UNITS = {
    **dict.fromkeys(("ms", "msec", "millis", "millisecond", "milliseconds"), "millisecond"),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "second"),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), "minute"),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), "hour"),
    **dict.fromkeys(("d", "day", "days"), "day"),
    **dict.fromkeys(("w", "wk", "wks", "week", "weeks"), "week"),
}
"""Word for a unit → name of the unit. ``m`` is the minute, as in Prometheus and Go."""
_TEXT_LENGTH = 200
"""The largest number of characters of a text that is read as a time, since reading can take quadratic time."""
_INTERVAL_FORMS = (
    "An interval is '<n> seconds', minutes, hours, days or weeks, or an ISO 8601 duration such as 'PT10M'."
)


def parse_instant(text: str) -> datetime:
    """Read an ISO 8601 date and time with a zone, and return it in UTC.

    Raises:
        InputError: ``bad-time``.

    Example:
        >>> parse_instant("2026-11-21T10:00:00+01:00")
        datetime.datetime(2026, 11, 21, 9, 0, tzinfo=datetime.timezone.utc)
    """
    hint = "Write it as '2026-11-21T10:00:00Z'."
    try:
        instant = parse_time(_bounded(text))
        if instant.tzinfo is None:
            raise InputError(
                f'time "{_shown(text)}" has no zone',
                code="bad-time",
                detail="A time needs Z or an offset from UTC at its end.",
                hint=hint,
            )
        return instant
    except ValueError:
        raise InputError(
            f'"{_shown(text)}" is not a time',
            code="bad-time",
            detail="A time is an ISO 8601 date and time with a zone.",
            hint=hint,
        ) from None


def parse_interval(text: str) -> timedelta:
    """Read a positive interval of whole milliseconds, as a count of units or an ISO 8601 duration.

    Raises:
        InputError: ``bad-interval``, also for months and years, since these have no fixed length.

    Example:
        >>> parse_interval("10 minutes") == parse_interval("PT10M") == timedelta(minutes=10)
        True
    """
    interval = _read_interval(text)
    if not timedelta(0) < interval <= LONGEST_INTERVAL:
        raise _bad_interval(text, f"An interval is longer than 0 and at most {LONGEST_INTERVAL.days} days.")
    return interval


def parse_delay(text: str) -> timedelta:
    """Read an interval as `parse_interval` does, but also 0.

    Raises:
        InputError: ``bad-interval``.
    """
    interval = _read_interval(text)
    if not timedelta(0) <= interval <= LONGEST_INTERVAL:
        raise _bad_interval(text, f"A delay is at least 0 and at most {LONGEST_INTERVAL.days} days.")
    return interval


def _read_interval(text: str) -> timedelta:
    """Read an interval of any sign."""
    counted = _COUNTED.fullmatch(text.strip())
    try:
        if counted:
            interval = timedelta(**{f"{counted[2].lower()}s": int(counted[1])})
        else:
            interval = isodate.parse_duration(_bounded(text))
    except (isodate.ISO8601Error, ValueError, ArithmeticError) as error:
        detail = "The interval is too long." if isinstance(error, OverflowError) else _INTERVAL_FORMS
        raise _bad_interval(text, detail, _nearest_interval(text)) from None
    if not isinstance(interval, timedelta):
        raise _bad_interval(text, "Months and years have no fixed length.", "EVERY CRON '0 8 1 * *' is once a month.")
    if interval % timedelta(milliseconds=1):
        raise _bad_interval(text, "The shortest unit of time is the millisecond.")
    return interval


def parse_every(text: str) -> TimerBased:
    """Read EVERY's interval.

    Raises:
        InputError: ``bad-interval``, also for an interval of less than a second.
    """
    interval = parse_interval(text)
    if interval < SHORTEST_EVERY:
        raise _bad_interval(text, "The shortest EVERY is 1 second.", "Without EVERY, each match is published at once.")
    return TimerBased(interval)


def format_instant(instant: datetime) -> str:
    """Return an instant as ISO 8601 in UTC, with a fraction only if it is not zero.

    Example:
        >>> format_instant(datetime(2026, 11, 21, 10, 0, 0, 250_000, UTC))
        '2026-11-21T10:00:00.250Z'
    """
    if instant.microsecond == 0:
        precision = "seconds"
    else:
        precision = "microseconds" if instant.microsecond % 1000 else "milliseconds"
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec=precision) + "Z"


@lru_cache(maxsize=4096)
def instant(epoch_ms: int) -> str:
    """Return an epoch time as ISO 8601 in UTC.

    Example:
        >>> instant(0)
        '1970-01-01T00:00:00.000Z'
    """
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=epoch_ms)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def format_interval(interval: timedelta) -> str:
    """Return an interval as an ISO 8601 duration.

    Example:
        >>> format_interval(timedelta(hours=1, minutes=30)), format_interval(timedelta(weeks=1))
        ('PT1H30M', 'P7D')
    """
    return str(isodate.duration_isoformat(interval))


def other_interval(text: str) -> str | None:
    """Return ``<n> <unit>`` for an interval in the spelling of another system; None for any other text.

    Example:
        >>> other_interval("5m"), other_interval("@every 1h30m"), other_interval("rate(1 day)"), other_interval("soon")
        ('5 minutes', '90 minutes', '1 day', None)
    """
    text = " ".join(text.casefold().replace("'", "").removeprefix("@").split()) if len(text) <= _TEXT_LENGTH else ""
    if known := _WORDS.get(text):
        return known
    if found := _ONE.fullmatch(text):
        return counted(1, found[1])
    if (other := _OTHER.fullmatch(text)) is None:
        return None
    parts = [(Decimal(number), _UNITS.get(word, "")) for number, word in _PART.findall(other[1])]
    if not parts or not all(unit for _, unit in parts):
        return None
    total = sum(number * _SECONDS[unit] for number, unit in parts)
    if not 0 < total <= LONGEST_INTERVAL.total_seconds():
        return None
    whole = [unit for unit in (parts[-1][1], *reversed(_SECONDS)) if total % _SECONDS[unit] == 0]
    unit = next((unit for unit in whole if unit != "millisecond"), None)
    return counted(int(total // _SECONDS[unit]), unit) if unit else None


def _nearest_interval(text: str) -> str | None:
    """Return the hint for another spelling of an interval."""
    interval = other_interval(text)
    return f"Did you mean '{interval}'?" if interval else None


def _bad_interval(text: str, detail: str, hint: str | None = None) -> InputError:
    return InputError(f'interval "{_shown(text)}" is not valid', code="bad-interval", detail=detail, hint=hint)


def _bounded(text: str) -> str:
    if len(text) > _TEXT_LENGTH:
        raise ValueError("too long for a time")
    return text.strip()


def _shown(text: str) -> str:
    return text if len(text) <= _TEXT_LENGTH else f"{text[:_TEXT_LENGTH]}…"
