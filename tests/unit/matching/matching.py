"""Tables, events and a brute-force oracle for the tests of matching."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from hashlib import blake2b
from typing import Literal

import numpy as np
import pyarrow as pa

from grouping.access.access_path import AccessPath
from grouping.model.expression import Call, Column, Expression, Slot
from grouping.model.group import ConstantRow
from grouping.model.query import Edge
from grouping.model.sql_type import SqlType
from grouping.plan.group import GroupPlan, SelectItem, SelectList
from grouping.store.constant_table import Block, Entry, Segment, cut, net
from grouping.store.segment_log import PIECE_BYTES
from spark_jobs.engine.constants.constant_cache import ConstantTable, ConstantTables, Snapshot
from spark_jobs.engine.constants.constant_part import ConstantPart
from spark_jobs.engine.constants.shared_indexes import SharedIndexes
from spark_jobs.engine.constants.table_shape import TableShape
from spark_jobs.engine.index.union_lookup import lookup_of
from spark_jobs.engine.rows.events import arrow_type
from spark_jobs.engine.rows.matches import Matches


@dataclass(frozen=True)
class Version:
    """A version of the tables."""

    epoch: int
    version: int


class Events:
    """A batch of events as columns, of partition 0 and from offset 0 on."""

    def __init__(self, columns: dict[str, tuple[str, list[object]]], times: Sequence[int] | None = None) -> None:
        self._columns = {
            name: pa.array(values, arrow_type(SqlType.of(kind))) for name, (kind, values) in columns.items()
        }
        self.count = len(next(iter(self._columns.values())))
        self.time_ms = np.array(times if times is not None else [0] * self.count, np.int64)
        self.partitions = np.zeros(self.count, np.int32)
        self.offsets = np.arange(self.count)

    def column(self, name: str) -> pa.Array:
        """Return a column."""
        return self._columns[name]

    def encoded(self, name: str) -> pa.Array:
        """Return a column."""
        return self._columns[name]


class Store:
    """The tables of a stream in memory, a segment per version."""

    def __init__(self, piece_bytes: int = PIECE_BYTES) -> None:
        self._piece_bytes = piece_bytes
        self.log: list[Segment] = []
        self.known_plans: dict[str, GroupPlan] = {}
        self.compacted = 0
        self.reads: list[tuple[int, int]] = []

    def commit(self, removed: Sequence[str] = (), added: Sequence[Entry] = ()) -> Version:
        """Append a segment."""
        self.log.append(Segment.of(removed, added))
        return Version(1, len(self.log))

    def changes(self, stream_id: str, epoch: int, since: int, until: int) -> Iterator[Segment] | None:
        """As `grouping.store.table_store.TableStore`; versions before `compacted` are no boundaries any more."""
        self.reads.append((since, until))
        if since and since < self.compacted:
            return None
        return net(map(self._pieces, reversed(self.log[since:until])), oldest=not since)

    def _pieces(self, segment: Segment) -> Iterator[Segment]:
        return (Segment.decode(piece.encode())[0] for piece in cut([segment], self._piece_bytes))

    def plans(self, stream_id: str, ids: list[str]) -> dict[str, GroupPlan]:
        """Return plans."""
        return {group: self.known_plans[group] for group in ids if group in self.known_plans}

    def selects(self, stream_id: str, ids: list[str]) -> dict[str, SelectList]:
        """Return SELECT lists, one column each."""
        return {select: SelectList(select, (SelectItem(select, Column("a", "INT")),)) for select in ids}


def destination(name: object) -> str:
    """Return a destination id for a name."""
    return "d_" + blake2b(str(name).encode(), digest_size=12).hexdigest()


def entry(
    name: object,
    types: tuple[str, ...],
    values: tuple[object, ...],
    *,
    group: str = "g_1",
    mode: str = "shared",
    select: str = "s_1",
    window: tuple[int | None, int | None] = (None, None),
    until: tuple[int, ...] = (),
    edge: Edge | Literal["frames"] = "",
    since: tuple[int, ...] = (),
) -> Entry:
    """Return an entry whose number is its name; its types are texts."""
    block = Block(group, types, select, mode, until, edge)
    number = name if isinstance(name, int) else 0
    row = ConstantRow(block.types, values)
    return Entry(block, destination(name), row, number, 3, *window, since=since)  # type: ignore[arg-type]


def snapshot(conjuncts: Sequence[Expression], entries: Sequence[Entry]) -> Snapshot:
    """Return the tables of one group."""
    store = Store()
    store.known_plans["g_1"] = GroupPlan("g_1", "s", "", tuple(conjuncts))
    return ConstantTables("s").at(store.commit((), entries), store)


def apart(tables: Snapshot) -> Snapshot:
    """Return the same tables, each part with an index of its own however small it is."""
    for table in tables.tables:
        for part in table.parts:
            part.lookup = lookup_of(
                part.shape.plan.conjuncts, part.shape.path, part.shape.types, part.rows.constants, len(part.rows)
            )
    return replace(tables, shared_indexes=())


def looked_up_by(tables: Snapshot, path: AccessPath) -> Snapshot:
    """Return the same tables, looked up another way."""
    [table] = tables.tables
    shape = TableShape(
        table.shape.plan,
        table.shape.types,
        table.shape.virtual,
        table.shape.until,
        path,
    )
    parts = tuple(ConstantPart(shape, part.live_rows()) for part in table.parts)
    shared_indexes = SharedIndexes().of(part for part in parts if part.lookup is None)
    return Snapshot((ConstantTable(shape, parts),), tables.selects, tables.select_of, tables.mode_of, shared_indexes)


def found(matches: Matches) -> list[tuple[int, str]]:
    """Return the matches as sorted (event, destination)."""
    ids = ["d_" + value.hex() for value in matches.destination.to_pylist()]
    return sorted(zip(matches.event.tolist(), ids, strict=True))


def compare(column: str, op: str, kind: str, slot: int) -> Call:
    """Return ``column <op> :slot``."""
    return Call(op, (Column(column, kind), Slot(slot)), "BOOLEAN")


def holds(op: str, value: object, constant: object) -> bool:
    """Tell whether a comparison is TRUE, as Spark compares."""
    if op == "in":
        return constant is not None and any(holds("=", value, item) for item in constant)  # type: ignore[attr-defined]
    if value is None or constant is None:
        return False
    left, right = _ordered(value), _ordered(constant)
    return {
        "=": left == right,
        "<>": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[op]


def _ordered(value: object) -> object:
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return Decimal(value) if isinstance(value, int) and not isinstance(value, bool) else value
