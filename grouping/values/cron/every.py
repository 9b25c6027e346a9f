"""EVERY's interval. The hint for a calendar time, such as a cron expression or a month, is EVERY CRON."""

from __future__ import annotations

import re

from grouping.model.errors import InputError
from grouping.model.trigger import TimerBased
from grouping.values.cron.calendar_forms import calendar_fields
from grouping.values.cron.fields import FIELDS, LONGEST, MACROS, check_fields, plain_fields
from grouping.values.cron.other_forms import nearest_expression
from grouping.values.times import parse_every

__all__ = ["read_every"]


def read_every(text: str) -> TimerBased:
    """Read EVERY's interval.

    Raises:
        InputError: ``bad-interval``, with the nearest form.

    Example:
        >>> read_every("1 hour").every
        datetime.timedelta(seconds=3600)
        >>> read_every("@daily")
        Traceback (most recent call last):
        grouping.model.errors.InputError: interval "@daily" is not valid
    """
    try:
        return parse_every(text)
    except InputError as error:
        error.hint = _cron_hint(text) or error.hint
        raise


def _cron_hint(text: str) -> str | None:
    """Return the hint with EVERY CRON for a calendar time; None for any other text."""
    fields = text.split()
    has_words = re.search("[A-Za-z]", text)  # 00:05:00 is rather an interval than a time of day
    if len(text) > LONGEST or not (len(fields) >= FIELDS or (has_words and calendar_fields(text))):
        return None
    if text.strip().lower() in MACROS:
        return f"Write EVERY CRON '{text.strip()}'."
    try:
        check_fields(plain_fields(fields))
    except (ValueError, StopIteration):
        nearest = nearest_expression(text)
        return nearest and nearest.replace("Write '", "Write EVERY CRON '", 1).replace(", without CRON.", ".")
    return f"Write EVERY CRON '{' '.join(fields)}'."
