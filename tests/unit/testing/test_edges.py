"""Edges over the rows of a test: each row is compared with the row before it of its key."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.testing import Record, Stream, Table, digests, evaluate
from grouping.model.errors import InputError

_STREAM = Stream("machines (device STRING, room STRING, temp DOUBLE, PARTITION KEY (device))")
_ROWS = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.fixed_dictionaries(
            {
                "device": st.sampled_from(["a", "b", None]),
                "room": st.sampled_from(["x", None]),
                "temp": st.sampled_from([-0.0, 0.0, 80.0, 91.0, None]),
            }
        ),
    ),
    max_size=30,
)
_WHERE = {
    "temp > 90": lambda row: row["temp"] is not None and row["temp"] > 90,
    "temp >= 0 AND temp < 85": lambda row: row["temp"] is not None and row["temp"] < 85,
    "room IS NULL OR temp IN (80, 91)": lambda row: row["room"] is None or row["temp"] in (80, 91),
    "NOT room = 'x'": lambda row: False,
}


def _folded(rows: list[tuple[int, dict[str, Any]]], by: list[str], where: str) -> list[str | None]:
    """Return the edge of each row, one row after the other."""
    was: dict[tuple[Any, ...], bool] = {}
    edges: list[str | None] = []
    for partition, row in rows:
        key = (partition, *(row[name] for name in by))  # in Python, as in SQL's GROUP BY, -0.0 equals 0.0
        before, now = was.get(key, False), _WHERE[where](row)
        edges.append({(False, True): "enter", (True, False): "exit"}.get((before, now)))
        was[key] = now
    return edges


@given(_ROWS, st.sampled_from([["device"], ["device", "room"], ["device", "temp"]]), st.sampled_from([*_WHERE]))
def test_edges_are_those_of_a_fold(rows: list[tuple[int, dict[str, Any]]], by: list[str], where: str) -> None:
    """ENTER, EXIT and both give the edges of a fold that takes one row at a time, by key and partition."""
    records = [Record(row, partition=partition) for partition, row in rows]
    edges = _folded(rows, by, where)
    for clause, wanted in (("ENTER", {"enter"}), ("EXIT", {"exit"}), ("ENTER OR EXIT", {"enter", "exit"})):
        query = f"SELECT device, _edge FROM machines WHERE {where} EMIT ON {clause} BY {', '.join(by)}"
        outcomes = evaluate(query, _STREAM, records)
        expected = [edge if edge in wanted else None for edge in edges]
        assert expected == [row.edge for row in outcomes]
        assert expected == [row.result and row.result["_edge"] for row in outcomes]
        assert [edge is None for edge in expected] == [row.why is not None for row in outcomes]


@pytest.mark.parametrize(
    ("temps", "clause", "why"),
    [
        ([80], "ENTER", "temp > 90 is FALSE"),
        ([91, 92], "ENTER OR EXIT", "the event before it was a match too"),
        ([91], "EXIT", "it is a match, which is not an exit"),
        ([80, None], "EXIT", "temp > 90 is NULL, and no match was right before it"),
        ([91, 92], "ENTER OR EXIT UNTIL", "its key was in already"),
        ([91, 85], "EXIT UNTIL", "temp > 90 is FALSE, and no key leaves with it"),
    ],
)
def test_a_row_that_is_no_edge_says_why(temps: list[float | None], clause: str, why: str) -> None:
    """The reason is of the row, and of the row before it where that decides."""
    rows = [{"device": "a", "temp": temp} for temp in temps]
    edges, until = clause.removesuffix(" UNTIL"), "UNTIL temp < 80" if clause.endswith("UNTIL") else ""
    outcomes = evaluate(f"SELECT temp FROM machines WHERE temp > 90 EMIT ON {edges} BY device {until}", _STREAM, rows)
    assert why == outcomes[-1].why


def test_a_key_stays_in_until_the_second_condition() -> None:
    """An event between the two thresholds changes nothing; a digest has the edges too."""
    rows = [{"device": "a", "temp": temp} for temp in (85, 91, 85, 95, None, 79.5, 85, 99)]
    select = "SELECT temp, _edge FROM machines WHERE temp > 90 EMIT ON ENTER OR EXIT BY device UNTIL temp < 80"
    edges = [None, "enter", None, None, None, "exit", None, "enter"]
    assert edges == [row.edge for row in evaluate(select, _STREAM, rows)]
    [digest] = digests(f"{select} EVERY '1 hour'", _STREAM, rows)
    assert [(91, "enter"), (79.5, "exit"), (99, "enter")] == [(row["temp"], row["_edge"]) for row in digest["rows"]]


def test_a_row_before_start_is_the_row_before() -> None:
    """START chooses among results: a key that became a match before START does not enter after it."""
    rows = [
        Record({"device": device, "temp": temp}, time=datetime(2026, 1, 1, 0, minute, tzinfo=UTC))
        for minute, device, temp in ((1, "a", 91), (1, "b", 80), (3, "a", 92), (3, "b", 93), (4, "a", 80))
    ]
    select = "SELECT device FROM machines WHERE temp > 90 EMIT ON ENTER OR EXIT BY device START '2026-01-01T00:02:00Z'"
    assert [None, None, None, "enter", "exit"] == [row.edge for row in evaluate(select, _STREAM, rows)]


def test_joined_rows_are_the_events() -> None:
    """With an inner join a row that meets no row is not there; with LEFT JOIN it may be the exit."""
    limits = Table("limits (room STRING PRIMARY KEY, most DOUBLE)", [{"room": "x", "most": 85}])
    rows = [{"device": "a", "room": room, "temp": 90} for room in ("x", "y", "x")]
    select = (
        "SELECT m.device FROM machines m {} JOIN limits l ON l.room = m.room "
        "WHERE temp > most EMIT ON ENTER OR EXIT BY m.device"
    )
    for kind, edges in (("", ["enter", None, None]), ("LEFT", ["enter", "exit", "enter"])):
        outcomes = evaluate(select.format(kind), _STREAM, rows, tables=[limits])
        assert edges == [row.edge for row in outcomes]
    select = "SELECT m.device FROM machines m JOIN limits l ON l.room = m.room EMIT ON ENTER BY m.device"
    reasons = [None, "it meets no row of the tables that it is joined with", "the event before it was a match too"]
    assert reasons == [row.why for row in evaluate(select, _STREAM, rows, tables=[limits])]


def test_a_digest_has_the_edges_of_its_time() -> None:
    """Edges wait for their tick as matches do."""
    rows = [{"device": "a", "temp": temp} for temp in (80, 91, 95, 80, 91)]
    select = "SELECT temp, _edge FROM machines WHERE temp > 90 EMIT ON ENTER OR EXIT BY device EVERY '1 hour'"
    [digest] = digests(select, _STREAM, rows)
    assert [(91, "enter"), (80, "exit"), (91, "enter")] == [(row["temp"], row["_edge"]) for row in digest["rows"]]


def test_a_query_that_the_gateway_refuses_is_refused() -> None:
    """VIRTUAL has no edges."""
    select = "SELECT temp FROM machines WHERE temp > 90 EMIT ON ENTER BY device DO PUBLISH VIRTUAL"
    with pytest.raises(InputError, match="VIRTUAL"):
        evaluate(select, _STREAM, [])


_WINDOW = "WINDOW w AS (PARTITION BY device ORDER BY _offset ROWS 2 PRECEDING)"


@given(
    _ROWS,
    st.sampled_from([["device"], ["device", "room"]]),
    st.sampled_from([*_WHERE, ""]),
    st.sampled_from([None, "a"]),
)
def test_edges_over_frames_are_those_of_a_fold(
    rows: list[tuple[int, dict[str, Any]]], by: list[str], where: str, device: str | None
) -> None:
    """An event is a match if WHERE and QUALIFY are TRUE; with other conditions, its frames hold no row."""
    frames: dict[tuple[Any, ...], int] = {}
    was: dict[tuple[Any, ...], bool] = {}
    edges: list[tuple[str, int | None] | None] = []
    for partition, row in rows:
        frame, key = (partition, row["device"]), (partition, *(row[name] for name in by))
        passes = (not where or _WHERE[where](row)) and device in (None, row["device"])
        if passes:
            frames[frame] = min(frames.get(frame, 0) + 1, 3)
        now = passes and frames[frame] > 1
        edge = {(False, True): "enter", (True, False): "exit"}.get((was.get(key, False), now))
        edges.append(None if edge is None else (edge, frames[frame] if passes else None))
        was[key] = now
    conditions = [each for each in (f"({where})" if where else "", f"device = '{device}'" if device else "") if each]
    query = (
        f"SELECT count(*) OVER w AS n, _edge FROM machines {'WHERE' if conditions else ''} {' AND '.join(conditions)} "
        f"QUALIFY n > 1 {_WINDOW} EMIT ON ENTER OR EXIT BY {', '.join(by)}"
    )
    outcomes = evaluate(query, _STREAM, [Record(row, partition=partition) for partition, row in rows])
    assert edges == [row.result and (row.result["_edge"], row.result["n"]) for row in outcomes]
    assert [edge is None for edge in edges] == [row.why is not None for row in outcomes]


def test_edges_over_frames_in_a_digest() -> None:
    """A digest has the edges as its rows."""
    rows = [{"device": "a", "temp": temp} for temp in (91, 92, 80, 93, 94, 95)]
    select = f"SELECT temp, count(*) OVER w AS n FROM machines WHERE temp > 90 QUALIFY n > 1 {_WINDOW}"
    [digest] = digests(f"{select} EMIT ON ENTER BY device EVERY '1 hour'", _STREAM, rows)
    assert [(92, 2), (93, 3)] == [(row["temp"], row["n"]) for row in digest["rows"]]


@given(_ROWS, st.sampled_from([*_WHERE]), st.sampled_from([*_WHERE, ""]), st.sampled_from(["", "UNTIL room IS NULL"]))
def test_edges_over_a_view_are_those_of_the_events_that_it_keeps(
    rows: list[tuple[int, dict[str, Any]]], kept: str, where: str, until: str
) -> None:
    """An event that the view leaves out changes nothing, and has no result."""
    view = f"(SELECT device, room, temp FROM machines WHERE {kept}) v"
    end = f"{'WHERE ' if where else ''}{where} EMIT ON ENTER OR EXIT BY device {until}"
    found = evaluate(
        f"SELECT temp, _edge FROM {view} {end}", _STREAM, [Record(row, partition=partition) for partition, row in rows]
    )
    own = [(partition, row) for partition, row in rows if _WHERE[kept](row)]
    alone = evaluate(
        f"SELECT temp, _edge FROM machines {end}", _STREAM, [Record(row, partition=partition) for partition, row in own]
    )
    expected = iter(alone)
    assert [next(expected).result if _WHERE[kept](row) else None for _, row in rows] == [row.result for row in found]
