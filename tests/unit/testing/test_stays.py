"""Stays over the rows of a test: a row is a result where its key enters, and stays in for the interval of FOR."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from gateway.testing import Record, Stream, evaluate
from grouping.model.errors import InputError

_STREAM = Stream("machines (device STRING, temp DOUBLE, room STRING, PARTITION KEY (device))")
_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_row_is_told_when_its_key_has_stayed_in() -> None:
    """Rows of other keys move the time on; the constants of the comparison and of other conditions decide."""
    rows = [
        ("a", 95.0, "x", 0),
        ("b", 95.0, "x", 1),
        ("a", 92.0, "x", 3),
        ("b", 80.0, "x", 4),
        ("b", 99.0, "y", 5),
        ("a", 99.0, "y", 8),
        ("a", 50.0, "x", 30),
        ("c", 0.0, "x", 60),
    ]
    records = [
        Record({"device": device, "temp": temp, "room": room}, time=_BEGIN + timedelta(minutes=at), partition=0)
        for device, temp, room, at in rows
    ]
    for where, wanted in (
        ("", [0, 1]),  # no row follows by which the time of the last row would pass
        ("WHERE temp > 90", [0, 4]),
        ("WHERE temp > 93", [4, 5]),
        ("WHERE temp < 90 AND device = 'a'", [6]),
        ("WHERE temp > 90 AND room = 'y'", [4, 5]),
        ("WHERE device = 'b'", [1]),
    ):
        query = f"SELECT device, _edge FROM machines {where} EMIT ON ENTER BY device FOR '5 minutes'"
        told = evaluate(query, _STREAM, records)
        assert [place for place, row in enumerate(told) if row.result] == wanted, where
        assert all(row.edge == ("enter" if row.result else None) for row in told)
        assert all((row.result is None) == (row.why is not None) for row in told)


def test_a_stay_has_no_tick_and_no_readers_filter() -> None:
    """A stay waits for no tick, and readers cannot find stays themselves."""
    for clause in ("EVERY '1 hour'", "DO PUBLISH VIRTUAL"):
        with pytest.raises(InputError):
            evaluate(f"SELECT device FROM machines EMIT ON ENTER BY device FOR '1 hour' {clause}", _STREAM, [])


@pytest.mark.parametrize("emit", ["ON ENTER BY device FOR '30 minutes'", "ON SILENCE '30 minutes' BY device"])
def test_a_row_is_told_by_rows_of_a_later_task(emit: str) -> None:
    """More rows than a task takes lie between a row and the row that moves the time on."""
    records = [
        Record({"device": "a" if at == 0 else "b", "temp": 95.0}, time=_BEGIN + timedelta(seconds=2 * at), partition=0)
        for at in range(1_100)
    ]
    told = evaluate(f"SELECT device FROM machines WHERE temp > 90 EMIT {emit}", _STREAM, records)
    assert told[0].results == [{"device": "a"}]
    assert (told[0].matches, told[0].result, told[0].why) == (True, {"device": "a"}, None)
