"""Stays over the rows of a test: a row is a result where its key enters, and stays in for the interval of FOR."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.testing import Record, Stream, Table, digests, evaluate
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
        outcomes = evaluate(query, _STREAM, records)
        assert [place for place, row in enumerate(outcomes) if row.result] == wanted, where
        assert all(row.edge == ("enter" if row.result else None) for row in outcomes)
        assert all((row.result is None) == (row.why is not None) for row in outcomes)


@pytest.mark.parametrize(
    ("until", "wanted"),
    [("", {0: "enter", 3: "exit", 7: "enter", 8: "exit"}), (" UNTIL temp < 85", {0: "enter", 4: "exit", 7: "enter"})],
)
def test_exits_follow_the_stays_that_lasted(until: str, wanted: dict[int, str]) -> None:
    """The end of a stay is told where its enter was, by WHERE or by UNTIL; a stay of four minutes has no edge."""
    temps = [(95, 0), (93, 2), (91, 5), (87, 6), (80, 7), (95, 8), (10, 12), (92, 20), (88, 60), (88, 99)]
    records = [
        Record({"device": "a", "temp": float(temp)}, time=_BEGIN + timedelta(minutes=at), partition=0)
        for temp, at in temps
    ]
    query = f"SELECT device FROM machines WHERE temp > 90 EMIT ON ENTER OR EXIT BY device FOR '5 minutes'{until}"
    results = evaluate(query, _STREAM, records)
    assert {place: row.edge for place, row in enumerate(results) if row.result} == wanted
    assert all((row.result is None) == (row.why is not None) for row in results)


@pytest.mark.parametrize(
    ("kind", "emit", "wanted"),
    [
        ("", "ON ENTER OR EXIT BY device FOR '5 minutes'", {0: (1, "enter"), 6: (1, "exit")}),
        ("LEFT", "ON ENTER OR EXIT BY device FOR '5 minutes'", {3: (1, "enter"), 6: (1, "exit")}),
        ("", "ON ENTER OR EXIT BY device FOR '5 minutes' UNTIL temp < most - 4", {0: (1, "enter"), 6: (1, "exit")}),
        ("", "ON SILENCE '5 minutes' BY device", {2: (2, None), 5: (1, None)}),
    ],
)
def test_joined_rows_are_the_events(kind: str, emit: str, wanted: dict[int, tuple[int, str | None]]) -> None:
    """With an inner join a row that meets no row is not there but moves the time; with LEFT JOIN it ends a stay."""
    limits = Table(
        "limits (room STRING PRIMARY KEY, most DOUBLE, floor INT)",
        [{"room": "x", "most": 85, "floor": 1}, {"room": "y", "most": 50, "floor": 2}],
    )
    rows = [
        ("a", 90.0, "x", 0),
        ("a", 60.0, "z", 2),
        ("b", 70.0, "y", 3),
        ("a", 95.0, "x", 4),
        ("b", 60.0, "x", 5),
        ("a", 99.0, "x", 8),
        ("a", 80.0, "x", 20),
        ("q", 0.0, "z", 60),
    ]
    records = [
        Record({"device": device, "temp": temp, "room": room}, time=_BEGIN + timedelta(minutes=at), partition=0)
        for device, temp, room, at in rows
    ]
    query = f"SELECT floor FROM machines m {kind} JOIN limits l ON l.room = m.room WHERE temp > most EMIT {emit}"
    results = evaluate(query, _STREAM, records, tables=[limits])
    assert {at: (row.result["floor"], row.edge) for at, row in enumerate(results) if row.result} == wanted
    no_row = "it meets no row of the tables that it is joined with"
    assert [row.why == no_row for row in results] == [not kind and place in (1, 7) for place in range(8)]


def test_a_stay_has_no_readers_filter() -> None:
    """Readers cannot find stays themselves."""
    with pytest.raises(InputError):
        evaluate("SELECT device FROM machines EMIT ON ENTER BY device FOR '1 hour' DO PUBLISH VIRTUAL", _STREAM, [])


@pytest.mark.parametrize(
    ("emit", "wanted"),
    [
        ("ON ENTER BY device FOR '5 minutes'", {10: ["a", "b"], 20: ["c"], 40: ["d"]}),
        ("ON SILENCE '5 minutes' BY device", {10: ["a", "b"], 20: ["a", "c"], 40: ["d"]}),
    ],
)
def test_a_digest_has_what_arose_before_its_tick(emit: str, wanted: dict[int, list[str]]) -> None:
    """A row waits for the first tick after the row that moves the time past its interval, not after its own end."""
    rows = [("a", 0), ("b", 1), ("a", 8), ("c", 9), ("x", 19), ("d", 24), ("x", 31)]
    records = [
        Record({"device": device, "temp": 0.0 if device == "x" else 95.0}, time=_BEGIN + timedelta(minutes=at))
        for device, at in rows
    ]
    query = f"SELECT device FROM machines WHERE temp > 90 EMIT {emit} EVERY '10 minutes'"
    found = {digest["to"]: [row["device"] for row in digest["rows"]] for digest in digests(query, _STREAM, records)}
    assert found == {f"2026-01-01T00:{at}:00.000Z": devices for at, devices in wanted.items()}
    [last] = digests(f"{query} EXPIRE '2026-01-01T00:29:30Z' DO PUBLISH DIGEST LATEST BY device", _STREAM, records)[2:]
    assert (last["to"], last["rows"]) == ("2026-01-01T00:29:30.000Z", [{"device": "d"}])
    *_, last = digests(f"{query} EXPIRE '2026-01-01T00:29:00Z' DO PUBLISH DIGEST LATEST BY device", _STREAM, records)
    assert (last["to"], last["rows"]) == ("2026-01-01T00:29:00.000Z", [{"device": "d"}])


@pytest.mark.parametrize("emit", ["ON ENTER BY device FOR '5 minutes'", "ON SILENCE '5 minutes' BY device"])
def test_a_result_at_expire_still_comes(emit: str) -> None:
    """The time of a result is the end of its interval, and EXPIRE lets this time through, but none after it."""
    records = [
        Record({"device": device, "temp": 95.0}, time=_BEGIN + timedelta(minutes=at), partition=0)
        for device, at in (("a", 0), ("b", 1), ("c", 60))
    ]
    for second, wanted in ((0, [0]), (1, [0]), (59, [0])):
        query = f"SELECT device FROM machines WHERE temp > 90 EMIT {emit} EXPIRE '2026-01-01T00:05:{second:02}Z'"
        results = evaluate(query, _STREAM, records)
        assert [place for place, row in enumerate(results) if row.result] == wanted


@pytest.mark.parametrize("emit", ["ON ENTER BY device FOR '30 minutes'", "ON SILENCE '30 minutes' BY device"])
def test_a_row_is_told_by_rows_of_a_later_task(emit: str) -> None:
    """More rows than a task takes lie between a row and the row that moves the time on."""
    records = [
        Record({"device": "a" if at == 0 else "b", "temp": 95.0}, time=_BEGIN + timedelta(seconds=2 * at), partition=0)
        for at in range(1_100)
    ]
    outcomes = evaluate(f"SELECT device FROM machines WHERE temp > 90 EMIT {emit}", _STREAM, records)
    assert outcomes[0].results == [{"device": "a"}]
    assert (outcomes[0].matches, outcomes[0].result, outcomes[0].why) == (True, {"device": "a"}, None)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from("ab"),
            st.sampled_from([80.0, 88.0, 92.0, None]),
            st.sampled_from(["x", "y", None]),
            st.sampled_from([0, 1, 2, 4]),
        ),
        max_size=20,
    ),
    edges=st.sampled_from(["ENTER", "EXIT", "ENTER OR EXIT"]),
    until=st.sampled_from(["", " UNTIL temp < 85", " UNTIL temp < 85 OR room = 'z'"]),
    where=st.sampled_from(["temp > 90", "temp > 90 AND device = 'a'", "temp > 90 OR temp IS NULL"]),
)
def test_what_a_view_leaves_out_is_no_event(
    rows: list[tuple[str, float | None, str | None, int]], edges: str, until: str, where: str
) -> None:
    """The results over a view are those over a stream that has only the events of the view."""
    minutes = accumulate(after for *_, after in rows)
    records = [
        Record({"device": device, "temp": temp, "room": room}, time=_BEGIN + timedelta(minutes=at), partition=0)
        for (device, temp, room, _), at in zip(rows, minutes, strict=True)
    ]
    last = Record({"device": "c", "room": "x"}, time=_BEGIN + timedelta(minutes=100), partition=0)
    query = f"SELECT device, temp FROM {{}} WHERE {where} EMIT ON {edges} BY device FOR '3 minutes'{until}"
    found = evaluate(query.format("(SELECT * FROM machines WHERE room = 'x') m"), _STREAM, [*records, last])
    kept = [place for place, (_, _, room, _) in enumerate(rows) if room == "x"]
    alone = evaluate(query.format("machines"), _STREAM, [*(records[place] for place in kept), last])
    by_place = {place: (row.result, row.edge) for place, row in zip(kept, alone, strict=False)}
    assert [by_place.get(place, (None, None)) for place in range(len(rows))] == [
        (row.result, row.edge) for row in found[:-1]
    ]
