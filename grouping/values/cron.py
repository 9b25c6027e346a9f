"""Cron expressions: five fields, with the names and short forms of other schedulers, and a zone."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from cronsim import CronSim, CronSimError

from grouping.model.errors import InputError, near_name
from grouping.model.query import CronBased
from grouping.model.wording import counted
from grouping.values.time_zone import iana_zones, time_zone

__all__ = ["parse_cron"]

_FIELDS = 5
_QUARTZ_FIELDS = (6, 7)
_BASE = datetime(2000, 1, 1, tzinfo=UTC)
"""The instant at which the search for a first tick begins. Any instant would do, since expressions repeat for ever."""
_LONGEST = 200
_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_DAYS = "SUNDAY MONDAY TUESDAY WEDNESDAY THURSDAY FRIDAY SATURDAY".split()
_MONTHS = "JANUARY FEBRUARY MARCH APRIL MAY JUNE JULY AUGUST SEPTEMBER OCTOBER NOVEMBER DECEMBER".split()
_NAMES = {3: ("month", _MONTHS, 1), 4: ("day of week", _DAYS, 0)}
"""Field → the word for the field, the names of its values, and the number of the first value."""
_BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
_WORD = re.compile(r"[A-Za-z]{3,}")
_RANGE = re.compile(r"([0-9]{1,2}|[A-Za-z]{3})-([0-9]{1,2}|[A-Za-z]{3})", re.ASCII)
_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])([0-9]{1,2})(?::?([0-9]{2}))?", re.ASCII | re.IGNORECASE)
_RATE = re.compile(r"(?:rate\(|every )?([0-9]{1,9}) (second|minute|hour|day|week)s?\)?", re.ASCII)
_EVERY = re.compile(r"@every\s+((?:[0-9]{1,6}[smhd])+)", re.ASCII)
_DURATION = re.compile(r"p(?:[0-9]+[dw])?(?:t(?:[0-9]+[hms])+)?", re.ASCII)
_UNITS = {"d": (86_400, "day"), "h": (3600, "hour"), "m": (60, "minute"), "s": (1, "second")}
_ZONED = re.compile(r"(?:CRON_)?TZ=(\S+)\s+(.*)")
_STEP = re.compile(r"\*/([0-9]{1,9})", re.ASCII)
_STEPS = ((60, "minute"), (24, "hour"))
"""For the fields minute and hour: the number of values, which a step must not exceed, and the unit."""
_QUARTZ_DAY = re.compile(r"(?<![#/0-9])([1-7])(?=[-,#/L]|$)", re.ASCII)
_ABBREVIATIONS = {
    "America/Chicago": "CDT CST",
    "America/Denver": "MDT",
    "America/Los_Angeles": "PDT PST",
    "America/New_York": "EDT",
    "Asia/Kolkata": "IST",
    "Asia/Tokyo": "JST",
    "Australia/Sydney": "AEDT AEST",
    "Europe/Berlin": "CEST",
    "Europe/London": "BST",
}
_EXAMPLE = "'0 8 * * MON' is every Monday at eight."


def parse_cron(expression: str, zone: str = "UTC") -> CronBased:
    """Read the expression of EVERY CRON (five fields, or a short form such as ``@daily``) and its zone.

    Names of days and months may be written out, and ``?`` stands for any day, as in Quartz. Letters may be upper or
    lower case.

    Raises:
        InputError: ``bad-interval`` for an invalid expression, with the nearest valid form, for an expression that
            matches no day, and for an unknown zone.

    Example:
        >>> parse_cron("0 8 * * MON", "europe/madrid")
        CronBased(cron='0 8 * * MON', zone='Europe/Madrid')
        >>> parse_cron("@daily", "UTC+2")
        CronBased(cron='0 0 * * *', zone='+02:00')
    """
    fields = _MACROS.get(expression.strip().lower(), expression).split()
    known = [_plain(field, place) for place, field in enumerate(fields)]
    try:
        if len(fields) != _FIELDS or len(expression) > _LONGEST:
            raise CronSimError("Wrong number of fields")
        next(CronSim(" ".join(known), _BASE))
        _check_steps(known)
    except (CronSimError, ValueError, ArithmeticError, AssertionError) as error:
        detail = "A cron expression has the fields minute, hour, day of month, month and day of week."
        raise InputError(
            f'cron expression "{_shown(expression)}" is not valid',
            code="bad-interval",
            detail=f"{error}. {detail}" if isinstance(error, CronSimError) else detail,
            hint=_nearest(expression.strip(), known) or _EXAMPLE,
        ) from None
    except StopIteration:
        raise InputError(
            f'cron expression "{_shown(expression)}" never fires',
            code="bad-interval",
            detail="No day meets all its fields.",
        ) from None
    return CronBased(" ".join(known), _zone(zone))


def _plain(field: str, place: int) -> str:
    """Return a field with ``?`` as ``*``, and full names of days and months as their first three letters."""
    if field == "?" and place in (2, 4):
        return "*"
    if place not in _NAMES:
        return field
    names = _NAMES[place][1]
    return _WORD.sub(lambda found: found[0][:3] if found[0].upper() in names else found[0], field)


def _check_steps(fields: list[str]) -> None:
    """Refuse a step that is longer than its field: ``*/90`` in the field of minutes would fire every hour.

    Raises:
        CronSimError: A step is too long.
    """
    for field, (whole, unit) in zip(fields, _STEPS, strict=False):
        if (found := _STEP.fullmatch(field)) and int(found[1]) > whole:
            raise CronSimError(f"A step of {found[1]} {unit}s is longer than the {whole} {unit}s of its field")


def _nearest(expression: str, fields: list[str]) -> str | None:
    """Return the hint for a form of another scheduler, or for a mistake in a field."""
    if len(expression) > _LONGEST:
        return None
    if interval := _interval(expression, fields):
        return f"Write EVERY '{interval}', without CRON."
    if expression.startswith("@"):
        return near_name(expression, (*_MACROS,)) or f"The short forms are {', '.join(_MACROS)}."
    if zoned := _zoned(expression):
        return zoned
    if expression.lower().startswith("cron(") and expression.endswith(")"):
        return _valid(_from_sunday(expression[5:-1].split())[:_FIELDS])
    if joined := _valid(re.sub(r",\s+", ",", expression).split()):
        return joined
    if len(fields) in _QUARTZ_FIELDS:
        year = expression.split()[_FIELDS + 1 :]
        why = "without seconds" if year in ([], ["*"], ["?"]) else "without seconds and year"
        # An expression with seven fields or a "?" is of Quartz, which numbers the days of the week from 1 for Sunday.
        read = _from_sunday(expression.split()[1:]) if year or "?" in expression else fields[1:]
        return _valid(read[:_FIELDS], why)
    if len(fields) != _FIELDS:
        return None
    if hint := _valid([_other_field(field, place) or field for place, field in enumerate(fields)]):
        return hint
    for place, (what, names, _) in _NAMES.items():
        short = [name[:3] for name in names]
        for word in re.findall(r"[A-Za-z]+", fields[place]):
            if word.upper() not in short and len(word) > 1:
                first = next((name for name in short if name.startswith(word.upper()[:2])), None)
                return f'Did you mean "{first}"?' if first else f"The names of the {what} are {', '.join(short)}."
    return None


def _interval(expression: str, fields: list[str]) -> str | None:
    """Return the interval that a form of another scheduler stands for; None for any other text."""
    text = expression.lower()
    if found := _RATE.fullmatch(text):
        return counted(int(found[1]), found[2])
    if found := _EVERY.fullmatch(text):
        total = sum(int(number) * _UNITS[unit][0] for number, unit in re.findall(r"([0-9]{1,6})([smhd])", found[1]))
        units = [_UNITS[found[1][-1]], *_UNITS.values()]
        return next((counted(total // seconds, unit) for seconds, unit in units if total % seconds == 0), None)
    if len(text) > 1 and _DURATION.fullmatch(text):
        return expression.upper()
    if len(fields) == _QUARTZ_FIELDS[0] and {*fields[1:]} == {"*"}:
        found = _STEP.fullmatch(fields[0])
        return counted(int(found[1]), "second") if found else "1 second" if fields[0] == "*" else None
    if len(fields) == _FIELDS and {*fields[1:]} == {"*"} and (found := _STEP.fullmatch(fields[0])):
        return counted(int(found[1]), "minute") if int(found[1]) > _STEPS[0][0] else None
    if len(fields) == _FIELDS and {*fields[2:]} == {"*"} and (found := _STEP.fullmatch(fields[1])):
        return counted(int(found[1]), "hour") if int(found[1]) > _STEPS[1][0] else None
    return None


def _zoned(expression: str) -> str | None:
    """Return the hint for an expression with a zone before or after it; None for any other text."""
    rest, _, zone = expression.rpartition(" ")
    if found := _ZONED.fullmatch(expression):
        zone, rest = found.groups()
    known = _zones().get(zone.casefold())
    if known is None or _valid(rest.split()) is None:
        return None
    return f"Write '{' '.join(rest.split())}' AT TIME ZONE '{known}'."


def _from_sunday(fields: list[str]) -> list[str]:
    """Return the plain fields, with names in place of days of the week that are numbered from 1 for Sunday."""
    known = [_plain(field, place) for place, field in enumerate(fields)]
    last = _FIELDS - 1
    days = [_QUARTZ_DAY.sub(_day_from_sunday, field) for field in known[last:_FIELDS]]
    return [*known[:last], *days, *known[_FIELDS:]]


def _day_from_sunday(found: re.Match[str]) -> str:
    """Return the name of a day. Before L, which cannot follow a name, return the day's number, from 0 for Sunday."""
    place = int(found[1]) - 1
    return str(place) if found.string[found.end() :].startswith("L") else _DAYS[place][:3]


