"""The reason why a value is no TIMESTAMP, with the option or the function that reads the value."""

from __future__ import annotations

import re

from spark_jobs.engine.decode.json_number import JsonNumber

__all__ = ["time_reason"]

_NUMBER = re.compile(r"-?[0-9]{1,19}(?:\.[0-9]+)?", re.ASCII)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_DAY_DIGITS = r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"
_ISO = r"\d{4}-\d\d?-\d\d?[T ]\d\d?:\d\d?(?::\d\d?(?:\.\d+)?)?"
_FORMS = [
    (re.compile(form, re.ASCII), call)
    for form, call in (
        (_DAY_DIGITS, "to_timestamp(column, 'yyyyMMdd')"),
        (_DAY_DIGITS + r"(?:[01]\d|2[0-3])[0-5]\d[0-5]\d", "to_timestamp(column, 'yyyyMMddHHmmss')"),
        (r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d", "to_timestamp(column, 'yyyy/MM/dd HH:mm:ss')"),
        (r"\d\d\.\d\d\.\d{4} \d\d:\d\d:\d\d", "to_timestamp(column, 'dd.MM.yyyy HH:mm:ss')"),
        (r"\d\d-[A-Z][a-z]{2}-\d{4} \d\d:\d\d:\d\d", "to_timestamp(column, 'dd-MMM-yyyy HH:mm:ss')"),
        (r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d [AP]M", "to_timestamp(column, 'MM/dd/yyyy hh:mm:ss a')"),
        (r"\d\d/[A-Z][a-z]{2}/\d{4}:[\d:]{8} [+-]\d{4}", "to_timestamp(column, 'dd/MMM/yyyy:HH:mm:ss XX')"),
        (
            r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} [\d:]{8} GMT",
            "to_timestamp(substr(column, 6, 20), 'dd MMM yyyy HH:mm:ss')",
        ),
        (
            r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} [\d:]{8} [+-]\d{4}",
            "to_timestamp(substr(column, 6), 'dd MMM yyyy HH:mm:ss XX')",
        ),
        (_ISO + r"(?:Z|[+-]\d\d:\d\d)\[[\w/+-]+\]", "CAST(substring_index(column, '[', 1) AS TIMESTAMP)"),
        (_ISO + r"(?:Z| UTC| [A-Z][a-z]+/[A-Za-z_/]+)?", "CAST(column AS TIMESTAMP)"),
    )
]
"""Usual spellings of times in texts, each with the call that reads it."""
_SPACED_ZONE = re.compile(r"[0-9-]{10}[T ][0-9:.]+ ?[+-][0-9]{2}:?[0-9]{2}(?: UTC)?", re.ASCII)
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
        >>> time_reason("21/11/2026 10:00", "not an ISO 8601 date and time")
        'not an ISO 8601 date and time; to_timestamp(column, format) reads other forms in a STRING'
        >>> time_reason("2026-11-21 10:00:00 UTC", "not an ISO 8601 date and time")
        'not an ISO 8601 date and time; CAST(column AS TIMESTAMP) reads it in a STRING'
    """
    if isinstance(value, dict):
        return f"{reason}; FROM with a path names a value within an object"
    if not isinstance(value, str):
        return reason
    call = next((call for form, call in _FORMS if form.fullmatch(value)), "")
    if call and isinstance(value, JsonNumber):
        return f"{reason}; {call.replace('column', 'string(column)')} reads it in a BIGINT"
    if call.startswith("CAST") and reason.startswith(_OTHER_FORM):
        return f"{reason}; {call} reads it in a STRING"
    if call and reason.startswith(_OTHER_FORM):
        return f"{reason}; to_timestamp(column, format) reads other forms in a STRING: {call}"
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
    if not value:
        return f"{reason}; a stream with lenient = true reads it as NULL"
    if not reason.startswith(_OTHER_FORM):
        return reason
    if _SPACED_ZONE.fullmatch(value):
        return f"{reason}; a stream takes it with lenient = true"
    return f"{reason}; to_timestamp(column, format) reads other forms in a STRING"
