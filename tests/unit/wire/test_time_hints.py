"""A time or date in another form than ISO 8601: the dead letter's detail has the call that reads the value."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import pytest

from gateway.testing import Record, Stream, evaluate

_CALL = r"(?:CAST|to_timestamp|to_date|timestamp_\w+|date_\w+)\((?!column, format).*?\)(?= or |\.$| reads )"
_RECEIVED = datetime(2026, 11, 30, tzinfo=UTC)


def _refusal(value: str, sql_type: str) -> str:
    """Return the detail of the dead letter with a JSON value in a column."""
    [row] = evaluate("SELECT at FROM s", Stream(f"s (at {sql_type})"), [f'{{"at": {value}}}'.encode()])
    assert row.dead_letter == "undecodable"
    return str(row.why)


def _read(value: str, detail: str) -> list[object]:
    """Return the values of the calls in a detail, over a column of the type that the detail says."""
    calls = [call.replace("column", "at") for call in re.findall(_CALL, detail)]
    assert calls, detail
    found = re.search(r" in an? (STRING|BIGINT|DOUBLE)", detail)
    assert found is not None, detail
    select = ", ".join(f"{call} AS v{place}" for place, call in enumerate(calls))
    record = Record(f'{{"at": {value}}}'.encode(), time=_RECEIVED)
    [row] = evaluate(f"SELECT {select} FROM s", Stream(f"s (at {found[1]})"), [record])
    assert row.result is not None, row.why
    return list(row.result.values())


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("1763719200", "a number is no string; a stream takes it with timestamps = 'seconds'"),
        ("-1763719200.5", "timestamps = 'seconds'"),
        ("1763719200000", "timestamps = 'millis'"),
        ("1763719200000000", "timestamps = 'micros'"),
        ("1763719200000000000", "declare BIGINT for a number of nanoseconds"),
        ('"1763719200000"', "a stream takes it with lenient = true and timestamps = 'millis'"),
        ('"2026-11-21"', "declare DATE for a date without a time"),
        ('"2026-11-21 10:00:00 +0000 UTC"', "a stream takes it with lenient = true"),
        ('"2026-11-21T10:00:00 +0100"', "a stream takes it with lenient = true"),
        ('"Sat, 21 Nov 2026 10:00:00 GMT"', "to_timestamp(column, format) reads other forms in a STRING"),
        ('"2026-11-21T10:00:00+25:00"', "the zone is a day or more from UTC."),
        ('"2026-02-30T10:00:00Z"', "day is out of range for month."),
        ('"20261121"', "in a STRING: to_timestamp(column, 'yyyyMMdd')"),
        ("20261121100000", "to_timestamp(string(column), 'yyyyMMddHHmmss') reads it in a BIGINT"),
        ('"20261321"', "a stream takes it with lenient = true and timestamps = 'seconds'"),
        ('"2026-1-5 1:2:3"', "CAST(column AS TIMESTAMP) reads it in a STRING"),
        ('""', "a stream with lenient = true reads it as NULL"),
        ('"N/A"', "a stream with lenient = true reads it as NULL"),
        ('"10:00:00"', "declare STRING for a time of the day"),
        ('"soon"', "to_timestamp(column, format) reads other forms in a STRING."),
        ('{"$date": "2026-11-21T10:00:00Z"}', "FROM with a path names a value within an object"),
        ("true", "a boolean is no string."),
    ],
)
def test_a_time_in_another_form_is_refused_with_the_form_to_write(value: str, words: str) -> None:
    """The unit is the one in which the number is a usual time."""
    assert words in _refusal(value, "TIMESTAMP")


_TEN = "2026-11-21T10:00:00Z"
_TIMES = {
    "20261121100000": _TEN,
    "20261121": "2026-11-21T00:00:00Z",
    "2026/11/21 10:00:00": _TEN,
    "21.11.2026 10:00:00": _TEN,
    "21-Nov-2026 10:00:00": _TEN,
    "11/21/2026 10:00:00 AM": _TEN,
    "21/Nov/2026:11:00:00 +0100": _TEN,
    "Sat, 21 Nov 2026 10:00:00 GMT": _TEN,
    "Sat, 21 Nov 2026 05:00:00 -0500": _TEN,
    "2026-11-21T11:00:00+01:00[Europe/Madrid]": _TEN,
    "2026-11-21T10:00:00.123Z[UTC]": "2026-11-21T10:00:00.123000Z",
    "2026-11-21 10:00:00 UTC": _TEN,
    "2026-11-21T11:00:00 Europe/Madrid": _TEN,
    "2026-1-5T1:2:3Z": "2026-01-05T01:02:03Z",
    "2026-11-21 10:00:00 GMT": _TEN,
    "2026-11-21 05:00:00 EST": _TEN,
    "2026-11-21T11:00:00[Europe/Madrid]": _TEN,
    " 2026-11-21T10:00:00Z": _TEN,
    "2026-11-21_10:00:00": _TEN,
    "2026-11-21  10:00:00": _TEN,
    "2026-11-21 10:00:00 AM": _TEN,
    "2026:11:21 10:00:00": _TEN,
    "2026/11/21 10:00": _TEN,
    "2026/1/5 9:03:07,250": "2026-01-05T09:03:07.250000Z",
    "21/11/2026 10:00:00": _TEN,
    "21/11/2026": "2026-11-21T00:00:00Z",
    "11/21/2026 10:00": _TEN,
    "11/21/2026 10:00 AM": _TEN,
    "11/21/2026 11:00:00 +01:00": _TEN,
    "21-11-2026 10:00:00": _TEN,
    "21.11.26 10:00": _TEN,
    "21-Nov-26 10:00": _TEN,
    "21-Nov-2026 10:00:00 UTC": _TEN,
    "21 November 2026 10:00:00.5": "2026-11-21T10:00:00.500000Z",
    "Nov 21, 2026 10:00:00 AM": _TEN,
    "May 5, 2026": "2026-05-05T00:00:00Z",
    "Nov 21 2026 10:00AM": _TEN,
    "Sat Nov 21 10:00:00 2026": _TEN,
    "Sat Nov 21 10:00:00 +0000 2026": _TEN,
    "Sat Nov 21 2026 11:00:00 GMT+0100 (CET)": _TEN,
    "[21/Nov/2026:11:00:00 +0100]": _TEN,
    "/Date(1795255200000)/": _TEN,
    "1795255200000000000": _TEN,
    "10:00 21/11/2026": _TEN,
    "10:00:00 21.11.2026": _TEN,
    "Saturday, November 21, 2026 10:00:00 AM": _TEN,
    "Saturday, 21-Nov-26 10:00:00 GMT": _TEN,
    "Sat, 5 Dec 2026 10:00:00 +0000": "2026-12-05T10:00:00Z",
    "Sat Dec  5 10:00:00 2026": "2026-12-05T10:00:00Z",
    "Sat Nov 21 10:00:00 UTC 2026": _TEN,
    "Nov 21 10:00:00": _TEN,
    "Nov  5 10:00:00": "2026-11-05T10:00:00Z",
    "20261121-10:00:00.250": "2026-11-21T10:00:00.250000Z",
    "2026-11-21-10.00.00.000000": _TEN,
    "21-NOV-26 10.00.00.000000 AM": _TEN,
    "2026/11/21T10:00:00Z": _TEN,
    "2026-11-21T10:00:00 Z": _TEN,
    "2026-11": "2026-11-01T00:00:00Z",
    "2026": "2026-01-01T00:00:00Z",
    "45992.5": "2025-12-01T12:00:00Z",
    "46347.4166666667": _TEN,
}


@pytest.mark.parametrize(("text", "time"), _TIMES.items())
def test_the_call_in_the_detail_reads_the_time(text: str, time: str) -> None:
    """A usual form of a time has the call that reads this form in a column of the type that the detail names."""
    value = json.dumps(text)
    assert _read(value, _refusal(value, "TIMESTAMP")) == [time]


@pytest.mark.parametrize(
    ("text", "date"),
    [(text, time[:10]) for text, time in _TIMES.items() if text != "20261121"],
)
def test_the_call_in_the_detail_reads_the_date(text: str, date: str) -> None:
    """The same forms in a column of type DATE."""
    value = json.dumps(text)
    assert _read(value, _refusal(value, "DATE")) == [date]


@pytest.mark.parametrize(
    ("value", "sql_type", "read"),
    [
        ("45992.5", "TIMESTAMP", "2025-12-01T12:00:00Z"),
        ("46347.4166666667", "TIMESTAMP", "2026-11-21T10:00:00Z"),
        ("2026", "TIMESTAMP", "2026-01-01T00:00:00Z"),
        ("20261121100000", "TIMESTAMP", "2026-11-21T10:00:00Z"),
        ("45992.5", "DATE", "2025-12-01"),
        ("20778", "DATE", "2026-11-21"),
        ("-1", "DATE", "1969-12-31"),
        ("20261121", "DATE", "2026-11-21"),
        ("1795255200", "DATE", "2026-11-21"),
        ("1795255200.5", "DATE", "2026-11-21"),
        ("1795255200000", "DATE", "2026-11-21"),
        ("1795255200000000", "DATE", "2026-11-21"),
        ("1795255200000000000", "DATE", "2026-11-21"),
        ('"20778"', "DATE", "2026-11-21"),
        ('"1795255200.5"', "DATE", "2026-11-21"),
    ],
)
def test_the_call_in_the_detail_reads_the_number(value: str, sql_type: str, read: str) -> None:
    """Days of a spreadsheet, days since 1970, and dates of digits; other numbers as dates by their number of digits."""
    assert _read(value, _refusal(value, sql_type)) == [read]


@pytest.mark.parametrize(
    ("value", "times"),
    [
        ("5/6/2026 9:03", ["2026-06-05T09:03:00Z", "2026-05-06T09:03:00Z"]),
        ("1/2/26", ["2026-02-01T00:00:00Z", "2026-01-02T00:00:00Z"]),
        ("26-11-21 10:00", ["2021-11-26T10:00:00Z", _TEN]),
        ("01/02/03", ["2003-02-01T00:00:00Z", "2003-01-02T00:00:00Z", "2001-02-03T00:00:00Z"]),
    ],
)
def test_an_order_that_is_not_certain_has_all_calls(value: str, times: list[str]) -> None:
    """A day up to 12, or a year of two digits, has a call for each order."""
    text = json.dumps(value)
    assert _read(text, _refusal(text, "TIMESTAMP")) == times
    assert _read(text, _refusal(text, "DATE")) == [time[:10] for time in times]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ('"2026-11-21T10:00:00Z"', "not an ISO 8601 date; declare TIMESTAMP for a date with a time."),
        ('"10:00"', "declare STRING for a time of the day."),
        ('"N/A"', "a stream with lenient = true reads it as NULL."),
        ('"2026-02-30"', "day is out of range for month."),
        ('"soon"', "not an ISO 8601 date; to_date(column, format) reads other forms in a STRING."),
        ('{"$date": 5}', "FROM with a path names a value within an object."),
        ("true", "a boolean is no string."),
    ],
)
def test_a_value_that_is_no_date_has_the_form_to_write(value: str, words: str) -> None:
    """No words of the library, and no advice where the value itself is wrong."""
    assert _refusal(value, "DATE").endswith(words)
