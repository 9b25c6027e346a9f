"""The same text of a date or a time means the same in a record, in a constant and in a clause."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from grouping.model.errors import InputError
from grouping.values.iso8601 import parse_time
from grouping.values.literals import READERS
from grouping.values.times import parse_instant
from spark_jobs.engine.decode.decode import decode
from spark_jobs.engine.decode.json_exact import WrongRecord, read_record
from tests.unit.matching.event_batches import SETTINGS, batch, stream

_STREAM = stream("day DATE", "at TIMESTAMP")


def _record(column: str, text: str) -> date | datetime | None:
    """Return the value of a record's column, None for a dead letter."""
    events, dead = decode(batch([json.dumps({column: text}).encode()]), _STREAM, SETTINGS)
    return None if dead is not None else events.column(column).to_pylist()[0]


def _exactly(column: str, text: str) -> object:
    """Return the exact reader's value of a record's column, None for a dead letter."""
    try:
        return read_record(json.dumps({column: text}).encode(), _STREAM.columns)[column == "at"]
    except WrongRecord:
        return None


def _constant(reader: str, text: str) -> object:
    """Return the value of a constant beside a column, None if the constant is refused."""
    try:
        return READERS[reader](text)[1]
    except InputError:
        return None


def _clause(text: str) -> datetime | None:
    """Return the instant that a clause has, None where it is refused."""
    try:
        return parse_instant(text)
    except InputError:
        return None


_NINE = datetime(2026, 11, 21, 9, tzinfo=UTC)
_TEN = datetime(2026, 11, 21, 10, tzinfo=UTC)
_MIDNIGHT = datetime(2026, 11, 22, tzinfo=UTC)

_TIMES = {
    "2026-11-21T10:00:00Z": _TEN,
    "2026-11-21 10:00:00Z": _TEN,
    "2026-11-21t10:00:00z": _TEN,
    "2026-11-21T10:00Z": _TEN,
    "2026-11-21T10Z": _TEN,
    "20261121T100000Z": _TEN,
    "20261121T10:00:00Z": _TEN,
    "2026-11-21T1000Z": _TEN,
    "2026-W47-6T10:00:00Z": _TEN,
    "2026W476T10Z": _TEN,
    "2026-325T10:00Z": _TEN,
    "2026325T10Z": _TEN,
    "2026-W47T10:00Z": _TEN.replace(day=16),
    "2026-11-21T10:00:00+01": _NINE,
    "2026-11-21T10:00:00+0100": _NINE,
    "2026-11-21T10:00:00+01:00": _NINE,
    "2026-11-21T10:00:00-00:00": _TEN,
    "2026-11-20T10:00:00-23:00": _NINE,
    "2026-11-21T24:00:00Z": _MIDNIGHT,
    "2026-11-21T24:00:00.000Z": _MIDNIGHT,
    "2026-11-21T24:00Z": _MIDNIGHT,
    "2026-11-21T24Z": _MIDNIGHT,
    "2026-12-31T24:00:00+01:00": datetime(2026, 12, 31, 23, tzinfo=UTC),
    "2026-11-21T10:00:00.5Z": _TEN.replace(microsecond=500_000),
    "2026-11-21T10:00:00,25Z": _TEN.replace(microsecond=250_000),
    "2026-11-21T10:00:00.123456Z": _TEN.replace(microsecond=123_456),
    "2026-11-21T10:00:00.1234567Z": _TEN.replace(microsecond=123_456),
    "2026-11-21T10:00:00.9999999Z": _TEN.replace(microsecond=999_999),
    "2026-11-21T10:00:00.1234560Z": _TEN.replace(microsecond=123_456),
    "2026-11-21T10:30.5Z": _TEN.replace(minute=30, second=30),
    "2026-11-21T1030,25Z": _TEN.replace(minute=30, second=15),
    "2026-11-21T10.5Z": _TEN.replace(minute=30),
    "2026-11-21T10.00000001Z": _TEN.replace(microsecond=36),
    "0001-01-01T00:00:00Z": datetime(1, 1, 1, tzinfo=UTC),
    "9999-12-31T23:59:59.999999Z": datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC),
}
_NO_TIMES = """2026-11-21T25:00Z 2026-11-21T24:00:01Z 2026-11-21T24:00:00.000001Z 2026-11-21T10:60Z 2026-11-21T23:59:60Z
    2026-11-21T10:00:00+24:00 2026-11-21T10:00:00+01:00:30 2026-11-21T10:00:00+1 2026-11-21T10:00:00.Z
    2026-11-21T10:00:00.5.5Z 2026-11-21T10:0000Z 2026-11-21T1000:00Z 2026-1121T10:00Z 202611-21T10:00Z 2026-1-1T10:00Z
    2026-W476T10Z 2026W47-6T10Z 2026-W54-1T10Z 2026-W00-1T10Z 2026-W47-8T10Z 2026-000T10Z 2026-366T10Z 2026-02-29T10Z
    2026-11T10Z 2026T10Z 20T10Z +2026-11-21T10:00Z +12026-11-21T10:00Z 0000-01-01T00:00Z 9999-12-31T24:00:00Z
    0001-01-01T00:00:00+01:00 9999-12-31T23:59:59-01:00 2026-11-21x10:00Z 2026-11-21TZ 10:00Z T10:00Z
    ٢٠٢٦-11-21T10:00:00Z 2026-11-21T1٠:00Z""".split()
