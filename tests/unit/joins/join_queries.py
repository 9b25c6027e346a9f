"""Queries that join events with tables, and DuckDB, which runs each of them alone."""

from __future__ import annotations

import json
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from grouping.compiler.compiler import compile_select
from grouping.model.catalog import Catalog, Stream
from grouping.model.column import StreamColumn
from grouping.model.computation import Computation
from grouping.model.table import Table
from grouping.settings import Settings
from spark_jobs.batch.event_column import EventColumns
from spark_jobs.batch.events import Events, arrow_type
from spark_jobs.decode.decode import decode
from spark_jobs.joins.join import join
from spark_jobs.joins.joined_events import JoinedEvents
from spark_jobs.match.residual import evaluate_expression, holds
from spark_jobs.replica.replica import Replica
from spark_jobs.replica.table_view import TableView
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
    "QUERIES",
    "QUOTES",
    "Row",
    "alone",
    "batch_of",
    "duckdb_rows",
    "rows_of",
    "view_of",
]

Row = dict[str, Any]

_DB = duckdb.connect()


def _columns(text: str) -> tuple[StreamColumn, ...]:
    return tuple(StreamColumn(*each.split()) for each in text.split(", "))


QUOTES = Stream("s_1", "quotes", _columns("symbol STRING, price DOUBLE, n BIGINT"), "quotes", "json", {"0": 0}, "")
PROFILES = Table("t_1", "profiles", _columns("symbol STRING, industry STRING, staff INT"), ("symbol",), "p", "json", "")
OWNERS = Table("t_2", "owners", _columns("owner STRING, symbol STRING, n INT"), ("owner", "symbol"), "o", "json", "")
CATALOG = Catalog([QUOTES], [PROFILES, OWNERS])

_SCHEMAS = {
    source.name: pa.schema({column.name: arrow_type(column.type) for column in source.columns})
    for source in (QUOTES, PROFILES, OWNERS)
}
_SCHEMAS["quotes"] = _SCHEMAS["quotes"].append(pa.field("event", pa.int64()))

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
QUERIES = [
    "SELECT q.n AS n, p.industry AS i FROM quotes q JOIN profiles p ON q.symbol = p.symbol WHERE p.staff > 0",
    "SELECT q.n AS n, p.industry AS i FROM quotes q LEFT JOIN profiles p ON q.symbol = p.symbol WHERE price < 1",
    "SELECT q.n AS n, p.symbol AS s FROM quotes q LEFT JOIN profiles p ON q.symbol = p.symbol AND p.staff > 0"
    " WHERE p.industry IS NULL",
    "SELECT q.n AS n, o.owner AS o FROM quotes q JOIN owners o ON q.symbol = o.symbol WHERE o.n = 1",
    "SELECT q.n AS n, o.owner AS o FROM quotes q JOIN owners o ON q.symbol = o.symbol AND o.n < q.n",
    "SELECT q.n AS n, o.owner AS o FROM quotes q LEFT JOIN owners o ON q.symbol = o.symbol AND o.n < q.n",
    "SELECT q.n AS n, o.owner AS o FROM quotes q JOIN owners o ON q.n = o.n AND q.symbol = o.symbol",
    "SELECT q.n AS n, i.staff AS s FROM quotes q JOIN profiles p ON q.symbol = p.symbol"
    " LEFT JOIN profiles i ON i.symbol = p.industry",
    "SELECT q.n AS n, o.owner AS o, p.industry AS i FROM quotes q LEFT JOIN profiles p ON q.symbol = p.symbol"
    " JOIN owners o ON o.symbol = coalesce(p.industry, q.symbol) WHERE o.n IS NOT NULL",
    "SELECT q.n AS n, p.staff AS s FROM quotes q"
    " JOIN (SELECT * FROM profiles WHERE staff > 0) p ON p.symbol = q.symbol",
    "SELECT q.n AS n, o.owner AS o, p.staff AS s FROM quotes q JOIN profiles p USING (symbol)"
    " LEFT JOIN owners o ON o.symbol = p.symbol AND o.n = p.staff WHERE p.industry <> 'x'",
    "SELECT q.n AS n, o.owner AS o, more.owner AS m FROM quotes q LEFT JOIN owners o ON o.symbol = q.symbol"
    " JOIN owners more ON more.owner = o.owner",
    "SELECT q.n AS n, o.owner AS o, p.industry AS i, b.n AS b FROM quotes q JOIN owners o ON o.symbol = q.symbol"
    " LEFT JOIN profiles p ON p.symbol = o.symbol AND p.staff = o.n LEFT JOIN owners b ON b.symbol = p.industry",
    "SELECT q.n AS n, o.owner AS o FROM quotes q LEFT JOIN owners o ON o.n = q.n + 1 AND o.symbol = lower(q.symbol)",
    "SELECT q.n AS n, p.staff AS s FROM quotes q LEFT JOIN profiles p ON p.symbol = coalesce(q.symbol, 'x')"
    " AND p.industry = q.symbol WHERE p.staff IS NULL OR p.staff < q.n",
    "SELECT q.n AS n, p.industry AS i FROM quotes q JOIN profiles p ON p.staff = q.n + 1 AND p.symbol = q.symbol",
    "SELECT q.n AS n, p.industry AS i FROM quotes q LEFT JOIN profiles p ON p.staff = q.n + 1 AND p.symbol = q.symbol",
    "SELECT q.n AS n, o.owner AS o FROM quotes q JOIN owners o ON o.n = q.n + 1 AND o.symbol = q.symbol",
    "SELECT q.n AS n, o.owner AS o FROM quotes q JOIN owners o ON o.symbol = concat(q.symbol, '') AND o.n > 0",
    "SELECT q.n AS n, o.owner AS o FROM quotes q LEFT JOIN owners o ON o.symbol = q.symbol AND o.n > 0",
    "SELECT q.n AS n, o.owner AS o FROM quotes q LEFT JOIN owners o ON o.symbol = q.symbol AND o.n = q.n + 1"
    " AND o.owner <> 'p' WHERE o.owner IS NULL OR q.n = 1",
    "SELECT q.n AS n, p.staff AS s FROM (SELECT * FROM quotes WHERE price IS NOT NULL) q"
    " LEFT JOIN (SELECT symbol AS k, staff FROM profiles WHERE industry IS NOT NULL) p ON p.k = q.symbol",
]


