"""Times written and read by a pattern, as Java's DateTimeFormatter does in US English and UTC."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache

import polars as pl

from grouping.model.sql_type import STRING, TIMESTAMP
from grouping.values.time_format import PatternPart, read_format
from spark_jobs.engine.expressions.by_value import each_distinct
from spark_jobs.engine.expressions.types import Operand, polars_type

__all__ = ["date_format", "from_unixtime", "to_timestamp"]

_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October"),
    *("November", "December"),
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_ORDINALS = ("1st", "2nd", "3rd", "4th")
_FULL = 4
"""The number of equal pattern letters for which a name is written in full, as in ``MMMM``."""
_OFFSETS = {"X": "Z Z Z".split(), "x": "+00 +0000 +00:00".split(), "Z": ["+0000"] * 3}


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CYCLE_YEARS = 400
_CYCLE_SECONDS = 146_097 * 86_400
"""The calendar, weekdays included, repeats after this time."""
_MICROS = 10**6
"""The number of microseconds in a second."""
_LONGS = 2**64


def date_format(pattern: str, args: Sequence[Operand]) -> pl.Expr:
    """Return each time as a text in the pattern's format."""
    write = _written_by(pattern)
    return each_distinct([args[0].expr], lambda time: write(time, time.year), polars_type(STRING))


