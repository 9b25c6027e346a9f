"""The reason why a value is no DATE or no TIMESTAMP, with the option, type or function that reads the value."""

from __future__ import annotations

import re

from grouping.model.sql_type import DATE, SqlType
from grouping.values.iso8601 import parse_timestamp
from spark_jobs.engine.decode.json_number import JsonNumber
from spark_jobs.engine.decode.time_formats import reading_calls

__all__ = ["time_reason"]

_NUMBER = re.compile(r"-?[0-9]{1,19}(?:\.[0-9]+)?", re.ASCII)
_FORMAT = "(column, format) reads other forms in a STRING"
_DATE_ADVICE = [
    (re.compile(form, re.ASCII | re.IGNORECASE), advice)
    for form, advice in (
        (r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?", "declare STRING for a time of the day"),
        (r"|null|none|nil|nan|n/?a|-+|undefined|unknown", "a stream with lenient = true reads it as NULL"),
    )
]
"""Forms of texts that are no DATE, each with the advice."""
_TIMESTAMP_ADVICE = [
    *_DATE_ADVICE,
    *(
        (re.compile(form, re.ASCII | re.IGNORECASE), advice)
        for form, advice in (
            (r"[0-9]{4}-[0-9]{2}-[0-9]{2}", "declare DATE for a date without a time"),
            (r"[0-9-]{10}[T ][0-9:.]+ ?[+-][0-9]{2}:?[0-9]{2}(?: UTC)?", "a stream takes it with lenient = true"),
        )
    ),
]
"""Forms of texts that are no TIMESTAMP, each with the advice. No text has two of the forms."""
_OTHER_FORM = "not an ISO 8601"
"""The beginning of a reason about the spelling as a whole. Other reasons are about a part, such as a month 13."""
_UNITS = {"seconds": 11, "millis": 14, "micros": 17}
"""For each unit, the largest number of digits before the point of a time in the years 1 to 5138."""
_SHEET_DAYS = range(36_526, 73_051)
"""The years 2000 to 2099 as spreadsheets count days, from the end of 1899. Day 25,569 is 1970-01-01."""


def time_reason(value: object, reason: str, sql_type: SqlType) -> str:
    """Return the reason; for a usual spelling of a time, with the option, type or function that reads the spelling.

    Args:
        value: A number as `JsonNumber`, or any other JSON value.
        reason: Why ISO 8601 refuses the value.
        sql_type: DATE or TIMESTAMP.

    Example:
        >>> from grouping.model.sql_type import TIMESTAMP
        >>> time_reason(JsonNumber("1763719200000"), "a number is no string", TIMESTAMP)
        "a number is no string; a stream takes it with timestamps = 'millis'"
        >>> time_reason("soon", "not an ISO 8601 date and time", TIMESTAMP)
        'not an ISO 8601 date and time; to_timestamp(column, format) reads other forms in a STRING'
        >>> time_reason("21.11.2026", "not an ISO 8601 date", DATE)
        "not an ISO 8601 date; to_date(column, format) reads other forms in a STRING: to_date(column, 'dd.MM.yyyy')"
    """
    if isinstance(value, dict):
        return f"{reason}; FROM with a path names a value within an object"
    if not isinstance(value, str):
        return reason
    advice = (_date_advice if sql_type == DATE else _timestamp_advice)(value, reason.startswith(_OTHER_FORM))
    return f"{reason}; {advice}" if advice else reason


def _timestamp_advice(value: str, is_other_form: bool) -> str:
    if is_other_form and (advice := _of_form(value, _TIMESTAMP_ADVICE)):
        return advice
    if advice := _call_advice(reading_calls(value), value, is_other_form):
        return advice
    is_number = isinstance(value, JsonNumber)
    if _NUMBER.fullmatch(value):
        whole = value.partition(".")[0]
        if int(whole) in _SHEET_DAYS:
            days = "column" if is_number else "CAST(column AS DOUBLE)"
            call = f"timestamp_seconds(round(({days} - 25569) * 86400, 3))"
            return f"{call} reads the day of a spreadsheet in a {'DOUBLE' if is_number else 'STRING'}"
        if unit := _unit(whole):
            return f"a stream takes it with {'' if is_number else 'lenient = true and '}timestamps = '{unit}'"
        if is_number:
            return "declare BIGINT for a number of nanoseconds"
        return "timestamp_micros(CAST(column AS BIGINT) div 1000) reads it in a STRING"
    return f"to_timestamp{_FORMAT}" if is_other_form and not is_number else ""


def _date_advice(value: str, is_other_form: bool) -> str:
    is_number = isinstance(value, JsonNumber)
    if is_other_form and (advice := _of_form(value, _DATE_ADVICE)):
        return advice
    if is_other_form and not is_number and _is_timestamp(value):
        return "declare TIMESTAMP for a date with a time"
    calls = tuple(
        call.replace("to_timestamp", "to_date", 1) if call.startswith("to_timestamp") else f"CAST({call} AS DATE)"
        for call in reading_calls(value)
    )
    if advice := _call_advice(calls, value, is_other_form):
        return advice
    if _NUMBER.fullmatch(value):
        return _date_of_number(value)
    return f"to_date{_FORMAT}" if is_other_form and not is_number else ""


def _date_of_number(value: str) -> str:
    """Return the advice for a number of days or of a smaller unit."""
    whole, point, _ = value.partition(".")
    column, declared = (
        ("column", "DOUBLE" if point else "BIGINT")
        if isinstance(value, JsonNumber)
        else ("CAST(column AS DOUBLE)" if point else "column", "STRING")
    )
    if int(whole) in _SHEET_DAYS:
        call, unit = f"date_add(DATE '1899-12-30', CAST({column} AS INT))", "the day of a spreadsheet"
    elif int(whole) < _SHEET_DAYS.start:
        call, unit = f"date_from_unix_date(CAST({column} AS INT))", "days since 1970"
    else:
        name = _unit(whole)
        number = f"CAST({column} AS BIGINT)" + ("" if name else " div 1000")
        call, unit = f"CAST(timestamp_{name or 'micros'}({number}) AS DATE)", f"{name or 'nanos'} since 1970"
    return f"{call} reads {unit} in a {declared}"


def _of_form(value: str, forms: list[tuple[re.Pattern[str], str]]) -> str:
    return next((advice for form, advice in forms if form.fullmatch(value)), "")


def _call_advice(calls: tuple[str, ...], value: str, is_other_form: bool) -> str:
    """Return the advice to write one of some calls; "" without calls, or if the reason is about a part of the text."""
    if calls and isinstance(value, JsonNumber):
        return f"{calls[0].replace('column', 'string(column)')} reads it in a BIGINT"
    if not calls or not is_other_form:
        return ""
    if calls[0].startswith("to_"):
        return f"{calls[0].partition('(')[0]}{_FORMAT}: {' or '.join(calls)}"
    return f"{calls[0]} reads it in a STRING"


def _unit(whole: str) -> str:
    """Return the unit in which a whole number is a usual time; "" for nanoseconds."""
    return next((name for name, most in _UNITS.items() if len(whole.lstrip("-")) <= most), "")


def _is_timestamp(text: str) -> bool:
    try:
        parse_timestamp(text)
    except ValueError:
        return False
    return True
