"""Streams, events and queries as plain values, from which the gateway's SQL and the oracle's are made independently."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from decimal import Decimal

__all__ = ["BASE_MS", "EXACT", "RECORD_COLUMNS", "Column", "Conjunct", "Event", "Item", "Query", "Stream", "quoted"]

BASE_MS = (int(time.time()) // 86_400 - 1) * 86_400_000
"""Record times begin here, at yesterday's midnight: the broker deletes week-old records, whatever their offset."""
EXACT = ("INT", "BIGINT", "DECIMAL(18,4)")
"""Types of exact numbers."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a stream, or one of the source record's own fields."""

    name: str
    type: str

    @property
    def plain(self) -> bool:
        """Whether the name may be written without quotes, in any case."""
        return self.name.isascii() and self.name.isidentifier() and self.name.casefold() not in {"order", "select"}


RECORD_COLUMNS = (
    Column("_key", "STRING"),
    Column("_time", "TIMESTAMP"),
    Column("_partition", "INT"),
    Column("_offset", "BIGINT"),
)


@dataclass(frozen=True, slots=True)
class Stream:
    """The declaration of a CREATE STREAM."""

    name: str
    columns: tuple[Column, ...]

    def ddl(self, topic: str, *, partitions: int | None = None, options: str = "format = 'json'") -> str:
        """Return the CREATE STREAM statement."""
        columns = ", ".join(f"{quoted(column.name)} {column.type}" for column in self.columns)
        made = f", partitions = {partitions}" if partitions else ""
        return f"CREATE STREAM {quoted(self.name)} ({columns}) WITH (topic = '{topic}', {options}{made})"


@dataclass(frozen=True, slots=True)
class Event:
    """A source record before encoding; a column absent from `values` is absent from the record."""

    values: dict[str, object] = field(default_factory=dict)
    partition: int = 0
    key: str | None = None
    time_ms: int = BASE_MS


@dataclass(frozen=True, slots=True)
class Conjunct:
    """`column op values`; op: a comparison, ``between``, ``in``, ``is [not] null`` or ``true`` (a bare column)."""

    column: Column
    op: str
    values: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class Item:
    """An output column: a column (`sql` empty) or an expression, in the gateway's SQL and in the oracle's."""

    name: str
    type: str
    column: str = ""
    sql: str = ""
    oracle: str = ""


@dataclass(frozen=True, slots=True)
class Query:
    """A SELECT over one stream."""

    stream: Stream
    where: tuple[Conjunct, ...]
    items: tuple[Item, ...]
    star: bool = False

    @property
    def shape(self) -> tuple[tuple[str, str], ...]:
        """The predicate up to constants: equal shapes are one group (docs/statements.md)."""
        return tuple(sorted((column, op) for column, op, _ in self._canonical()))

    @property
    def constants(self) -> tuple[tuple[str, str, str], ...]:
        """The predicate with its constants, numbers by value: equal ones are equal constants (docs/statements.md)."""
        return tuple(sorted(self._canonical()))

    def _canonical(self) -> list[tuple[str, str, str]]:
        found = []
        for conjunct in self.where:
            name, exact = conjunct.column.name, conjunct.column.type in (*EXACT, "DOUBLE")
            texts = [_canonical_text(value) if exact else repr(value) for value in conjunct.values]
            if conjunct.op == "between":
                found += [(name, ">=", texts[0]), (name, "<=", texts[1])]
            elif conjunct.op == "in":
                distinct = sorted(set(texts))
                found.append((name, "=" if len(distinct) == 1 else "in", " ".join(distinct)))
            elif conjunct.op == "true":
                found.append((name, "=", repr(True)))
            else:
                found.append((name, conjunct.op, " ".join(texts)))
        return found


def quoted(name: str) -> str:
    """Return an identifier in quotes, as docs/statements.md spells it."""
    return '"' + name.replace('"', '""') + '"'


def _canonical_text(value: object) -> str:
    return (
        "NULL"
        if value is None
        else str(Decimal(repr(value) if isinstance(value, float) else str(value)).normalize() + 0)
    )
