"""Expressions of Go, AWS and ISO 8601 that stand for an interval. EVERY takes an interval without the word CRON."""

from __future__ import annotations

import re

from grouping.model.errors import InputError
from grouping.model.wording import counted
from grouping.values.cron.fields import FIELDS
from grouping.values.times import other_interval, parse_every

__all__ = ["interval_of"]

_DURATION = re.compile(r"p(?:[0-9]+[dw])?(?:t(?:[0-9]+[hms])+)?", re.ASCII | re.IGNORECASE)
_STEP = re.compile(r"(?:\*|0)/([0-9]{1,9})", re.ASCII)
_SECONDS = {"*": "*/1", "0,30": "*/30", "0,20,40": "*/20", "0,15,30,45": "*/15"}
"""Field of seconds → the same field as a step."""
_STEPPED = ((60, "minute"), (24, "hour"), (31, "day"))


def interval_of(text: str) -> str | None:
    """Return the interval of EVERY that stands for an expression; None if there is none.

    Example:
        >>> interval_of("rate(5 minutes)"), interval_of("@every 1h30m"), interval_of("*/10 * * * * *")
        ('5 minutes', '90 minutes', '10 seconds')
    """
    is_duration = len(text) > 1 and _DURATION.fullmatch(text)
    interval = text.upper() if is_duration else other_interval(text) or _stepped_interval(text.split())
    try:
        if interval:
            parse_every(interval)
    except InputError:
        return None
    return interval


def _stepped_interval(fields: list[str]) -> str | None:
    """Return the interval of a step of seconds, or of a step that is longer than its field."""
    if len(fields) < FIELDS:
        return None
    step = _STEP.fullmatch(_SECONDS.get(fields[0], fields[0]))
    if len(fields) > FIELDS and {*fields[1:]} <= {"*", "?"} and step:
        return counted(int(step[1]), "second")
    for place, (whole, unit) in enumerate(_STEPPED):
        around = [*fields[:place], *fields[place + 1 :]]
        plain = all(field in ("*", "?", "0") for field in around[:place]) and {*around[place:]} <= {"*", "?"}
        if plain and len(fields) == FIELDS and (found := _STEP.fullmatch(fields[place])):
            return counted(int(found[1]), unit) if int(found[1]) > whole else None
    return None