def view_of(table: Table, rows: list[Row]) -> TableView:
    """Return a table with those rows."""
    log = MemoryLog([{}])
    for row in rows:
        log.append(0, (None, json.dumps(row).encode()))
    return Replica(table, log, SETTINGS).at({0: len(rows)})


def batch_of(select: str, events: list[Row], catalog: Catalog = CATALOG) -> tuple[Events, Computation]:
    """Return decoded events, and the computation of a query."""
    computation = compile_select(select, catalog).plan.computation
    assert computation is not None
    decoded, letters = decode(batch([json.dumps(event).encode() for event in events]), QUOTES, Settings())
    assert letters is None
    return decoded, computation


def rows_of(
    select: str, events: list[Row], views: dict[str, TableView], catalog: Catalog = CATALOG
) -> tuple[JoinedEvents, list[tuple[Any, ...]]]:
    """Return the rows of a query's computation, and its results: event and values, in their order."""
    query = compile_select(select, catalog)
    rows = join(*batch_of(select, events, catalog), views)
    constants = [pa.array([value]) for value in query.row.values]
    constants = [one.dictionary_encode() if pa.types.is_string(one.type) else one for one in constants]
    places = np.arange(rows.count)
    zeros = np.zeros(rows.count, np.int64)
    found = np.flatnonzero(holds(query.plan.conjuncts, EventColumns(rows), places, query.row.types, constants, zeros))
    values = [evaluate_expression(item.expression, rows, found).to_pylist() for item in query.select.items]
    return rows, list(zip(rows.event[found].tolist(), *values, strict=True))


def alone(select: str, events: list[Row], profiles: list[Row], owners: list[Row]) -> list[tuple[Any, ...]]:
    """Return what DuckDB finds: the number of the event before the values."""
    return duckdb_rows(select.replace("SELECT ", "SELECT q.event, ", 1), events, profiles, owners)


def duckdb_rows(select: str, events: list[Row], profiles: list[Row], owners: list[Row]) -> list[tuple[Any, ...]]:
    """Return what DuckDB makes of a query."""
    numbered = [{**event, "event": number} for number, event in enumerate(events)]
    for (name, schema), rows in zip(_SCHEMAS.items(), (numbered, profiles, owners), strict=True):
        _DB.register(name, pa.Table.from_pylist(rows, schema))
    return _DB.execute(select).fetchall()
