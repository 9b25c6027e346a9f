"""UNTIL with conditions of any form: the computation decides them, with their constants."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.testing import InputError, Record, Stream, Table, digests, evaluate
from grouping.compiler.compiler import compile_select
from grouping.model.catalog import Catalog
from tests.unit.matching.event_batches import stream

_STREAM = Stream("machines (device STRING, room STRING, temp DOUBLE, PARTITION KEY (device))")
_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
_Row = dict[str, Any]
_Test = Callable[[_Row], bool]
_ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "device": st.sampled_from(["a", "b"]),
            "room": st.sampled_from(["hall", "yard", None]),
            "temp": st.sampled_from([None, 50.0, 79.0, 85.0, 91.0, 95.0]),
        }
    ),
    max_size=20,
)
_CONDITIONS: tuple[tuple[str, _Test], ...] = (
    ("room = 'hall'", lambda row: row["room"] == "hall"),
    ("room = 'yard' AND temp < 80", lambda row: row["room"] == "yard" and (row["temp"] or 99) < 80),
    ("temp > 90", lambda row: (row["temp"] or 0) > 90),
    ("temp < 80 OR room IS NULL", lambda row: (row["temp"] or 99) < 80 or row["room"] is None),
    ("room LIKE 'h%' AND temp IN (91, 95)", lambda row: row["room"] == "hall" and row["temp"] in (91, 95)),
)


def _edges(where: _Test, until: _Test, rows: list[_Row]) -> list[str | None]:
    """Fold one row at a time."""
    inside: dict[str, bool] = {}
    found: list[str | None] = []
    for row in rows:
        was = inside.get(row["device"], False)
        now = not until(row) if was else where(row) and not until(row)
        inside[row["device"]] = now
        found.append(None if now == was else "enter" if now else "exit")
    return found


@settings(max_examples=40, deadline=None)
@given(_ROWS, st.sampled_from(_CONDITIONS), st.sampled_from(_CONDITIONS))
def test_edges_are_those_of_single_rows(rows: list[_Row], begin: tuple[str, _Test], end: tuple[str, _Test]) -> None:
    """An event for which both conditions are TRUE ends a stay, and begins none."""
    query = f"SELECT device FROM machines WHERE {begin[0]} EMIT ON ENTER OR EXIT BY device UNTIL {end[0]}"
    assert _edges(begin[1], end[1], rows) == [row.edge for row in evaluate(query, _STREAM, rows)]


@settings(max_examples=40, deadline=None)
@given(_ROWS, st.sampled_from(["ENTER", "EXIT", "ENTER OR EXIT"]), st.sampled_from(["", "FOR '3 minutes'"]))
def test_both_forms_of_bounds_agree(rows: list[_Row], edges: str, lasting: str) -> None:
    """`temp + 0` is no column, so the computation decides; the results are those of the group's bounds."""
    records = [Record(row, time=_BEGIN + timedelta(minutes=place), partition=0) for place, row in enumerate(rows)]
    outcomes = []
    for column in ("temp", "temp + 0"):
        query = (
            f"SELECT device FROM machines WHERE device = 'a' AND {column} > 90 "
            f"EMIT ON {edges} BY device {lasting} UNTIL {column} < 80"
        )
        outcomes.append([(row.edge, row.result) for row in evaluate(query, _STREAM, records)])
    assert outcomes[0] == outcomes[1]


def test_a_digest_and_a_join_have_such_edges() -> None:
    """The conditions may read columns of a joined table; a row that is no edge says why."""
    rooms = Table("rooms (room STRING PRIMARY KEY, kind STRING)", [{"room": "hall", "kind": "dry"}])
    select = (
        "SELECT m.device, _edge FROM machines m JOIN rooms r ON r.room = m.room "
        "WHERE r.kind = 'dry' AND m.temp > 90 EMIT ON ENTER OR EXIT BY device UNTIL r.kind = 'wet' OR m.temp = 50"
    )
    rows = [{"device": "a", "room": "hall", "temp": temp} for temp in (95, 60, 99, 50, 60, 95)]
    outcomes = evaluate(select, _STREAM, rows, tables=[rooms])
    assert ["enter", None, None, "exit", None, "enter"] == [row.edge for row in outcomes]
    assert "temp > 90.0 is FALSE, and no key leaves with it" == outcomes[4].why
    [digest] = digests(f"{select} EVERY '1 hour'", _STREAM, rows, tables=[rooms])
    assert ["enter", "exit", "enter"] == [row["_edge"] for row in digest["rows"]]


