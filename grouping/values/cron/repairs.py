"""The likely meaning of an invalid field of a cron expression."""

from __future__ import annotations

import re
from collections.abc import Iterator

from grouping.values.cron.fields import (
    BOUNDS,
    DAY,
    FIELDS,
    HOUR,
    MINUTE,
    NAMES,
    SIZES,
    WEEKDAY,
    is_valid_field,
    value_number,
)

__all__ = ["repaired_fields"]

_ANY = range(FIELDS)
_REPAIRS = tuple(
    (places, re.compile(pattern, re.ASCII | re.IGNORECASE), meaning, note)
    for places, pattern, meaning, note in (
        # H of Jenkins and ~ of OpenBSD: a value that the scheduler chooses.
        (_ANY, r"H/(\d+)", r"*/\1", ""),
        (_ANY, r"H\((\d+-\d+)\)/(\d+)", r"\1/\2", ""),
        (_ANY, r"H\((\d+)-\d+\)|(\d+)~\d*", r"\1\2", ""),
        (_ANY, r"H|~\d*", "0", ""),
        (_ANY, r"(\w+)\.\.(\w+)", r"\1-\2", ""),
        (_ANY, r"\*+|\?|any|every|all", "*", ""),
        ((HOUR,), r"0?(\d+) ?am|(\d+) ?h|(\d+):00", r"\1\2\3", ""),
        ((DAY,), r"(\d+)(?:st|nd|rd|th)", r"\1", ""),
        ((DAY,), r"last|l(?:ast)?day", "L", ""),
        ((DAY,), r"L-\d+W|WL|l(?:ast)?weekday", "LW", ""),
        ((DAY,), r"L-\d+", "L", "as days before the last day are not counted"),
        ((DAY,), r"(\d+)W|W(\d+)", r"\1\2", "as W, the nearest weekday, is only read in LW"),
        ((WEEKDAY,), r"L", "SAT", ""),
        ((WEEKDAY,), r"(?:week|work|working|business)-?days?", "MON-FRI", ""),
        ((WEEKDAY,), r"weekends?", "SAT,SUN", ""),
        ((WEEKDAY,), r"(\w+?)(?:#?L|#?last|#-1|#[6-9])", r"\1L", ""),
        ((WEEKDAY,), r"(\w+)#0", r"\1#1", ""),
        # The rest are small mistakes. A value out of bounds is replaced by the nearest bound.
        (_ANY, r"(.+)", r"\1", ""),
        (_ANY, r"\*?/(\d+)(?:/.*)?|\*(\d+)", r"*/\1\2", ""),
        (_ANY, r"(\w+)-\*", r"\1-99", ""),
        (_ANY, r"\*-(\w+)", r"0-\1", ""),
        (_ANY, r"[-+/'\"(]*(\w+)(?:[-/'\")]+|\.0+)?", r"\1", ""),
    )
)
"""Places of fields, a form of an element, the nearest valid form, and the difference between these forms, if any."""
_ELEMENT = re.compile(r"(\*|\w+?)(?:-(\w+))?(?:/(\d{1,9}))?(#[1-5]|(?<=[A-Za-z0-7])L)?", re.ASCII | re.IGNORECASE)


def repaired_fields(fields: list[str]) -> tuple[list[str], str] | None:
    """Return valid fields for five fields that may be invalid, and the difference in words; None without a repair.

    Example:
        >>> repaired_fields(["0", "22-2", "15W", "*", "Tues"])
        (['0', '22-23,0-2', '15', '*', 'TUE'], 'as W, the nearest weekday, is only read in LW')
        >>> repaired_fields(["0", "eight", "*", "*", "*"])
    """
    repaired: list[str] = []
    notes: dict[str, None] = {}
    for place, field in enumerate(fields):
        elements: list[str] = []
        for element in filter(None, re.split("[,;|]", field)):
            meaning, note = next(_meanings(element, place), ("", ""))
            if not meaning:
                return None
            elements.append(meaning)
            notes |= {note: None} if note else {}
        repaired.append(",".join(elements))
    return repaired, ", ".join(notes)


def _meanings(element: str, place: int) -> Iterator[tuple[str, str]]:
    """Yield valid elements for an element that may be invalid, the likeliest first, each with the difference."""
    if is_valid_field(element, place):
        yield element, ""
    for places, form, meaning, note in _REPAIRS:
        if place in places and (found := form.fullmatch(element)):
            text = _in_bounds(found.expand(meaning), place)
            if text and is_valid_field(text, place):
                yield text, note


def _in_bounds(element: str, place: int) -> str | None:
    """Return an element with its values within the bounds, and with short names; None if a value is unknown."""
    if (found := _ELEMENT.fullmatch(element)) is None:
        return element
    low, high = BOUNDS[place]
    begin, end, step, behind = found.groups()
    size = int(step or 1)
    every = f"/{size}" if size > 1 else ""
    if begin == "*":
        return None if end else f"*{every}" if size <= SIZES[place] else str(low)
    if begin.upper() in ("L", "LW") and end is None:
        return begin
    first = value_number(begin, place)
    last = first if end is None else value_number(end, place)
    if first is None or last is None:
        return None
    if end is None and first == high + 1 and place in (MINUTE, HOUR):
        return str(low)  # midnight as 24:00
    first, last = min(max(first, low), high), min(max(last, low), high)
    if behind in ("L", "l"):
        return f"{first}L"
    if size > SIZES[place]:
        return _spelt(begin, first, place)
    if end is None:
        return f"{_spelt(begin, first, place)}{every}{behind or ''}"
    if place == WEEKDAY and first > last:
        first, high = first % 7, 6
    if first <= last:
        return f"{_spelt(begin, first, place)}-{_spelt(end, last, place)}{every}"
    if every:
        count = high - low + 1
        return ",".join(str((value - low) % count + low) for value in range(first, last + count + 1, size))
    parts = (
        (_spelt(begin, first, place), _spelt(begin, high, place)),
        (_spelt(end, low, place), _spelt(end, last, place)),
    )
    return ",".join(one if one == other else f"{one}-{other}" for one, other in parts)


def _spelt(written: str, number: int, place: int) -> str:
    """Return a value as its name if the value was written as a name, else as its number."""
    if not written.isalpha():
        return str(number)
    names, first = NAMES[place]
    return names[(number - first) % len(names)][:3]
