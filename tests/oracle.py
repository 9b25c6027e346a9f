"""Each query run separately by an independent engine (DuckDB) over the published events: the expected results."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import NamedTuple

import duckdb
import pyarrow as pa

from tests.queries import Conjunct, Event, Query, Stream

__all__ = ["Oracle", "Position", "Row", "row_of"]

Row = tuple[tuple[str, object], ...]
"""A result's (name, value) pairs in the order of the SELECT list."""

_ARROW = {
    "STRING": pa.string(),
    "BOOLEAN": pa.bool_(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "DECIMAL(18,4)": pa.decimal128(18, 4),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
}
_EXACT = "DECIMAL(38,9)"
"""Holds every exact column and every constant that `strategies` draws for one: nothing passes through DOUBLE."""


class Position(NamedTuple):
    """Where a source record is."""

    partition: int
    offset: int


class Oracle:
    """The events of one stream at their positions, and the results of queries over them."""

    def __init__(self, stream: Stream, events: Sequence[tuple[Position, Event]]) -> None:
        self._positions = [position for position, _ in events]
        arrays: dict[str, pa.Array] = {"n": pa.array(range(len(events)), pa.int64())}
        for column in stream.columns:
            arrays[column.name] = pa.array(
                [_stored(event.values.get(column.name)) for _, event in events], _ARROW[column.type]
            )
        arrays["_key"] = pa.array([event.key for _, event in events], pa.string())
        arrays["_time"] = pa.array([event.time_ms * 1000 for _, event in events], pa.int64()).cast(pa.timestamp("us"))
        arrays["_partition"] = pa.array([position.partition for position in self._positions], pa.int32())
        arrays["_offset"] = pa.array([position.offset for position in self._positions], pa.int64())
        self._engine = duckdb.connect()
        self._engine.execute("SET threads = 1")
        self._engine.register("given", pa.table(arrays))
        self._engine.execute("CREATE TABLE events AS SELECT * FROM given")

    def rows(self, query: Query) -> dict[Position, Row]:
        """Return the query's row for each event that it matches, by the event's position."""
        parameters: list[object] = []
        terms = [_term(conjunct, parameters) for conjunct in query.where]
        outputs = [item.oracle or _name(item.column) for item in query.items]
        text = f"SELECT n, {', '.join(outputs)} FROM events WHERE {' AND '.join(terms) or 'TRUE'}"
        found = self._engine.execute(text, parameters).fetchall()
        names = [item.name for item in query.items]
        kinds = [item.type for item in query.items]
        return {
            self._positions[values[0]]: tuple(
                (name, _value(kind, value)) for name, kind, value in zip(names, kinds, values[1:], strict=True)
            )
            for values in found
        }


def row_of(query: Query, value: bytes) -> Row:
    """Return a result's value as a `Row`, each field read as docs/results.md writes its type.

    Raises:
        AssertionError: A field has another JSON type than docs/results.md gives its column.
    """
    pairs: list[tuple[str, object]] = json.loads(value.decode(), object_pairs_hook=list)
    kinds = {item.name: item.type for item in query.items}
    return tuple((name, _read(kinds.get(name, "STRING"), field)) for name, field in pairs)


def _read(kind: str, field: object) -> object:
    if field is None:
        return None
    wanted = {"BOOLEAN": bool, "INT": int, "BIGINT": int, "DOUBLE": float}.get(kind, str)
    assert type(field) is wanted, f"{field!r} is no JSON form of {kind}"
    if kind == "DATE":
        return date.fromisoformat(str(field))
    if kind == "TIMESTAMP":
        instant = datetime.fromisoformat(str(field))
        assert instant.utcoffset() is not None, f"{field!r} has no zone"
        return instant.astimezone(UTC)
    return Decimal(str(field)) if kind.startswith("DECIMAL") else field


def _value(kind: str, value: object) -> object:
    """NaN and infinities are null in JSON (docs/results.md); instants carry their zone."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, datetime) and kind == "TIMESTAMP":
        return value.replace(tzinfo=UTC)
    return value


def _stored(value: object) -> object:
    return value.astimezone(UTC).replace(tzinfo=None) if isinstance(value, datetime) else value


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _term(conjunct: Conjunct, parameters: list[object]) -> str:
    kind = "TIMESTAMP" if conjunct.column.name == "_time" else conjunct.column.type
    exact = kind in ("INT", "BIGINT") or kind.startswith("DECIMAL")
    stored = _EXACT if exact else {"STRING": "VARCHAR"}.get(kind, kind)
    column = f"CAST({_name(conjunct.column.name)} AS {stored})"
    values = [str(value) if exact and value is not None else _stored(value) for value in conjunct.values]
    match conjunct.op:
        case "true":
            return column
        case "is null" | "is not null":
            return f"{column} {conjunct.op.upper()}"
        case "in":
            parameters.append(values)
            return f"{column} IN (SELECT unnest(CAST(? AS {stored}[])))"
        case "between":
            parameters += values
            return f"{column} BETWEEN CAST(? AS {stored}) AND CAST(? AS {stored})"
        case op:
            parameters += values
            return f"{column} {op} CAST(? AS {stored})"
