"""Silences over the rows of a test: a row is a result where no match of its key follows for the interval."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from gateway.testing import Record, Stream, evaluate
from grouping.model.errors import InputError

_STREAM = Stream("machines (device STRING, temp DOUBLE, PARTITION KEY (device))")
_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_row_is_told_when_its_key_falls_silent() -> None:
    """Rows of other keys move the time on; the constants of equalities and of other conditions decide."""
    rows = [("a", 5.0, 0), ("b", 5.0, 1), ("a", 1.0, 9), ("b", 5.0, 20), ("a", 5.0, 40), ("b", 1.0, 90)]
    records = [
        Record({"device": device, "temp": temp}, time=_BEGIN + timedelta(minutes=at), partition=0)
        for device, temp, at in rows
    ]
    for where, wanted in (
        ("", [1, 2, 3, 4]),
        ("WHERE device = 'a'", [2, 4]),
        ("WHERE temp > 2", [0, 1, 3, 4]),
        ("WHERE device = 'b' AND temp > 2", [1, 3]),
    ):
        outcomes = evaluate(
            f"SELECT device FROM machines {where} EMIT ON SILENCE '10 minutes' BY device", _STREAM, records
        )
        assert [place for place, row in enumerate(outcomes) if row.result] == wanted, where
        assert all((row.result is None) == (row.why is not None) for row in outcomes)


def test_the_time_of_a_row_may_be_a_column() -> None:
    """A silence goes by the column of WATERMARK FOR: a late row counts for no key, whatever its record's time."""
    stream = Stream(
        "machines (device STRING, at TIMESTAMP, PARTITION KEY (device), WATERMARK FOR at AS at - INTERVAL '1 minute')"
    )
    rows = [
        {"device": device, "at": None if at is None else (_BEGIN + timedelta(days=90, minutes=at)).isoformat()}
        for device, at in (("a", 0), ("b", 20), ("a", 18), ("c", None), ("b", 40))
    ]
    outcomes = evaluate("SELECT device FROM machines EMIT ON SILENCE '10 minutes' BY device", stream, rows)
    assert [place for place, row in enumerate(outcomes) if row.result] == [0, 1]


def test_a_silence_has_no_readers_filter() -> None:
    """Readers cannot find silences themselves."""
    with pytest.raises(InputError):
        evaluate("SELECT device FROM machines EMIT ON SILENCE '1 hour' BY device DO PUBLISH VIRTUAL", _STREAM, [])
