"""The reason why a value is no TIMESTAMP, with the option or the function that reads the value."""

from __future__ import annotations

import re

from spark_jobs.engine.decode.json_number import JsonNumber

__all__ = ["time_reason"]

_NUMBER = re.compile(r"-?[0-9]{1,19}(?:\.[0-9]+)?", re.ASCII)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_SPACED_ZONE = re.compile(r"[0-9-]{10}[T ][0-9:.]+ ?[+-][0-9]{2}:?[0-9]{2}(?: UTC)?", re.ASCII)
_UNITS = {"seconds": 11, "millis": 14, "micros": 17}
"""For each unit the digits before the point that a time of the years 1 to 5138 has at most."""


def time_reason(value: object, reason: str) -> str:
    """Return the reason, with the form to write where the value is a usual spelling of a time.

    Args:
        value: A number as `JsonNumber`, or any other JSON value.
        reason: Why ISO 8601 refuses the value.

    Example:
        >>> time_reason(JsonNumber("1763719200000"), "a number is no string")
        "a number is no string; a stream takes it with timestamps = 'millis'"
        >>> time_reason("21/11/2026 10:00", "not an ISO 8601 date and time")
        'not an ISO 8601 date and time; to_timestamp(column, format) reads other forms in a STRING'
    """
    if not isinstance(value, str):
        return reason
    if _NUMBER.fullmatch(value):
        digits = len(value.lstrip("-").partition(".")[0])
        unit = next((name for name, most in _UNITS.items() if digits <= most), "")
        if not unit:
            return f"{reason}; declare BIGINT for a number of nanoseconds"
        texts = "" if isinstance(value, JsonNumber) else "lenient = true and "
        return f"{reason}; a stream takes it with {texts}timestamps = '{unit}'"
    if isinstance(value, JsonNumber):
        return reason
    if _DATE.fullmatch(value):
        return f"{reason}; declare DATE for a date without a time"
    if _SPACED_ZONE.fullmatch(value):
        return f"{reason}; a stream takes it with lenient = true"
    return f"{reason}; to_timestamp(column, format) reads other forms in a STRING"
