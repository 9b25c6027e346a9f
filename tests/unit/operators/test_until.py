"""Edges with UNTIL, against a fold of single events."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from grouping.model.expression import Column, Expression
from grouping.model.query import Edge
from grouping.plan.group import GroupPlan
from grouping.plan.row_before import RowBefore
from grouping.plan.stay import Stay, StayBound
from spark_jobs.engine.constants.constant_cache import ConstantTables, Snapshot
from spark_jobs.engine.constants.load import Loads
from spark_jobs.engine.decode.decode import decode
from spark_jobs.engine.match.edges import edge_candidates, edge_matches
from spark_jobs.engine.operators.row_before.last_rows import LastRows
from spark_jobs.engine.operators.row_before.operator import RowBeforeOperator
from tests.unit.matching.event_batches import SETTINGS, TIME_MS, batch, stream
from tests.unit.matching.matching import Store, compare, destination, entry, holds
from tests.unit.operators.cutting import pieces

STREAM = stream("k STRING", "p DOUBLE", "n BIGINT", "f FLOAT", "d DATE", "t TIMESTAMP")
BY = (Column("k", "STRING"),)
Row = dict[str, Any]
_TIMES = [f"2026-01-0{day}" for day in range(1, 8)]
_VALUES: dict[str, list[Any]] = {
    "p": [-1.5, -0.0, 0.0, 0.5, 1.0, 2.0, 1e300],
    "n": [-(2**63), -1, 0, 1, 2, 2**53, 2**53 + 1],
    "f": [-1.5, -0.0, 0.5, 1.0, 2.0],
    "d": _TIMES,
    "t": [f"{day}T00:00:00Z" for day in _TIMES],
}
_TYPES = {"p": "DOUBLE", "n": "BIGINT", "f": "FLOAT", "d": "DATE", "t": "TIMESTAMP"}
FORMS = [(">", "<"), (">", "<="), (">=", "<"), ("<", ">"), ("<=", ">")]


class Asked(NamedTuple):
    """A query of a group."""

    begin: Any
    end: Any
    key: str
    edge: Edge
    since: int
    start: int | None


def tables_of(column: str, ops: tuple[str, str], queries: list[Asked], *, keyed: str) -> Snapshot:
    """Return the tables of a group; with `keyed`, an operator, the key is compared with a constant too."""
    kind, own = _TYPES[column], int(bool(keyed))
    constant = {"f": "DOUBLE"}.get(column, kind)
    bounds = [StayBound(op, Column(column, kind), slot + own) for slot, op in enumerate(ops)]
    where: list[Expression] = [compare("k", keyed, "STRING", 0)] if keyed else []
    store = Store()
    plan = GroupPlan("g_1", "s", "", (*where, bounds[0].conjunct), stay=Stay(*bounds))  # type: ignore[arg-type]
    store.known_plans["g_1"] = plan
    types = (*(["STRING"] if keyed else []), constant, constant)
    entries = [
        entry(
            number,
            types,
            (*([query.key] if keyed else []), read(column, query.begin), read(column, query.end)),
            edge=query.edge,
            since=(7, 7, 7, query.since),
            window=(query.start, None),
        )
        for number, query in enumerate(queries)
    ]
    return ConstantTables("s").at(store.commit((), entries), store)  # type: ignore[arg-type]


def read(column: str, value: Any) -> Any:
    """Return a JSON value as a constant."""
    if value is None or column in "nf":
        return value
    return float(value) if column == "p" else np.datetime64(value.removesuffix("Z")).astype("M8[us]").item()


def expected(column: str, ops: tuple[str, str], queries: list[Asked], rows: list[Row], *, keyed: str) -> Any:
    """Fold one event at a time, for one query after the other."""
    found = []
    for name, query in enumerate(queries):
        inside: dict[Any, bool] = {}
        begin, end = read(column, query.begin), read(column, query.end)
        for offset, row in enumerate(rows):
            if offset < query.since:
                continue
            value, was = read(column, row[column]), inside.get(row["k"], False)
            enters = holds(ops[0], value, begin) and (not keyed or holds(keyed, row["k"], query.key))
            now = not holds(ops[1], value, end) if was else enters
            inside[row["k"]] = now
            if now == was or (query.start is not None and TIME_MS + offset < query.start):
                continue
            if query.edge in ("both", "enter" if now else "exit"):
                found.append((offset, destination(name), "enter" if now else "exit"))
    return sorted(found)


def results(tables: Snapshot, steps: list[list[Row]], limit: int, *, restored: bool) -> list[tuple[int, str, str]]:
    """Return the edges of all steps; each step is evaluated twice."""
    operator, state = (
        RowBeforeOperator.of(STREAM, RowBefore(BY), [table.shape.plan for table in tables.tables], 30),
        LastRows(),
    )
    found: list[tuple[int, str, str]] = []
    first = 0
    for rows in steps:
        records = batch([json.dumps(row).encode() for row in [{}] * first + rows], first=0).slice(first)
        events, _ = decode(records, STREAM, SETTINGS)
        earlier = state.stored()
        for again in (False, True):
            if again:
                state.undo()
            state.begin()
            _, [before] = operator.step(state, events)
            inside = set(edge_candidates(tables, events, before).tolist())
            made = []
            for source, matches in edge_matches(tables, events, before, limit=limit, loads=Loads()):
                ids = ["d_" + each.hex() for each in matches.destination.to_pylist()]
                offsets, edges = source.offsets[matches.event], source.column("_edge").to_numpy(False)[matches.event]
                made += zip(offsets.tolist(), ids, edges.tolist(), strict=True)
                assert {offset - first for offset in offsets.tolist()} <= inside
        if restored:
            changes, state = state.changes(), LastRows.restored(earlier)
            assert state.put_changes(changes)
        found += made
        first += len(rows)
    return found


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from([*_TYPES]),
    st.sampled_from(FORMS),
    st.data(),
    st.sampled_from(["", "=", ">="]),
    st.booleans(),
    st.lists(st.integers(0, 24), max_size=4),
    st.sampled_from([1, 5, 4_000_000]),
)
def test_edges_are_those_of_single_events(
    column: str, ops: tuple[str, str], data: st.DataObject, keyed: str, restored: bool, cuts: list[int], limit: int
) -> None:
    """Any cutting, repeated steps and restored states give the edges of a fold of single events."""
    values = _VALUES[column]
    own = st.sampled_from([*values, None])
    rows = data.draw(
        st.lists(st.fixed_dictionaries({"k": st.sampled_from(["a", "b", None]), column: own}), max_size=24)
    )
    constant = st.sampled_from(values)
    pairs = st.tuples(constant, constant).filter(lambda pair: _apart(column, ops, *pair))
    queries = data.draw(
        st.lists(
            st.builds(
                lambda pair, *rest: Asked(*pair, *rest),
                pairs,
                st.sampled_from(["a", "b"]),
                st.sampled_from(["enter", "exit", "both"]),
                st.sampled_from([0, 2, 5, 9]),
                st.sampled_from([None, TIME_MS + 2, TIME_MS + 5]),
            ),
            min_size=1,
            max_size=6,
        )
    )
    tables = tables_of(column, ops, queries, keyed=keyed)
    made = results(tables, pieces(rows, cuts), limit, restored=restored)
    assert sorted(made) == expected(column, ops, queries, rows, keyed=keyed)


def _apart(column: str, ops: tuple[str, str], begin: Any, end: Any) -> bool:
    """Tell whether no value makes both conditions TRUE."""
    one, other = read(column, begin), read(column, end)
    return bool(one >= other if ops[0].startswith(">") else one <= other)


def test_a_wavering_value_makes_no_edges() -> None:
    """A rising value enters for the thresholds in between, and a wavering value enters for none."""
    queries = [Asked(float(at), at - 10.0, "a", "both", 0, None) for at in range(100)]
    tables = tables_of("p", (">", "<"), queries, keyed="")
    rows = [{"k": "a", "p": value} for value in (50.5, 45.5, 49.0, 50.5, 38.5)]
    edges = results(tables, [rows], 4_000_000, restored=False)
    assert [(offset, edge) for offset, _, edge in sorted(edges)] == [(0, "enter")] * 51 + [(4, "exit")] * 2


def test_a_value_that_rises_for_long_is_kept_in_few_bytes() -> None:
    """A rising counter has one peak and one low after any number of events."""
    operator, state = RowBeforeOperator.of(STREAM, RowBefore(BY), [_counter()], 30), LastRows()
    sizes = []
    for first in (0, 500, 1000):
        rows = [{"k": "a", "n": place} for place in range(first, first + 500)]
        events, _ = decode(batch([json.dumps(row).encode() for row in rows], first=first), STREAM, SETTINGS)
        state.begin()
        operator.step(state, events)
        [name] = operator.extremes
        sizes.append(len(state.columns[name].take(np.array([0]))[0].as_py()))
    assert sizes == [48, 48, 48]


def _counter() -> GroupPlan:
    column = Column("n", "BIGINT")
    stay = Stay(StayBound(">", column, 0), StayBound("<", column, 1))
    return GroupPlan("g_1", "s", "", (stay.begin.conjunct,), stay=stay)  # type: ignore[arg-type]