_NESTED = Stream(
    "CREATE STREAM nested (device STRING, temp DOUBLE, PARTITION KEY (device)) "
    "WITH (topic = 'nested', format = 'json', explode = '$.many')"
)


@settings(max_examples=60, deadline=None)
@given(rows=_ROWS, sizes=st.lists(st.integers(1, 4), min_size=20, max_size=20))
def test_elements_of_a_record_come_one_after_the_other(rows: list[_Row], sizes: list[int]) -> None:
    """The edges are those of the same elements as records of their own."""
    select = "SELECT device, temp, _edge FROM {} WHERE temp > 90 EMIT ON ENTER OR EXIT BY device UNTIL temp < 80"
    begins = [0, *accumulate(sizes)]
    records = [
        {"many": some} for begin, size in zip(begins, sizes, strict=False) if (some := rows[begin : begin + size])
    ]
    nested = evaluate(select.format("nested"), _NESTED, records)
    alone = evaluate(select.format("machines"), _STREAM, rows)
    assert [each for row in nested for each in row.results] == [row.result for row in alone if row.result]


def test_an_interval_of_elements_is_refused() -> None:
    """FOR orders the events of a key by their offsets, which elements of a record have in common."""
    with pytest.raises(InputError, match="explode"):
        evaluate("SELECT device FROM nested WHERE temp > 90 EMIT ON ENTER BY device FOR '5 minutes'", _NESTED, [])


_WINDOW = "WINDOW w AS (PARTITION BY device ORDER BY _offset ROWS 2 PRECEDING)"
_FRAMED: tuple[tuple[str, _Test], ...] = (
    ("n > 1", lambda row: row["n"] is not None and row["n"] > 1),
    ("n < 2", lambda row: row["n"] is not None and row["n"] < 2),
    ("hot >= 2", lambda row: row["hot"] is not None and row["hot"] >= 2),
    ("hot < 2", lambda row: row["hot"] is not None and row["hot"] < 2),
    ("s > 170 AND device = 'a'", lambda row: (row["s"] or 0) > 170 and row["device"] == "a"),
    ("s < 170", lambda row: row["s"] is not None and row["s"] < 170),
    ("n > 1 OR room IS NULL", lambda row: row["room"] is None or (row["n"] or 0) > 1),
    ("(temp > 60 OR n > 1)", lambda row: (row["temp"] or 0) > 60 or (row["n"] or 0) > 1),
    ("temp > 90", lambda row: (row["temp"] or 0) > 90),
    ("temp < 80", lambda row: row["temp"] is not None and row["temp"] < 80),
    ("n IS NULL OR temp = 50", lambda row: row["n"] is None or row["temp"] == 50),
)


@settings(max_examples=120, deadline=None)
@given(
    _ROWS,
    st.sampled_from(
        [
            ("", lambda row: True),
            ("WHERE temp > 60", lambda row: (row["temp"] or 0) > 60),
            ("WHERE room = 'hall'", lambda row: row["room"] == "hall"),
        ]
    ),
    st.sampled_from(_FRAMED),
    st.sampled_from(_FRAMED),
    st.sampled_from(["", ", room"]),
)
def test_until_over_frames_is_that_of_a_fold(
    rows: list[_Row], where: tuple[str, _Test], begin: tuple[str, _Test], end: tuple[str, _Test], by: str
) -> None:
    """QUALIFY lets a key enter, for events that WHERE lets through; UNTIL lets it leave, for any event."""
    kept: dict[str, list[_Row]] = {}
    inside: dict[tuple[Any, ...], bool] = {}
    edges: list[str | None] = []
    for row in rows:
        passes, frame = where[1](row), kept.setdefault(row["device"], [])
        frame += [row] * passes
        temps = [each["temp"] for each in frame[-3:] if each["temp"] is not None]
        values = {"n": len(frame[-3:]), "hot": sum(each > 90 for each in temps), "s": sum(temps) if temps else None}
        framed = row | (values if passes else dict.fromkeys(values))
        key = (row["device"], *([row["room"]] if by else []))
        was = inside.get(key, False)
        now = not end[1](framed) if was else passes and begin[1](framed) and not end[1](framed)
        inside[key] = now
        edges.append(None if now == was else "enter" if now else "exit")
    query = (
        "SELECT count(*) OVER w AS n, count(*) FILTER (WHERE temp > 90) OVER w AS hot, sum(temp) OVER w AS s "
        f"FROM machines {where[0]} QUALIFY {begin[0]} {_WINDOW} EMIT ON ENTER OR EXIT BY device{by} UNTIL {end[0]}"
    )
    assert edges == [row.edge for row in evaluate(query, _STREAM, [Record(row, partition=0) for row in rows])]


