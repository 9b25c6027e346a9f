"""Queries joining a stream with tables, and DuckDB, which runs each of them separately."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa

__all__ = ["COLUMNS", "QUERIES", "Row", "alone", "duckdb_rows"]

Row = dict[str, Any]

COLUMNS = {
    "quotes": "symbol STRING, price DOUBLE, n BIGINT",
    "profiles": "symbol STRING, industry STRING, staff INT",
    "owners": "owner STRING, symbol STRING, n INT",
}
"""Column types of the stream and the tables."""
_ARROW = {"STRING": pa.string(), "DOUBLE": pa.float64(), "BIGINT": pa.int64(), "INT": pa.int32()}
_SCHEMAS = [
    pa.schema([(name, _ARROW[kind]) for name, kind in map(str.split, columns.split(", "))])
    for columns in (COLUMNS["quotes"] + ", event BIGINT", COLUMNS["profiles"], COLUMNS["owners"])
]
_DB = duckdb.connect()
_DB.execute("SET threads = 1")

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
    "SELECT q.n AS n, o.owner AS o, p.staff AS s FROM quotes q LEFT JOIN owners o ON o.symbol = q.symbol"
    " AND (o.n > 0 OR q.n = 2) JOIN profiles p ON p.symbol = coalesce(o.owner, 'x')",
    "SELECT q.n AS n, o.owner AS o, m.owner AS m FROM quotes q LEFT JOIN owners o ON o.symbol = q.symbol"
    " AND o.n IN (0, 1) LEFT JOIN owners m ON m.owner = o.owner AND m.n < 2 AND m.symbol <> 'b'"
    " WHERE m.n IS NULL OR o.n < m.n",
    "SELECT q.n AS n, o.owner AS o, p.staff AS s FROM quotes q LEFT JOIN owners o ON o.symbol = q.symbol AND o.n <> 1"
    " JOIN profiles p ON p.symbol = q.symbol AND (p.staff = o.n OR o.n IS NULL)",
    "SELECT q.n AS n, m.n AS m FROM quotes q LEFT JOIN owners o ON o.symbol = q.symbol"
    " AND o.owner = concat(q.symbol, 'p') JOIN owners m ON m.symbol = q.symbol AND m.owner >= 'p'"
    " WHERE o.owner IS NULL",
    "SELECT q.n AS n FROM quotes q LEFT JOIN owners o ON o.symbol = q.symbol"
    " AND o.owner = substring('pqr', 1 + CAST(q.n AS INT), 1) AND q.price > 0.5 WHERE o.n IS NULL OR o.n = 1",
    "SELECT q.n AS n, p.staff AS s FROM (SELECT * FROM quotes WHERE price IS NOT NULL) q"
    " LEFT JOIN (SELECT symbol AS k, staff FROM profiles WHERE industry IS NOT NULL) p ON p.k = q.symbol",
]


def alone(select: str, events: list[Row], profiles: list[Row], owners: list[Row]) -> list[tuple[Any, ...]]:
    """Return DuckDB's rows: the number of the event before the values."""
    return duckdb_rows(select.replace("SELECT ", "SELECT q.event, ", 1), events, profiles, owners)


def duckdb_rows(select: str, events: list[Row], profiles: list[Row], owners: list[Row]) -> list[tuple[Any, ...]]:
    """Return DuckDB's rows of a query; `event` is the number of an event, from 0."""
    numbered = [{**event, "event": number} for number, event in enumerate(events)]
    given = zip((numbered, profiles, owners), _SCHEMAS, strict=True)
    return _answer(select, *(pa.Table.from_pylist(rows, schema) for rows, schema in given))


def _answer(select: str, quotes: pa.Table, profiles: pa.Table, owners: pa.Table) -> list[tuple[Any, ...]]:
    """Return DuckDB's rows. DuckDB finds a table by the name of an argument, at half the cost of registered tables."""
    return _DB.execute(select).fetchall()
