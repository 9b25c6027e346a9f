"""The nearest valid form of an expression that has the form of another scheduler, or a small mistake."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from grouping.model.errors import near_name
from grouping.values.cron.calendar_forms import calendar_fields
from grouping.values.cron.fields import (
    DAY,
    DAYS,
    FIELDS,
    LONGEST,
    MACROS,
    MINUTE,
    NAMES,
    WEEKDAY,
    check_fields,
    is_valid_field,
    plain_fields,
)
from grouping.values.cron.interval_forms import interval_of
from grouping.values.cron.repairs import repaired_fields
from grouping.values.cron.zones import find_zone, zone_with_abbreviation

__all__ = ["nearest_expression"]

_QUARTZ_FIELDS = (6, 7)
_SAME = str.maketrans("–—−‐‑•×∗“”„‘’`", "-----***''''''")
"""Characters that word processors write in place of others."""
_AROUND = re.compile(
    r"(?:(?:on)?calendar|schedule|cron|crontab)\s*+[:=]\s*+|(?<!\s)\s++#\s.*|(?<![;'\"])[;'\"]++$|^['\"]++",
    re.IGNORECASE,
)
_CALL = re.compile(r"cron\((.*)\)", re.IGNORECASE)
_ZONED = re.compile(r"(?:CRON_)?TZ=(?P<zone>\S+)\s+(?P<rest>.*)|(?P<before>.*\S)\s+[\[(](?P<behind>[^\[(]+)[\])]")
_YEAR = re.compile(r"\*|\?|\d{4}(?:[-,/]\d+)*", re.ASCII)
_SECONDS = re.compile(r"\d+|[*\d,/-]+", re.ASCII)
_QUARTZ_DAY = re.compile(r"(?<![#/0-9])([1-7])(?=[-,#/L]|$)", re.ASCII)
_DAY_STEP = re.compile(r"(?<![-\w])(\w+)/(\d+)", re.ASCII)
_JOINTS = (
    (re.compile(r"(?<!\s)\s*+,\s*+"), ","),
    (re.compile(r"(?<=\w)\s++(?:-|to|through)\s++(?=\w)", re.IGNORECASE), "-"),
    (re.compile(r"(?<=\w)\s*+-\s*+(?=\w)"), "-"),
)
_NONE = (None, "")


def nearest_expression(expression: str) -> str | None:
    """Return the hint with the nearest valid form; None if there is none.

    Example:
        >>> nearest_expression("0 0 8 ? * MON")
        "Write '0 8 * * MON', without seconds."
        >>> nearest_expression("@every 5m"), nearest_expression("?")
        ("Write EVERY '5 minutes', without CRON.", None)
    """
    if len(expression) > LONGEST:
        return None
    text = _AROUND.sub("", unicodedata.normalize("NFKC", expression).translate(_SAME)).strip()
    rest, zone = _zoned(text)
    if interval := interval_of(rest):
        return f"Write EVERY '{interval}', without CRON."
    for fields, why in _readings(rest):
        valid, difference = _valid(fields)
        if valid:
            at = f" AT TIME ZONE '{zone}'" if zone else ""
            without = ", ".join(filter(None, (why, difference)))
            return f"Write '{valid}'{at}{f', {without}' if without else ''}."
    if text.startswith("@"):
        return near_name(text, MACROS) or f"The short forms are {', '.join(MACROS)}."
    return _names(rest.split())


def _zoned(text: str) -> tuple[str, str | None]:
    """Return an expression without its zone, and the zone, which may be before or after the expression."""
    if found := _ZONED.fullmatch(text):
        zone = find_zone(found["zone"] or found["behind"])
        return (found["rest"] or found["before"], zone) if zone else (text, None)
    words = text.split()
    for count in (2, 1):  # America/New York has two words
        name = "_".join(words[-count:])
        zone = find_zone(name) or zone_with_abbreviation(name)
        if zone and len(words) > count and (len(words) >= FIELDS + count or not words[0][0].isdigit()):
            return " ".join(words[:-count]), zone
    if len(words) > FIELDS and words[0].isalpha() and (zone := find_zone(words[0])):
        return " ".join(words[1:]), zone
    return text, None


def _readings(text: str) -> Iterator[tuple[list[str], str]]:
    """Yield the fields that a text may stand for, the likeliest first, each with the part that is left out."""
    if found := calendar_fields(text):
        yield found
    if call := _CALL.fullmatch(text):
        text = call[1]
        yield _from_sunday(text.split())[:FIELDS], _without_year(text.split()[FIELDS:])
    joined = text
    for joint, character in _JOINTS:
        joined = joint.sub(character, joined)
        if len(joined.split()) == FIELDS:
            yield joined.split(), ""
    fields = text.split()
    if len(fields) > FIELDS:
        yield from _longer(fields)
    elif len(fields) > 1 or (fields and is_valid_field(fields[0], MINUTE)):
        yield _filled(fields), ""


def _longer(fields: list[str]) -> Iterator[tuple[list[str], str]]:
    """Yield the fields of an expression with seconds, with a year, with a command, or with blanks between days."""
    first, *others = fields
    behind = fields[FIELDS:]
    has_years = all(_YEAR.fullmatch(each) for each in behind)
    if len(fields) in _QUARTZ_FIELDS and _SECONDS.fullmatch(first):
        is_aws = len(fields) == FIELDS + 1 and "?" in (fields[DAY], fields[WEEKDAY])
        named = any(name[:3] in fields[WEEKDAY].upper() for name in DAYS)
        if has_years and (is_aws or (named and len(fields) == FIELDS + 1)):
            yield _from_sunday(fields)[:FIELDS], _without_year(behind)
        # Seven fields or a "?" are a sign of Quartz, which numbers the days of the week from 1 for Sunday.
        of_quartz = len(fields) > FIELDS + 1 or "?" in fields
        year = _without_year(others[FIELDS:])
        yield (
            (_from_sunday(others) if of_quartz else others)[:FIELDS],
            f"without seconds{year.replace('without', ' and')}",
        )
    if all(repaired_fields(["*"] * WEEKDAY + [each]) and each.isalpha() for each in fields[WEEKDAY:]):
        yield [*fields[:WEEKDAY], ",".join(fields[WEEKDAY:])], ""
    if first.isalpha():
        yield others, f"without {first}"
    yield fields[:FIELDS], _without_year(behind) if has_years else "without the command"


def _filled(fields: list[str]) -> list[str]:
    """Return five fields: missing fields are ``*``, and a name of a day stands in the last field."""
    if len(fields) < FIELDS and fields and fields[-1].isalpha():
        return [*fields[:-1], *["*"] * (FIELDS - len(fields)), fields[-1]]
    return [*fields, *["*"] * (FIELDS - len(fields))]


def _without_year(fields: list[str]) -> str:
    return "" if {*fields} <= {"*", "?"} else "without year"


def _from_sunday(fields: list[str]) -> list[str]:
    """Return the fields, with names in place of days of the week that are numbered from 1 for Sunday."""
    known = plain_fields(fields)
    for place in range(WEEKDAY, min(FIELDS, len(known))):
        days = _QUARTZ_DAY.sub(_day_from_sunday, known[place])
        known[place] = _DAY_STEP.sub(r"\1-SAT/\2", days)  # a step ends on Saturday, the last day of the week
    return known


def _day_from_sunday(found: re.Match[str]) -> str:
    """Return the name of a day. Before L, which cannot follow a name, return the day's number, from 0 for Sunday."""
    place = int(found[1]) - 1
    return str(place) if found.string[found.end() :].startswith("L") else DAYS[place][:3]


def _valid(fields: list[str]) -> tuple[str | None, str]:
    """Return an expression with these fields, repaired where necessary, and the difference; None if none is valid."""
    if len(fields) != FIELDS or (repaired := repaired_fields(plain_fields(fields))) is None:
        return _NONE
    known, difference = repaired
    for days in (known[DAY], "L"):  # the last day, in place of a day that no month of the expression has
        try:
            check_fields([*known[:DAY], days, *known[DAY + 1 :]])
        except (ValueError, StopIteration):
            continue
        return " ".join([*known[:DAY], days, *known[DAY + 1 :]]), difference
    return _NONE


def _names(fields: list[str]) -> str | None:
    """Return the hint with the names of the days or months, if a field of them has an unknown word."""
    for place, (names, _) in NAMES.items():
        if len(fields) == FIELDS and re.search("[A-Za-z]{2}", fields[place]):
            what = "day of week" if place == WEEKDAY else "month"
            return f"The names of the {what} are {', '.join(name[:3] for name in names)}."
    return None