_ODD_TEXTS = ("", "x", "2026-11-21T10:00:00 Z", "2026-11-21T10:00:00\x00", "2026-11-21T10:00:00.5\x00Z")
_DATES = {
    "2026-11-21": date(2026, 11, 21),
    "20261121": date(2026, 11, 21),
    "2026-W47-6": date(2026, 11, 21),
    "2026W476": date(2026, 11, 21),
    "2026-W47": date(2026, 11, 16),
    "2026W47": date(2026, 11, 16),
    "2026-325": date(2026, 11, 21),
    "2026325": date(2026, 11, 21),
    "2024-366": date(2024, 12, 31),
    "2026-W53-5": date(2027, 1, 1),
}
_NO_DATES = """2026-11 2026 20 2026-1121 202611-21 2026-1-1 2026-02-30 2026-366 2026-000 2026-W54-1 2026-W476 2026W47-6
    +2026-11-21 0000-01-01 2026-11-21T00:00:00 ٢٠٢٦-11-21 x""".split()


@pytest.mark.parametrize("text", _TIMES)
def test_a_time_means_the_same_everywhere(text: str) -> None:
    """A record, a constant and a clause have the same instant; finer than a microsecond is cut off."""
    expected = _TIMES[text]
    assert expected == _record("at", text) == _constant("timestamp", text) == _clause(text) == _clause(f" {text} ")


def test_a_fraction_of_any_length() -> None:
    """However many digits there are, a microsecond is the last; a clause takes no text of this length."""
    text = "2026-11-21T10:00:00." + "1" * 10_000 + "Z"
    assert _TEN.replace(microsecond=111_111) == _record("at", text) == _constant("timestamp", text)
    assert _clause(text) is None


@pytest.mark.parametrize("text", [text.removesuffix("Z") for text in _TIMES if text.endswith("Z")])
def test_a_time_without_a_zone(text: str) -> None:
    """Without a zone a time is UTC in a record and beside a column; a clause wants one."""
    assert _TIMES[f"{text}Z"] == _record("at", text) == _constant("timestamp", text)
    with pytest.raises(InputError, match="has no zone"):
        parse_instant(text)


@pytest.mark.parametrize(
    "text", [*_NO_TIMES, "2026-11-21T10:00:00 Z", "", "x", "2026-11-21T10:00:00\x00", "2026-11-21T10:00:00.5\x00Z"]
)
def test_what_is_no_time_is_none_anywhere(text: str) -> None:
    """Any text but a date and time of ISO 8601 within the calendar is refused in each place."""
    assert (None, None, None) == (_record("at", text), _constant("timestamp", text), _clause(text))


@pytest.mark.parametrize("text", _DATES)
def test_a_date_means_the_same_everywhere(text: str) -> None:
    """A record and a constant have the same day; beside a TIMESTAMP a constant is its midnight, a record is wrong."""
    expected = _DATES[text]
    assert expected == _record("day", text) == _constant("date", text)
    midnight = datetime(expected.year, expected.month, expected.day, tzinfo=UTC)
    assert (midnight, None, None) == (_constant("timestamp", text), _record("at", text), _clause(text))


@pytest.mark.parametrize("text", _NO_DATES)
def test_what_is_no_date_is_none_anywhere(text: str) -> None:
    """Any text but a date of ISO 8601 is refused in each place."""
    assert (None, None) == (_record("day", text), _constant("date", text))


_PARTS = (
    [
        "2026-11-21",
        "20261121",
        "2026-W47-6",
        "2026-325",
        "0001-01-01",
        "9999-12-31",
        "2026-02-29",
        "2026-W53",
        "2026-1",
    ],
    ["T", " ", "t", "", "x"],
    ["10:00:00", "100000", "10:00", "10", "24:00:00", "24", "23:59:59", "23:59:60", "10:0000", "7"],
    ["", ".5", ",5", ".123456", ".1234567", ".9999999", ".0000000", ".999999999999", "."],
    ["", "Z", "z", "+01:00", "-01:00", "+0130", "-23", "+23:59", "+24:00", "-00:00", "Z+01:00"],
)
_TEXTS = st.tuples(*map(st.sampled_from, _PARTS)).map("".join)
_DIGITS = st.from_regex(r"[0-9]{4}-?W?[0-9]{1,3}-?[0-9]{0,2}[Tt ]?[0-9:]{0,8}([.,][0-9]{1,9})?([Zz]|[+-][0-9:]{2,5})?")


@given(_TEXTS | _DIGITS | st.text("0123456789-:TWZ+., ", max_size=30))
@example("2026-11-21T23:59:59.9999999Z")
@example("0001-01-01T00:00:00.0000001+00:01")
def test_all_places_agree(text: str) -> None:
    """Whatever the text, fast and exact readers of records, constants and clauses read the same or refuse it."""
    found = _record("at", text)
    assert found == _exactly("at", text)
    if _constant("date", text) is None:
        assert found == _constant("timestamp", text)
    if found is not None and parse_time(text).tzinfo is None:
        found = None
    if text == text.strip():
        assert found == _clause(text)
    day = _record("day", text)
    assert day == _exactly("day", text) == _constant("date", text)
