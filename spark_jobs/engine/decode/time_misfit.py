"""The reason why a value is no TIMESTAMP, with the option or the function that reads the value."""

from __future__ import annotations

import re

from spark_jobs.engine.decode.json_number import JsonNumber
from spark_jobs.engine.decode.time_formats import reading_calls

__all__ = ["time_reason"]

_NUMBER = re.compile(r"-?[0-9]{1,19}(?:\.[0-9]+)?", re.ASCII)
_ADVICE = [
    (re.compile(form, re.ASCII | re.IGNORECASE), advice)
    for form, advice in (
        (r"[0-9]{4}-[0-9]{2}-[0-9]{2}", "declare DATE for a date without a time"),
        (r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?", "declare STRING for a time of the day"),
        (r"[0-9-]{10}[T ][0-9:.]+ ?[+-][0-9]{2}:?[0-9]{2}(?: UTC)?", "a stream takes it with lenient = true"),
        (r"|null|none|nil|nan|n/?a|-+|undefined|unknown", "a stream with lenient = true reads it as NULL"),
    )
]
"""Forms of texts, each with the advice."""
_OTHER_FORM = "not an ISO 8601"
"""The beginning of a reason about the spelling as a whole. Other reasons are about a part, such as a month 13."""
_UNITS = {"seconds": 11, "millis": 14, "micros": 17}
"""For each unit, the largest number of digits before the point of a time in the years 1 to 5138."""


def time_reason(value: object, reason: str) -> str:
    """Return the reason; for a usual spelling of a time, with the option or the function that reads it.

    Args:
        value: A number as `JsonNumber`, or any other JSON value.
        reason: Why ISO 8601 refuses the value.

    Example:
        >>> time_reason(JsonNumber("1763719200000"), "a number is no string")
        "a number is no string; a stream takes it with timestamps = 'millis'"
        >>> time_reason("soon", "not an ISO 8601 date and time")
        'not an ISO 8601 date and time; to_timestamp(column, format) reads other forms in a STRING'
        >>> time_reason("2026-11-21 10:00:00 UTC", "not an ISO 8601 date and time")
        'not an ISO 8601 date and time; CAST(column AS TIMESTAMP) reads it in a STRING'
    """
    if isinstance(value, dict):
        return f"{reason}; FROM with a path names a value within an object"
    if not isinstance(value, str):
        return reason
    is_other_form = reason.startswith(_OTHER_FORM)
    if is_other_form and (advice := next((advice for form, advice in _ADVICE if form.fullmatch(value)), "")):
        return f"{reason}; {advice}"
    calls = reading_calls(value)
    if calls and isinstance(value, JsonNumber):
        return f"{reason}; {calls[0].replace('column', 'string(column)')} reads it in a BIGINT"
    if calls and is_other_form:
        if calls[0].startswith("to_timestamp"):
            return f"{reason}; to_timestamp(column, format) reads other forms in a STRING: {' or '.join(calls)}"
        return f"{reason}; {calls[0]} reads it in a STRING"
    if _NUMBER.fullmatch(value):
        digits = len(value.lstrip("-").partition(".")[0])
        unit = next((name for name, most in _UNITS.items() if digits <= most), "")
        if not unit:
            if isinstance(value, JsonNumber):
                return f"{reason}; declare BIGINT for a number of nanoseconds"
            return f"{reason}; timestamp_micros(CAST(column AS BIGINT) div 1000) reads it in a STRING"
        texts = "" if isinstance(value, JsonNumber) else "lenient = true and "
        return f"{reason}; a stream takes it with {texts}timestamps = '{unit}'"
    if isinstance(value, JsonNumber):
        return reason
    return f"{reason}; to_timestamp(column, format) reads other forms in a STRING" if is_other_form else reason