def _other_field(field: str, place: int) -> str | None:
    """Return the likely meaning of an invalid field: a range across the end, 24 for midnight, H for any minute."""
    low, high = _BOUNDS[place]
    if field == "24" and place == 1:
        return "0"
    if field.startswith("H/"):
        return f"*{field[1:]}"
    if field == "H" or field.startswith("H("):
        return str(low)
    if place == _FIELDS - 1 and field.endswith("L") and (day := _number(field[:-1], place)) is not None:
        return f"{day}L"
    if found := _RANGE.fullmatch(field):
        first, last = (_number(text, place) for text in found.groups())
        if first is not None and last is not None and low <= last < first <= high:
            begin, end = found[1], found[2]
            ends = [str(each) if begin.isdigit() else _name(each, place) for each in (low, high)]
            return f"{begin if first == high else f'{begin}-{ends[1]}'},{end if last == low else f'{ends[0]}-{end}'}"
    return None


def _number(text: str, place: int) -> int | None:
    if text.isdigit():
        return int(text)
    if place not in _NAMES:
        return None
    _, names, first = _NAMES[place]
    short = [name[:3] for name in names]
    return short.index(text.upper()) + first if text.upper() in short else None


def _name(number: int, place: int) -> str:
    _, names, first = _NAMES[place]
    return names[number - first][:3]


