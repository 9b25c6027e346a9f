"""Keys that enter and stay in for an interval, against a fold of single events for each query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grouping.model.errors import InternalError
from grouping.model.expression import Call, Column, Value
from grouping.plan.group import GroupPlan
from grouping.plan.lasting import Height, LastingMatches
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
StayRow = tuple[int, int, str]
"""The end of the interval in seconds, the offset of the entering event, and the destination."""


class Asked(NamedTuple):
    """A query of a group."""

    constant: Any
    key: str
    since: int
    start: int | None


class Form(NamedTuple):
    """The condition of a group: a comparison of a column with a constant, one of the key, and one below."""

    column: str
    op: str
    """"" for a group without the comparison of the column."""
    keyed: bool
    below: bool


FORMS = st.builds(
    Form, st.sampled_from([*TYPES]), st.sampled_from([">", ">=", "<", "<=", ""]), st.booleans(), st.booleans()
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


def queries_of(column: str) -> st.SearchStrategy[list[Asked]]:
    """Return queries."""
    asked = st.builds(
        Asked,
        st.sampled_from(VALUES[column]),
        st.sampled_from(["a", "b"]),
        st.sampled_from([0, 0, 2, 5, 9, 14]),
        st.sampled_from([None, None, 40]),
    )
    return st.lists(asked, min_size=1, max_size=6)


def tables_of(form: Form, queries: Sequence[Asked], *, single: bool) -> Snapshot:
    """Return the tables of a group; `single` gives each part an index of its own."""
    kind = TYPES[form.column]
    where = [compare("k", "=", "STRING", 0)] if form.keyed else []
    where += [compare(form.column, form.op, kind, int(form.keyed))] if form.op else []
    store = Store()
    store.known_plans["g_1"] = GroupPlan("g_1", "s", "", tuple(where))  # type: ignore[arg-type]
    types = (*(["STRING"] if form.keyed else []), *([kind] if form.op else []))
    entries = [
        entry(
            number,
            types,
            (*([query.key] if form.keyed else []), *([read(form.column, query.constant)] if form.op else [])),
            edge="enter",
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
    node = LastingMatches.of([K], INTERVAL * 1000, height, (TRUE,) if form.below else ())
    begins = [part.rows.begins for table in tables.tables for part in table.parts if part.rows.begins is not None]
    return LastingOperator(
        node, "j_1", (K, column), EventClock(DELAY * 1000), begins=tuple(begins), kept_ms=KEPT * 1000
    )


def expected(form: Form, queries: Sequence[Asked], rows: Sequence[Row], marks: dict[int, int]) -> list[StayRow]:
    """Fold one event at a time, for one query after the other; marks stand before the events with their offsets."""
    return sorted(stay for name, query in enumerate(queries) for stay in _stays(form, name, query, rows, marks))


def _stays(form: Form, name: int, query: Asked, rows: Sequence[Row], marks: dict[int, int]) -> list[StayRow]:
    watermark, before, waiting, reported = -(10**9), dict[Any, tuple[bool, int]](), list[list[Any]](), list[StayRow]()

    def close() -> None:
        for each in [each for each in waiting if each[1] + INTERVAL < watermark]:
            waiting.remove(each)
            end = each[1] + INTERVAL
            if each[3] and (query.start is None or end >= query.start):
                reported.append((end, each[0], destination(name)))

    for offset, row in enumerate(rows):
        if offset in marks:
            watermark = max(watermark, marks[offset])
            close()
        at, key = row["at"], row["k"]
        is_late, watermark = at < watermark, max(watermark, at - DELAY)
        close()
        if is_late or offset < query.since:
            continue
        is_match = not form.op or holds(form.op, read(form.column, row[form.column]), read(form.column, query.constant))
        is_match = is_match and not (form.keyed and key != query.key) and not (form.below and row["b"] is not True)
        for each in waiting:
            if each[2] == key and at <= each[1] + INTERVAL and not is_match:
                each[3] = False
        was, when = before.get(key, (False, at))
        if is_match and not (was and at - when <= KEPT):
            waiting.append([offset, at, key, True])
        before[key] = is_match, at
    return reported


def results(tables: Snapshot, rows: LastingRows, limit: int) -> list[StayRow]:
    """Return the results of rows."""
    assert rows.count == 0 or (np.diff(rows.positions) > 0).all()
    assert rows.column("_edge").to_pylist() == ["enter"] * rows.count
    found = []
    for matches in lasting_matches(tables, rows, limit):
        event, ids = matches.event, ["d_" + each.hex() for each in matches.destination.to_pylist()]
        found += zip((rows.time_ms[event] // 1000).tolist(), rows.causes[event].tolist(), ids, strict=True)
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


@settings(max_examples=200, deadline=None)
@given(FORMS, st.data(), CUTS, MARKS, st.sampled_from(["", "snapshot", "changes"]), st.sampled_from([1, 4_000_000]))
def test_any_cutting_makes_the_same_results(
    form: Form, data: st.DataObject, cuts: list[int], marks: dict[int, int], stored: str, limit: int
) -> None:
    """Steps of any size tell what a fold over single events tells, with the state kept as it is or as bytes."""
    rows, queries = data.draw(rows_of(form.column)), data.draw(queries_of(form.column))
    marks = {offset: watermark for offset, watermark in marks.items() if offset < len(rows)}
    tables = tables_of(form, queries, single=data.draw(st.booleans()))
    one = operator_of(form, tables)
    _, found = run(one, PendingRises(), tables, rows, cuts, marks, limit=limit, stored=stored)
    assert sorted(found) == expected(form, queries, rows, marks)


@settings(max_examples=100, deadline=None)
@given(FORMS, st.data(), st.integers(0, 20), CUTS, MARKS)
def test_an_undone_task_leaves_no_trace(
    form: Form, data: st.DataObject, split: int, cuts: list[int], marks: dict[int, int]
) -> None:
    """A task that is carried out again tells the same, and so does one after a fold of all that came before."""
    rows, queries = data.draw(rows_of(form.column)), data.draw(queries_of(form.column))
    marks = {offset: watermark for offset, watermark in marks.items() if offset < len(rows)}
    tables, split = tables_of(form, queries, single=False), min(split, len(rows))
    one, wanted = operator_of(form, tables), expected(form, queries, rows, marks)
    early = {at: mark for at, mark in marks.items() if at < split}
    state, earlier = run(one, PendingRises(), tables, rows[:split], (), early)
    state.position = split
    state.begin()
    for again in ((), cuts):
        _, found = run(one, state, tables, rows[split:], again, marks, split)
        assert sorted(earlier + found) == wanted
        state.undo()
    folded = PendingRises()
    known = sorted(early)
    folded.marks = np.array(known, np.int64), np.array([early[at] * 1000 for at in known], np.int64)
    for begin in range(0, split, 7):
        one.fold(folded, timed_events(STREAM, rows[:split][begin : begin + 7], begin))
        folded.position = min(begin + 7, split)
    assert (folded.watermark, folded.rows, folded.late) == (state.watermark, state.rows, state.late)
    _, found = run(one, folded, tables, rows[split:], cuts, marks, split)
    assert sorted(earlier + found) == wanted


def _hot(*rows: tuple[str, float, int]) -> list[Row]:
    return [{"k": key, "p": value, "at": at} for key, value, at in rows]


HOT = Form("p", ">", keyed=False, below=False)


def test_a_rise_meets_the_constants_between_two_values() -> None:
    """The lowest value of the interval decides for how many of a hundred thresholds a key has stayed in."""
    queries = [Asked(float(at), "", 0, None) for at in range(100)]
    tables = tables_of(HOT, queries, single=True)
    rows = _hot(("a", 20.5, 0), ("a", 50.5, 1), ("a", 40.5, 5), ("a", 70.5, 11), ("b", 0.0, 60))
    _, found = run(operator_of(HOT, tables), PendingRises(), tables, rows, (), {})
    counts = {offset: sum(each[1] == offset for each in found) for offset in range(5)}
    assert counts == {0: 21, 1: 20, 2: 0, 3: 30, 4: 0}


def test_the_end_of_the_interval_counts() -> None:
    """An event at the end of the interval ends the stay; a watermark that stands there tells nothing yet."""
    tables = tables_of(HOT, [Asked(1.0, "", 0, None)], single=False)
    one = operator_of(HOT, tables)
    for low, stays in ((10, []), (11, [(10, 0, destination(0))])):
        rows = _hot(("a", 2.0, 0), ("b", 0.0, 12), ("a", 0.0, low), ("b", 0.0, 90))
        _, found = run(one, PendingRises(), tables, rows, (2,), {})
        assert found == stays


def test_rises_and_keys_without_matches_leave_the_state() -> None:
    """Old matches without a rise leave the state, and the memory of their keys goes; in a fold of the log, too."""
    tables = tables_of(HOT, [Asked(1.0, "", 0, None)], single=False)
    one, state, folded = operator_of(HOT, tables), PendingRises(), PendingRises()
    for first in range(0, 40_000, 4_000):
        rows = _hot(*((f"k{first + place}", 2.0, first) for place in range(4_000)))
        _, _ = one.step(state, timed_events(STREAM, rows, first))
        state.position = first + 4_000
        state.begin()
        one.fold(folded, timed_events(STREAM, rows, first))
    assert folded.count <= 8_000
    assert state.rows <= 12_000  # 4,000 rises that wait, and the last matches of two steps
    assert state.count <= 8_000
    assert state.nbytes < 3_000_000


def test_a_value_that_wavers_keeps_few_rises() -> None:
    """Rises that no constant can have any more leave the state at once."""
    tables = tables_of(HOT, [Asked(1.0, "", 0, None)], single=False)
    one, state = operator_of(HOT, tables), PendingRises()
    values = np.random.default_rng(7).normal(size=2_000)
    rows = _hot(*(("a", float(value), 0) for value in values))
    one.step(state, timed_events(STREAM, rows, 0))
    assert state.rows <= 20


def test_a_torn_state_is_not_used() -> None:
    """A state after a change that failed midway makes no rows."""
    state = PendingRises()
    state.torn = True
    with pytest.raises(InternalError):
        operator_of(HOT, tables_of(HOT, [Asked(1.0, "", 0, None)], single=False)).step(
            state, timed_events(STREAM, [], 0)
        )


def test_other_bytes_are_no_state() -> None:
    """A snapshot of another version or a torn one is refused."""
    stored = PendingRises().stored()
    for broken in (b"lasting 2\n" + stored[10:], stored[:-1], b""):
        with pytest.raises(ValueError, match="no whole snapshot"):
            PendingRises.restored(broken)
