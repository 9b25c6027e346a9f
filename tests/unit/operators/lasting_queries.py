"""Queries with FOR over random rows, and the results by a fold of single events for each query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from grouping.model.expression import Call, Column, Value
from grouping.model.query import Edge
from grouping.plan.group import GroupPlan
from grouping.plan.lasting import Height, LastingMatches
from grouping.plan.stay import Stay, StayBound
from spark_jobs.engine.constants.constant_cache import ConstantTables, Snapshot
from spark_jobs.engine.match.lasting import lasting_matches
from spark_jobs.engine.operators.event_clock import EventClock
from spark_jobs.engine.operators.lasting.operator import LastingOperator
from spark_jobs.engine.operators.lasting.pending_rises import PendingRises
from spark_jobs.engine.rows.silent_rows import LastingRows
from tests.unit.matching.event_batches import stream
from tests.unit.matching.matching import Store, apart, compare, destination, entry, holds
from tests.unit.operators.cutting import pieces
from tests.unit.operators.timed_rows import timed_events

__all__ = [
    "CUTS",
    "FORMS",
    "MARKS",
    "STREAM",
    "Asked",
    "Form",
    "Row",
    "StayRow",
    "expected",
    "operator_of",
    "queries_of",
    "rows_of",
    "run",
    "tables_of",
]

STREAM = stream("k STRING", "p DOUBLE", "n BIGINT", "d DATE", "b BOOLEAN")
K, B = Column("k", "STRING"), Column("b", "BOOLEAN")
TRUE = Call("=", (B, Value(True, "BOOLEAN")), "BOOLEAN")
TYPES = {"p": "DOUBLE", "n": "BIGINT", "d": "DATE"}
VALUES: dict[str, list[Any]] = {
    "p": [-1.5, -0.0, 0.0, 0.5, 1.0, 2.0, 1e300],
    "n": [-(2**63), -1, 0, 1, 2, 2**53 + 1, 2**63 - 1],
    "d": [f"2026-01-0{day}" for day in range(1, 6)],
}
INTERVAL, DELAY, KEPT = 10, 2, 40
Row = dict[str, Any]
StayRow = tuple[int, int, str, str]
"""The time of the result in seconds, the offset of the event, the destination, and the edge."""


class Asked(NamedTuple):
    """A query of a group."""

    constant: Any
    key: str
    since: int
    start: int | None
    edge: Edge = "enter"
    end: Any = None
    """The constant of UNTIL."""


class Form(NamedTuple):
    """The condition of a group: a comparison of a column with a constant, one of the key, and one below."""

    column: str
    op: str
    """"" for a group without the comparison of the column."""
    keyed: bool
    below: bool
    until: str = ""
    """The operator of UNTIL; "" without UNTIL."""


FORMS = st.one_of(
    st.builds(
        Form,
        st.sampled_from([*TYPES]),
        st.sampled_from([">", ">=", "<", "<=", ""]),
        st.booleans(),
        st.booleans(),
        st.just(""),
    ),
    *(
        st.builds(Form, st.sampled_from([*TYPES]), st.just(op), st.booleans(), st.just(False), st.just(until))
        for op, until in ((">", "<"), (">", "<="), (">=", "<"), ("<", ">"), ("<=", ">"))
    ),
)
CUTS = st.lists(st.integers(0, 30), max_size=4)
MARKS = st.dictionaries(st.integers(0, 30), st.integers(0, 90), max_size=3)
"""By offset, the watermark in seconds that the clock sets before the event."""


def read(column: str, value: Any) -> Any:
    """Return a JSON value as a constant."""
    return np.datetime64(value).item() if column == "d" and value is not None else value


def rows_of(column: str) -> st.SearchStrategy[list[Row]]:
    """Return rows, the times of which go forth by steps and back a little."""
    row = st.fixed_dictionaries(
        {
            "k": st.sampled_from(["a", "b", None]),
            column: st.sampled_from([*VALUES[column], *VALUES[column], None]),
            "b": st.sampled_from([True, True, True, False, None]),
            "step": st.sampled_from([0, 0, 1, 2, 3, 9, 25]),
            "back": st.sampled_from([0, 0, 0, 1, 2, 3, 6]),
        }
    )

    def timed(rows: list[Row]) -> list[Row]:
        ends = np.cumsum([row["step"] for row in rows]).tolist()
        return [{**row, "at": 20 + end - row["back"]} for row, end in zip(rows, ends, strict=True)]

    return st.lists(row, max_size=30).map(timed)


def queries_of(form: Form) -> st.SearchStrategy[list[Asked]]:
    """Return queries; no value makes WHERE and UNTIL TRUE."""
    values, is_above = st.sampled_from(VALUES[form.column]), form.op.startswith(">")
    bounds = st.tuples(values, values).map(lambda pair: sorted(pair, reverse=is_above))
    asked = st.builds(
        lambda pair, *rest: Asked(pair[0], *rest, end=pair[1]),
        bounds,
        st.sampled_from(["a", "b"]),
        st.sampled_from([0, 0, 2, 5, 9, 14]),
        st.sampled_from([None, None, 40]),
        st.sampled_from(["enter", "exit", "both", "both"]),
    )
    return st.lists(asked, min_size=1, max_size=6)


def tables_of(form: Form, queries: Sequence[Asked], *, single: bool) -> Snapshot:
    """Return the tables of a group; `single` gives each part an index of its own."""
    kind = TYPES[form.column]
    where = [compare("k", "=", "STRING", 0)] if form.keyed else []
    where += [compare(form.column, form.op, kind, int(form.keyed))] if form.op else []
    store, stay = Store(), None
    if form.until:
        bounds = [
            StayBound(op, Column(form.column, kind), slot + form.keyed) for slot, op in enumerate((form.op, form.until))
        ]
        stay = Stay(*bounds)
    store.known_plans["g_1"] = GroupPlan("g_1", "s", "", tuple(where), stay=stay)  # type: ignore[arg-type]
    types = (*(["STRING"] if form.keyed else []), *([kind] if form.op else []), *([kind] if form.until else []))
    entries = [
        entry(
            number,
            types,
            (
                *([query.key] if form.keyed else []),
                *([read(form.column, query.constant)] if form.op else []),
                *([read(form.column, query.end)] if form.until else []),
            ),
            edge=query.edge,
            since=(7, 7, 7, query.since),
            window=(None if query.start is None else query.start * 1000, None),
        )
        for number, query in enumerate(queries)
    ]
    tables = ConstantTables("s").at(store.commit((), entries), store)  # type: ignore[arg-type]
    return apart(tables) if single else tables


def operator_of(form: Form, tables: Snapshot) -> LastingOperator:
    """Return the operator of a group."""
    column = Column(form.column, TYPES[form.column])
    height = Height(column, form.op.startswith(">")) if form.op else None
    node = LastingMatches.of([K], INTERVAL * 1000, height, (TRUE,) if form.below else (), until=bool(form.until))
    begins = [part.rows.begins for table in tables.tables for part in table.parts if part.rows.begins is not None]
    return LastingOperator(
        node, "j_1", (K, column), EventClock(DELAY * 1000), begins=tuple(begins), kept_ms=KEPT * 1000
    )


def expected(form: Form, queries: Sequence[Asked], rows: Sequence[Row], marks: dict[int, int]) -> list[StayRow]:
    """Fold one event at a time, for one query after the other; marks stand before the events with their offsets."""
    return sorted(stay for name, query in enumerate(queries) for stay in _stays(form, name, query, rows, marks))


class KeyStay(NamedTuple):
    """A stay of a key, from an event on."""

    offset: int
    at: int
    key: Any
    failed: list[bool]
    """Not empty once an event within the interval was no match."""


def _stays(form: Form, name: int, query: Asked, rows: Sequence[Row], marks: dict[int, int]) -> list[StayRow]:
    watermark, reported = -(10**9), list[StayRow]()
    before = dict[Any, tuple[bool, int, KeyStay | None]]()
    enters, exits = list[KeyStay](), list[tuple[int, int, KeyStay]]()
    """The enters that wait; and the exits, each with offset, time and stay."""

    def close() -> None:
        ended = [(each.at + INTERVAL, each.offset, "enter", each) for each in enters if each.at + INTERVAL < watermark]
        ended += [(at, offset, "exit", stay) for offset, at, stay in exits if at < watermark]
        enters[:] = [each for each in enters if each.at + INTERVAL >= watermark]
        exits[:] = [each for each in exits if each[1] >= watermark]
        for at, offset, edge, stay in ended:
            if not stay.failed and query.edge in ("both", edge) and (query.start is None or at >= query.start):
                reported.append((at, offset, destination(name), edge))

    for offset, row in enumerate(rows):
        if offset in marks:
            watermark = max(watermark, marks[offset])
            close()
        at, key = row["at"], row["k"]
        is_late, watermark = at < watermark, max(watermark, at - DELAY)
        close()
        if is_late or offset < query.since:
            continue
        value = read(form.column, row[form.column])
        if form.until and value is None:
            continue
        is_match = not form.op or holds(form.op, value, read(form.column, query.constant))
        is_match = is_match and not (form.keyed and key != query.key) and not (form.below and row["b"] is not True)
        was, when, stay = before.get(key, (False, at, None))
        was = was and at - when <= KEPT
        if form.until:  # a key that is in stays in until the second condition is TRUE
            ends = holds(form.until, value, read(form.column, query.end)) and not (form.keyed and key != query.key)
            is_match = not ends if was else is_match
            for each in (*enters, *(stay for _, _, stay in exits)):
                if each.key == key and at <= each.at + INTERVAL and ends:
                    each.failed.append(True)
        for each in () if form.until else (*enters, *(stay for _, _, stay in exits)):
            if each.key == key and at <= each.at + INTERVAL and not is_match:
                each.failed.append(True)
        if is_match and not was:
            stay = KeyStay(offset, at, key, [])
            enters.append(stay)
        if was and not is_match:
            assert stay is not None
            if not stay.failed:
                exits.append((offset, at, stay))
        before[key] = is_match, at, stay
    return reported


def results(tables: Snapshot, rows: LastingRows, limit: int) -> list[StayRow]:
    """Return the results of rows."""
    assert (np.diff(rows.positions) >= 0).all()
    edges = rows.column("_edge").to_numpy(zero_copy_only=False)
    found = []
    for matches in lasting_matches(tables, rows, limit):
        event, ids = matches.event, ["d_" + each.hex() for each in matches.destination.to_pylist()]
        times, causes = (rows.time_ms[event] // 1000).tolist(), rows.causes[event].tolist()
        found += zip(times, causes, ids, edges[event].tolist(), strict=True)
    return found


def run(
    one: LastingOperator,
    state: PendingRises,
    tables: Snapshot,
    rows: Sequence[Row],
    cuts: Sequence[int],
    marks: dict[int, int],
    first: int = 0,
    *,
    limit: int = 4_000_000,
    stored: str = "",
) -> tuple[PendingRises, list[StayRow]]:
    """Take rows in by steps; marks make steps of their own.

    Args:
        one: The operator.
        state: The state before the rows.
        tables: The tables of the queries.
        rows: The rows.
        cuts: Where steps end.
        marks: By offset, the watermark that the clock sets before the event.
        first: The offset of the first row.
        limit: Candidate pairs in a slice.
        stored: How the state goes on between steps: ``snapshot`` or ``changes`` through bytes, else as it is.
    """
    found, begin = list[StayRow](), first
    for piece in pieces(list(rows), [*cuts, *(offset - first for offset in marks if offset >= first)]):
        state.position = begin
        earlier = state.stored()
        if stored:
            state.begin()
        marked = begin in marks
        if marked:
            made = one.rows(STREAM, 3, one.advance(state, marks[begin] * 1000))
            found += results(tables, made, limit)
        state, [step] = one.step(state, timed_events(STREAM, piece, begin))
        assert isinstance(step, LastingRows)
        found += results(tables, step, limit)
        begin += len(piece)
        state.position = begin
        if stored == "snapshot":
            state = one.restore(one.snapshot(state))
        if stored == "changes":
            changes, state = state.changes(), PendingRises.restored(earlier)
            assert state.put_changes(changes)
            one.advance(state, -(10**15), undoable=False)
    return state, found
