"""Edges by the look-ups of a row and of the row before, against an oracle that folds one event at a time."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grouping.model.expression import Call, Column, Expression, Value
from grouping.model.query import Edge
from grouping.store.constant_table import Entry
from spark_jobs.engine.constants.constant_cache import Snapshot
from spark_jobs.engine.constants.load import Loads
from spark_jobs.engine.decode.decode import decode
from spark_jobs.engine.match.crossings import Crossings
from spark_jobs.engine.match.edges import edge_candidates, edge_matches
from spark_jobs.engine.match.evaluate import looked_up
from spark_jobs.engine.match.key_source import KeySource
from spark_jobs.engine.match.table_lookup import TableLookup
from spark_jobs.engine.operators.row_before.last_rows import LastRows
from spark_jobs.engine.operators.row_before.operator import RowBeforeOperator, read_before
from spark_jobs.engine.rows.columns import PlacedColumns
from spark_jobs.engine.rows.event_column import EventColumns
from tests.unit.matching.event_batches import SETTINGS, TIME_MS, batch, stream
from tests.unit.matching.matching import apart, compare, destination, entry, holds, snapshot
from tests.unit.operators.cutting import pieces

STREAM = stream("k STRING", "p DOUBLE", "n INT", "s STRING")
BY = (Column("k", "STRING"),)
Row = dict[str, Any]
Result = tuple[int, str, str]
"""Offset, destination and edge."""


class Shape(NamedTuple):
    """A predicate: (column, operator, type of the constant) of each conjunct with a constant."""

    conjuncts: tuple[tuple[str, str, str, str], ...]
    filters: tuple[tuple[str, str, Any], ...] = ()
    """Conjuncts without constants, as (column, operator, value)."""


_PRICE = ("p", ">", "DOUBLE", "DOUBLE")
SHAPES = {
    "threshold": Shape((_PRICE,)),
    "at most": Shape((("p", "<=", "DOUBLE", "DOUBLE"),)),
    "key and threshold": Shape((("k", "=", "STRING", "STRING"), _PRICE)),
    "text": Shape((("s", "=", "STRING", "STRING"),)),
    "interval": Shape((_PRICE, ("p", "<", "DOUBLE", "DOUBLE"))),
    "two columns": Shape((_PRICE, ("n", "<", "INT", "INT"))),
    "set": Shape((("n", "in", "INT", "SET<INT>"),)),
    "threshold with a filter": Shape((_PRICE,), (("n", ">", 1),)),
    "no constant": Shape((), (("n", ">", 1),)),
    "everything": Shape(()),
}
_VALUES = {
    "DOUBLE": st.sampled_from([0.0, -0.0, 1.0, 2.0, 3.0]),
    "INT": st.sampled_from([0, 1, 2, 3]),
    "STRING": st.sampled_from(["a", "b", "c"]),
    "SET<INT>": st.sampled_from([(0, 1), (1, 2, 3)]),
}
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "k": st.sampled_from(["a", "b", None]),
            "p": st.sampled_from([0.0, 0.5, 1.0, 2.5, 9.0, None]),
            "n": st.sampled_from([0, 1, 2, 3, None]),
            "s": st.sampled_from(["a", "b", None]),
        }
    ),
    max_size=14,
)
CUTS = st.lists(st.integers(0, 14), max_size=3)


class Asked(NamedTuple):
    """A query of a group."""

    values: tuple[Any, ...]
    edge: Edge
    since: int
    window: tuple[int | None, int | None]


def asked(shape: Shape) -> st.SearchStrategy[list[Asked]]:
    """Return queries of a shape."""
    at = st.sampled_from([None, TIME_MS + 2, TIME_MS + 5])
    return st.lists(
        st.builds(
            Asked,
            st.tuples(*(_VALUES[kind] for *_, kind in shape.conjuncts)),
            st.sampled_from(["enter", "exit", "both"]),
            st.sampled_from([0, 2, 5, 9]),
            st.tuples(at, st.none()),
        ),
        min_size=1,
        max_size=6,
    )


def conjuncts(shape: Shape) -> tuple[Expression, ...]:
    """Return the predicate of a group."""
    types = {column.name: str(column.type) for column in STREAM.columns}
    plain = (Call(op, (Column(name, types[name]), Value(value, "INT")), "BOOLEAN") for name, op, value in shape.filters)
    return (*(compare(name, op, kind, slot) for slot, (name, op, kind, _) in enumerate(shape.conjuncts)), *plain)


def entries(shape: Shape, queries: list[Asked]) -> list[Entry]:
    """Return the entries of queries, in the order of their names."""
    types = tuple(kind for *_, kind in shape.conjuncts)
    return [
        entry(number, types, query.values, edge=query.edge, since=(7, 7, 7, query.since), window=query.window)
        for number, query in enumerate(queries)
    ]


def is_match(shape: Shape, values: tuple[Any, ...], row: Row) -> bool:
    """Tell whether a row is a match."""
    own = (holds(op, row[name], value) for (name, op, *_), value in zip(shape.conjuncts, values, strict=True))
    return all(own) and all(holds(op, row[name], value) for name, op, value in shape.filters)


def expected(shape: Shape, queries: list[Asked], rows: list[Row]) -> list[Result]:
    """Fold one event at a time, for one query after the other."""
    found = []
    for name, query in enumerate(queries):
        inside: dict[Any, bool] = {}
        for offset, row in enumerate(rows):
            if offset < query.since:
                continue
            now, before = is_match(shape, query.values, row), inside.get(row["k"], False)
            inside[row["k"]] = now
            start, _ = query.window
            if now == before or (start is not None and TIME_MS + offset < start):
                continue
            if query.edge in ("both", "enter" if now else "exit"):
                found.append((offset, destination(name), "enter" if now else "exit"))
    return sorted(found)


def results(tables: Snapshot, steps: list[list[Row]], limit: int) -> list[Result]:
    """Return the edges that the look-ups find, step by step."""
    one, state = RowBeforeOperator(BY, read_before(STREAM, [table.shape.plan for table in tables.tables])), LastRows()
    found: list[Result] = []
    first = 0
    for rows in steps:
        events, _ = decode(source(rows, first), STREAM, SETTINGS)
        _, [before] = one.step(state, events)
        inside = set(edge_candidates(tables, events, before).tolist())
        for made, matches in edge_matches(tables, events, before, limit=limit):
            ids = ["d_" + each.hex() for each in matches.destination.to_pylist()]
            offsets, edges = made.offsets[matches.event], made.column("_edge").to_numpy(False)[matches.event]
            found += zip(offsets.tolist(), ids, edges.tolist(), strict=True)
            assert {offset - first for offset in offsets.tolist()} <= inside
        first += len(rows)
    return found


def source(rows: list[Row], first: int) -> Any:
    """Return rows as records of partition 3, a millisecond apart from offset 0 on."""
    records = batch([json.dumps(row).encode() for row in [{}] * first + rows], first=0)
    return records.slice(first)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("own_index", [False, True], ids=["shared index", "own index"])
@settings(max_examples=40, deadline=None)
@given(st.data(), ROWS, CUTS, st.sampled_from([1, 5, 4_000_000]))
def test_edges_are_those_of_single_events(
    name: str, own_index: bool, data: st.DataObject, rows: list[Row], cuts: list[int], limit: int
) -> None:
    """Any cutting into batches, and slices of any size, have the edges that a fold of single events has."""
    shape = SHAPES[name]
    queries = data.draw(asked(shape))
    tables = snapshot(conjuncts(shape), entries(shape, queries))
    if own_index:
        tables = apart(tables)
    assert sorted(results(tables, pieces(rows, cuts), limit)) == expected(shape, queries, rows)


def test_only_the_thresholds_between_two_prices_are_met() -> None:
    """A row meets the thresholds that it crosses, of many, and those that began after the row before."""
    shape, count = SHAPES["threshold"], 3_000
    old = [entry(number, ("DOUBLE",), (float(number),), edge="both", since=(0,)) for number in range(count)]
    young = entry("young", ("DOUBLE",), (5.0,), edge="both", since=(0, 0, 0, 2))
    tables = apart(snapshot(conjuncts(shape), [*old, young]))
    one, state = RowBeforeOperator(BY, (Column("p", "DOUBLE"),)), LastRows()
    rows = [{"k": "a", "p": 1_500.5}, {"k": "b", "p": 7.5}, {"k": "a", "p": 1_502.5}, {"k": "b", "p": 6.5}]
    first, _ = decode(source(rows, 0).slice(0, 2), STREAM, SETTINGS)
    one.fold(state, first)
    later, _ = decode(source(rows, 0).slice(2), STREAM, SETTINGS)
    _, [before] = one.step(state, later)
    [(made, matches)] = edge_matches(tables, later, before)
    edges = made.column("_edge").to_numpy(zero_copy_only=False)[matches.event].tolist()
    found = sorted(zip(made.offsets[matches.event].tolist(), edges, strict=True))
    assert found == [(2, "enter"), (2, "enter"), (2, "enter"), (3, "enter"), (3, "exit")]
    now, earlier = (_lookups(tables, each) for each in (later, before))
    counts = np.zeros(2, np.int64)
    crossings = Crossings.of(now, earlier, later, before)
    assert crossings is not None
    crossings.add_counts(counts)
    assert counts.tolist() == [3, 2]


def _lookups(tables: Snapshot, rows: PlacedColumns) -> TableLookup:
    """Return the look-up of rows in a group's only part."""
    [lookup] = looked_up(tables, rows, EventColumns(KeySource(rows)), Loads(), {})
    assert isinstance(lookup, TableLookup)
    return lookup
