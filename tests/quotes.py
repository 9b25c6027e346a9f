"""The streams that the compiler's tests are over."""

from __future__ import annotations

from grouping.model.catalog import Catalog, Stream, StreamColumn

__all__ = ["QUOTES", "TRADES", "catalog"]

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


def catalog() -> Catalog:
    """Return a catalog of both streams."""
    return Catalog([QUOTES, TRADES])
