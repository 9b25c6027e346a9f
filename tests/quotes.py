"""The streams and the table that the compiler's tests are over."""

from __future__ import annotations

from grouping.model.catalog import Catalog, Stream, StreamColumn
from grouping.model.table import Table

__all__ = ["ASSETS", "QUOTES", "TRADES", "catalog"]

_COLUMNS = {
    "symbol": "STRING",
    "name": "STRING",
    "price": "DOUBLE",
    "volume": "BIGINT",
    "i": "INT",
    "amount": "DECIMAL(10,2)",
    "flag": "BOOLEAN",
    "d": "DATE",
    "at": "TIMESTAMP",
    "my col": "STRING",
}


def _stream(stream_id: str, name: str, partition_key: tuple[str, ...] = ()) -> Stream:
    columns = tuple(StreamColumn(column, kind) for column, kind in _COLUMNS.items())
    created_at = "2026-11-21T00:00:00Z"
    return Stream(stream_id, name, columns, name, "json", {"0": 0}, created_at, partition_key=partition_key)


QUOTES = _stream("s_1", "quotes")
TRADES = _stream("s_2", "trades", ("symbol",))
ASSETS = Table("t_1", "assets", QUOTES.columns, ("symbol", "i"), "assets", "json", QUOTES.created_at)


def catalog(*tables: Table) -> Catalog:
    """Return a catalog of both streams, and of some tables."""
    return Catalog([QUOTES, TRADES], tables)