def test_opposite_bounds_of_a_window_function_are_lifted() -> None:
    """Queries that differ only in these constants are one group; other conditions are part of the computation."""
    columns = ("device STRING", "room STRING", "temp DOUBLE")
    catalog, groups = Catalog([replace(stream(*columns), name="machines", partition_key=("device",))]), {}
    for begin, end in (("n > 5", "n < 2"), ("n > 7", "n < 3"), ("n > 5", "temp < 2"), ("n > 5", "temp < 3")):
        query = f"SELECT device, count(*) OVER w AS n FROM machines WHERE temp > 60 QUALIFY {begin} {_WINDOW}"
        plan = compile_select(f"{query} EMIT ON ENTER BY device UNTIL {end}", catalog).plan
        groups[begin, end] = plan.group_id, plan.signature
    first, second, third, fourth = groups.values()
    assert first == second
    assert first[1].endswith(
        "QUALIFY count(*) OVER (ROWS 2 PRECEDING) > :c0 EMIT BY device UNTIL count(*) OVER (ROWS 2 PRECEDING) < :c1"
    )
    assert third[0] != fourth[0] and third[1] == fourth[1]
    assert third[1].endswith("QUALIFY count(*) OVER (ROWS 2 PRECEDING) > ? EMIT BY device UNTIL temp < ?")


def test_a_signature_has_no_literal_of_a_window_function() -> None:
    """The bounds of UNTIL are shown like the conditions of QUALIFY."""
    columns = ("device STRING", "room STRING", "temp DOUBLE")
    catalog = Catalog([replace(stream(*columns), name="machines", partition_key=("device",))])
    query = (
        f"SELECT count(*) FILTER (WHERE room = 'zz9') OVER w AS n FROM machines QUALIFY n > 8 {_WINDOW} EMIT ON ENTER"
    )
    for end in ("UNTIL n < 1", "UNTIL n < 1 OR temp > 3", "FOR '1 minute' UNTIL n < 1"):
        assert "zz9" not in compile_select(f"{query} BY device {end}", catalog).plan.signature


def test_queries_share_no_computation_if_one_reads_a_column_named_as_the_edge() -> None:
    """A declared column `_edge` is a column like any other."""
    made = replace(stream("device STRING", "_edge STRING"), name="machines", partition_key=("device",))
    framed = f"FROM machines QUALIFY count(*) OVER w > 1 {_WINDOW}"
    for emit in ("ON SILENCE '1 minute' BY device", "ON ENTER BY device FOR '1 minute'"):
        texts = (f"SELECT {items} {framed} EMIT {emit}" for items in ("device", "device, _edge"))
        one, other = (compile_select(text, Catalog([made])).plan.computation_id for text in texts)
        assert one != other


def test_constants_that_overlap_over_frames_are_refused() -> None:
    """As without window functions, no value may make both conditions TRUE."""
    query = f"SELECT count(*) OVER w AS n FROM machines QUALIFY n > 2 {_WINDOW} EMIT ON ENTER BY device UNTIL n < 5"
    with pytest.raises(InputError, match="TRUE together"):
        evaluate(query, _STREAM, [])