def _valid(fields: list[str], why: str = "") -> str | None:
    """Return the hint to write an expression with these fields; None if this expression is not valid."""
    text = " ".join(fields)
    try:
        if len(fields) != _FIELDS:
            return None
        next(CronSim(text, _BASE))
    except (CronSimError, ValueError, ArithmeticError, AssertionError, StopIteration):
        return None
    return f"Write '{text}'{f', {why}' if why else ''}."


def _zone(name: str) -> str:
    stripped = name.strip()
    known = _zones().get(stripped.casefold())
    if known is not None:
        return known
    if offset := _OFFSET.fullmatch(stripped):
        text = f"{offset[1]}{offset[2]:0>2}:{offset[3] or '00'}"
        try:
            return text if time_zone(text).utcoffset(None) != timedelta(0) else "UTC"
        except ValueError:
            pass  # more than 18 hours, or 60 minutes and more
    if stripped.upper() == "Z":
        return "UTC"
    raise InputError(
        f'time zone "{_shown(name)}" is not known',
        code="bad-interval",
        detail="Zones are those of the IANA time zone database, and offsets such as +02:00.",
        hint=_near_zone(name[:_LONGEST]) or "Europe/Madrid is one.",
    )


def _near_zone(name: str) -> str | None:
    for zone, abbreviations in _ABBREVIATIONS.items():
        if name.strip().upper() in abbreviations.split():
            return f"An abbreviation may mean several zones: {zone} is one."
    return near_name(name, _zones().values())


@lru_cache(maxsize=1)
def _zones() -> dict[str, str]:
    return {zone.casefold(): zone for zone in iana_zones()}


def _shown(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
