"""Events, tables, and a worker's results for queries that join them (`tests/join_oracle.py`)."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from grouping.compiler.compiler import compile_select
from grouping.model.catalog import Catalog, Stream
from grouping.model.column import StreamColumn
from grouping.model.table import Table
from grouping.plan.computation import Computation
from grouping.plan.group import CompiledQuery
from grouping.plan.lookup_join import LookupJoin
from spark_jobs.engine.decode.decode import decode
from spark_jobs.engine.index import Ints
from spark_jobs.engine.match.residual import evaluate_expression, holds
from spark_jobs.engine.operators.lookup_join.join import join
from spark_jobs.engine.operators.lookup_join.joined_events import JoinedEvents
from spark_jobs.engine.operators.lookup_join.replica import Replica
from spark_jobs.engine.operators.lookup_join.table_view import TableView
from spark_jobs.engine.rows.event_column import EventColumns
from spark_jobs.engine.rows.events import Events
from tests.join_oracle import COLUMNS, Row
from tests.unit.matching.event_batches import batch
from tests.unit.replica.table_records import SETTINGS, MemoryLog

__all__ = [
    "CATALOG",
    "EVENTS",
    "NUMBERS",
    "OWNERS",
    "OWNER_ROWS",
    "PROFILES",
    "PROFILE_ROWS",
    "QUOTES",
    "batch_of",
    "compiled",
    "found_in",
    "rows_of",
    "view_of",
    "views_of",
]


def _columns(name: str) -> tuple[StreamColumn, ...]:
    return tuple(StreamColumn(*each.split()) for each in COLUMNS[name].split(", "))


QUOTES = Stream("s_1", "quotes", _columns("quotes"), "quotes", "json", {"0": 0}, "")
PROFILES = Table("t_1", "profiles", _columns("profiles"), ("symbol",), "p", "json", "")
OWNERS = Table("t_2", "owners", _columns("owners"), ("owner", "symbol"), "o", "json", "")
CATALOG = Catalog([QUOTES], [PROFILES, OWNERS])

_SYMBOLS = st.sampled_from(["a", "b", "c", None])
NUMBERS = st.sampled_from([0, 1, 2, None])
EVENTS = st.lists(
    st.fixed_dictionaries({"symbol": _SYMBOLS, "price": st.sampled_from([0.5, 1.0, None]), "n": NUMBERS}), max_size=8
)
PROFILE_ROWS = st.dictionaries(
    st.sampled_from("abcxy"),
    st.fixed_dictionaries({"industry": st.sampled_from(["a", "x", "y", None]), "staff": NUMBERS}),
)
OWNER_ROWS = st.dictionaries(
    st.tuples(st.sampled_from("pqr"), st.sampled_from("abc")), st.fixed_dictionaries({"n": NUMBERS})
)


def view_of(table: Table, rows: list[Row]) -> TableView:
    """Return a table with these rows."""
    log = MemoryLog([{}])
    for row in rows:
        log.append(0, (None, json.dumps(row).encode()))
    return Replica(table, log, SETTINGS).at({0: len(rows)})


@cache
def compiled(select: str, catalog: Catalog = CATALOG) -> CompiledQuery:
    """Return a query, compiled once for the many examples of a test."""
    return compile_select(select, catalog)


def views_of(select: str, profiles: list[Row], owners: list[Row]) -> dict[str, TableView]:
    """Return the tables that a query joins, with these rows, by id."""
    computation = compiled(select).plan.computation
    assert computation is not None
    rows = {PROFILES.table_id: (PROFILES, profiles), OWNERS.table_id: (OWNERS, owners)}
    joined = {node.table_id for node in computation.nodes if isinstance(node, LookupJoin)}
    return {table_id: view_of(*rows[table_id]) for table_id in joined}


def batch_of(select: str, events: list[Row], catalog: Catalog = CATALOG) -> tuple[Events, Computation]:
    """Return decoded events, and the computation of a query."""
    computation = compiled(select, catalog).plan.computation
    assert computation is not None
    decoded, letters = decode(batch([json.dumps(event).encode() for event in events]), QUOTES, SETTINGS)
    assert letters is None
    return decoded, computation


def rows_of(
    select: str, events: list[Row], views: dict[str, TableView], catalog: Catalog = CATALOG
) -> tuple[JoinedEvents, list[tuple[Any, ...]]]:
    """Return the rows of a query's computation, and its results: event and values, in their order."""
    query = compiled(select, catalog)
    rows = join(*batch_of(select, events, catalog), views)
    found = found_in(rows, query)
    values = [evaluate_expression(item.expression, rows, found).to_pylist() for item in query.select.items]
    return rows, list(zip(rows.event[found].tolist(), *values, strict=True))


def found_in(rows: JoinedEvents, query: CompiledQuery) -> Ints:
    """Return which rows of its computation a query wants."""
    constants = [pa.array([value]) for value in query.row.values]
    constants = [one.dictionary_encode() if pa.types.is_string(one.type) else one for one in constants]
    places = np.arange(rows.count)
    zeros = np.zeros(rows.count, np.int64)
    return np.flatnonzero(holds(query.plan.conjuncts, EventColumns(rows), places, query.row.types, constants, zeros))