def from_unixtime(pattern: str, args: Sequence[Operand]) -> pl.Expr:
    """Return each time, given as a number of seconds since 1970, as a text in the pattern's format.

    As in Spark, the time in microseconds is a BIGINT that wraps round, and the year may have six digits and a sign.
    """
    write = _written_by(pattern)

    def written(seconds: int) -> str:
        micros = (seconds * _MICROS + _LONGS // 2) % _LONGS - _LONGS // 2
        cycles, rest = divmod(micros, _CYCLE_SECONDS * _MICROS)
        time = _EPOCH + timedelta(microseconds=rest)
        return write(time, time.year + cycles * _CYCLE_YEARS)

    return each_distinct([args[0].expr], written, polars_type(STRING))


def _written_by(pattern: str) -> Callable[[datetime, int], str]:
    """Return the function that writes a time. The year is a second argument, because the year may be above 9999."""
    writers = [_writer(part) for part in read_format(pattern, reads=False) if part.letter not in ("[", "]")]
    return lambda time, year: "".join(write(time, year) for write in writers)


def _writer(part: PatternPart) -> Callable[[datetime, int], str]:
    """Return the function that writes one part of a pattern."""
    letter, count = part.letter, part.times
    match letter:
        case "":
            return lambda *_: part.text
        case "y":
            return lambda _, year: _year(year, count)
        case "M" | "L" if count > 2:
            return lambda time, _: _named(_MONTHS[time.month - 1], count)
        case "E":
            return lambda time, _: _named(_DAYS[time.weekday()], count)
        case "S":
            return lambda time, _: f"{time.microsecond:06}000"[:count]
        case "a":
            return lambda time, _: "PM" if time.hour >= 12 else "AM"
        case "Q" | "q" if count > 2:
            return lambda time, _: f"Q{_quarter(time)}" if count < _FULL else f"{_ORDINALS[_quarter(time) - 1]} quarter"
        case "X" | "x" | "Z":
            return lambda *_: _OFFSETS[letter][count - 1]
    number = _NUMBERS[letter]
    return lambda time, _: f"{number(time):0{count}}"


def _year(year: int, count: int) -> str:
    if count == 2:
        return f"{abs(year) % 100:02}"
    sign = "-" if year < 0 else "+" * (count >= _FULL and year >= 10**count)
    return f"{sign}{abs(year):0{count}}"


def _named(name: str, count: int) -> str:
    return name if count == _FULL else name[:3]


def _quarter(time: datetime) -> int:
    return (time.month + 2) // 3


_NUMBERS: dict[str, Callable[[datetime], int]] = {
    "M": lambda time: time.month,
    "L": lambda time: time.month,
    "d": lambda time: time.day,
    "D": lambda time: time.timetuple().tm_yday,
    "H": lambda time: time.hour,
    "h": lambda time: (time.hour + 11) % 12 + 1,
    "k": lambda time: (time.hour + 23) % 24 + 1,
    "K": lambda time: time.hour % 12,
    "m": lambda time: time.minute,
    "s": lambda time: time.second,
    "Q": _quarter,
    "q": _quarter,
}


def to_timestamp(pattern: str, args: Sequence[Operand]) -> pl.Expr:
    """Return the time that each text names; NULL if the text does not match the pattern, or names no time."""
    reader = _reader(pattern)

    def read(text: str) -> datetime | None:
        found = reader.fullmatch(text)
        try:
            return None if found is None else _time_of(found)
        except (ValueError, OverflowError):
            return None

    return each_distinct([args[0].expr], read, polars_type(TIMESTAMP))


@lru_cache(maxsize=1024)
def _reader(pattern: str) -> re.Pattern[str]:
    pieces = []
    for part in read_format(pattern, reads=True):
        if part.letter == "[":
            pieces.append("(?>(?:")
        elif part.letter == "]":
            pieces.append(")?)")
        else:
            pieces.append(_read_part(part))
    return re.compile("".join(pieces), re.IGNORECASE | re.ASCII)


def _read_part(part: PatternPart) -> str:
    letter, count = part.letter, part.times
    match letter:
        case "":
            return re.escape(part.text)
        case "M" | "L" if count > 2:
            return f"(?P<name>{'|'.join(_named(month, count) for month in _MONTHS)})"
        case "a":
            return "(?P<a>AM|PM)"
        case "S":
            return f"(?P<S>[0-9]{{1,{count}}})"
        case "X":
            minutes = {1: "(?:[0-9]{2})?", 2: "[0-9]{2}", 3: ":[0-9]{2}"}[count]
            return f"(?P<X>Z|[+-][0-9]{{2}}{minutes})"
    width = {"yyyy": "4", "DDD": "3"}.get(letter * count, "2" if count == 2 else "1,19")
    name = "yy" if letter * count == "yy" else "M" if letter == "L" else letter
    return f"(?P<{name}>[0-9]{{{width}}})"


_BASE_YEAR = 2000
_FARTHEST = timedelta(hours=18)


def _time_of(found: re.Match[str]) -> datetime:
    """Return the time of the fields in a text; missing fields are taken from 1970-01-01 00:00.

    Raises:
        ValueError: A field is out of its range.
    """
    fields = {name: text for name, text in found.groupdict().items() if text is not None}

    def number(name: str, default: int, least: int = 0, most: int = 9999) -> int:
        value = int(fields.get(name, default))
        if not least <= value <= most:
            raise ValueError(f"{name} is {value}")
        return value

    year = _BASE_YEAR + int(fields["yy"]) if "yy" in fields else number("y", 1970)
    month = number("M", 1)
    if "name" in fields:
        month = 1 + [name[:3].lower() for name in _MONTHS].index(fields["name"][:3].lower())
    time = datetime(
        year, month, number("d", 1), _hour(number, fields), number("m", 0), number("s", 0),
        int(fields.get("S", "").ljust(6, "0")[:6]), timezone(_offset(fields.get("X", "Z"))),
    )  # fmt: skip
    if "D" in fields:
        day = number("D", 1, 1, 366)
        time += timedelta(days=day - 1)
        if time.year != year:
            raise ValueError("no such day of the year")
    return time


def _hour(number: Callable[..., int], fields: dict[str, str]) -> int:
    noon = 12 * (fields.get("a", "").upper() == "PM")
    if "h" in fields:
        return number("h", 12, 1, 12) % 12 + noon
    if "K" in fields:
        return number("K", 0, 0, 11) + noon
    return number("k", 24, 1, 24) % 24 if "k" in fields else number("H", 0)


def _offset(text: str) -> timedelta:
    digits = text[1:].replace(":", "")
    size = timedelta(hours=int(digits[:2] or 0), minutes=int(digits[2:] or 0))
    if size > _FARTHEST or int(digits[2:] or 0) >= 60:
        raise ValueError("no such offset")
    return -size if text[0] == "-" else size
