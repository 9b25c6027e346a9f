"""The constant tables as they travel from the gateway to Spark: segments of added and removed entries.

A stream's tables at version v are all segments up to v, applied in order. A commit appends one segment for the version
that it makes; neighbours are merged from time to time (a log-structured merge), so that few and large ones are left.
Entries with the same group, constant types, SELECT list and mode form one Arrow batch, a `Block`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from grouping.group import ConstantRow

__all__ = ["MODES", "Block", "Entry", "Segment", "storage_type"]

MODES = ("shared", "dedicated", "virtual", "pending")
"""Where matches of an entry go; `pending` is the store of matches that wait for a tick."""


class Block(NamedTuple):
    """What all entries of one Arrow batch have in common."""

    group_id: str
    types: tuple[str, ...]
    select_id: str
    mode: str
    until: tuple[int, ...] = ()
    """Of destinations that are leaving: by source partition, the offset of the first event that no longer counts."""


class Entry(NamedTuple):
    """One destination that wants the events that its constants select, of record times in [start, expire)."""

    block: Block
    destination: str
    """`d_…` or, for mode pending, `p_…`."""
    row: ConstantRow
    number: int
    """Dense within the stream: where matches of the destination are counted."""
    partition: int
    """Of `cq.results` for a shared destination, of `cq.pending` for a pending one, else 0."""
    start_ms: int | None = None
    expire_ms: int | None = None


_SCALARS: dict[str, pa.DataType] = {
    "STRING": pa.string(),
    "BOOLEAN": pa.bool_(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
}


def storage_type(kind: str) -> pa.DataType:
    """Return the Arrow type in which constants of a type are kept: text for exact decimals of any size.

    Example:
        >>> storage_type("SET<BIGINT>")
        ListType(list<item: int64>)
    """
    if kind.startswith("SET<"):
        return pa.list_(storage_type(kind[4:-1]))
    return _SCALARS.get(kind, pa.string())


def _stored(kind: str, value: object) -> object:
    if value is None:
        return None
    if kind.startswith("SET<"):
        return [_stored(kind[4:-1], item) for item in value]  # type: ignore[attr-defined]  # a SET's value is a tuple
    return value if kind in _SCALARS else str(value)


def _to_batch(block: Block, entries: Sequence[Entry]) -> pa.RecordBatch:
    ids = bytes.fromhex("".join([entry.destination[2:] for entry in entries]))
    columns: dict[str, pa.Array] = {
        "destination": pa.Array.from_buffers(pa.binary(12), len(entries), [None, pa.py_buffer(ids)]),
        "number": pa.array([entry.number for entry in entries], pa.int32()),
        "partition": pa.array([entry.partition for entry in entries], pa.int32()),
        "start_ms": pa.array([entry.start_ms for entry in entries], pa.int64()),
        "expire_ms": pa.array([entry.expire_ms for entry in entries], pa.int64()),
    }
    for slot, kind in enumerate(block.types):
        values: list[object] = [entry.row.values[slot] for entry in entries]
        if kind not in _SCALARS:
            values = [_stored(kind, value) for value in values]
        columns[f"c{slot}"] = pa.array(values, storage_type(kind))
    return pa.RecordBatch.from_pydict(columns)


class Segment:
    """Net changes of a stream's tables over the versions (`since`, `until`].

    `removed` is applied before `added`; a destination in both is replaced.
    """

    def __init__(self, removed: pa.Array, added: dict[Block, pa.Table]) -> None:
        self.removed = removed
        """The destinations taken away, as binary(12), each once."""
        self.added = added
        """Columns destination, number, partition, start_ms, expire_ms, c0, c1, …"""

    @classmethod
    def of(cls, removed: Iterable[str], added: Iterable[Entry]) -> Segment:
        """Make the segment of one commit."""
        by_block: dict[Block, list[Entry]] = {}
        for entry in added:
            by_block.setdefault(entry.block, []).append(entry)
        ids = sorted({bytes.fromhex(destination[2:]) for destination in removed})
        tables = {block: pa.Table.from_batches([_to_batch(block, entries)]) for block, entries in by_block.items()}
        return cls(pa.array(ids, pa.binary(12)), tables)

    def encode(self) -> bytes:
        """Return the segment as bytes."""
        blocks = []
        for block, table in self.added.items():
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
            blocks.append((block, memoryview(sink.getvalue())))
        return msgspec.msgpack.encode((_id_bytes(self.removed), blocks))

    @classmethod
    def decode(cls, data: bytes) -> Segment:
        """Return the segment of those bytes."""
        removed, blocks = msgspec.msgpack.decode(data, type=tuple[bytes, list[tuple[Block, bytes]]])
        ids = pa.Array.from_buffers(pa.binary(12), len(removed) // 12, [None, pa.py_buffer(removed)])
        return cls(ids, {block: pa.ipc.open_stream(body).read_all() for block, body in blocks})

    @property
    def rows(self) -> int:
        """Entries added and destinations removed."""
        return int(len(self.removed) + sum(table.num_rows for table in self.added.values()))

    @classmethod
    def merge(cls, segments: Sequence[Segment], *, oldest: bool) -> Segment:
        """Return the net of neighbouring segments, in order.

        Args:
            segments: From the oldest to the newest.
            oldest: Whether the first one starts from nothing, so that removals need not be kept.
        """
        removed_after = pa.array([], pa.binary(12))
        kept: dict[Block, list[pa.Table]] = {}
        for segment in reversed(segments):
            for block, table in segment.added.items():
                left = table.filter(_not_in(table["destination"], removed_after)) if len(removed_after) else table
                if left.num_rows:
                    kept.setdefault(block, []).insert(0, left)
            removed_after = pa.concat_arrays([removed_after, segment.removed])
        removed = pa.array([], pa.binary(12)) if oldest else removed_after.unique()
        return cls(removed, {block: pa.concat_tables(tables).combine_chunks() for block, tables in kept.items()})


def _id_bytes(ids: pa.Array) -> bytes:
    """Return destinations in a row; of a million of them no Python object is made."""
    if not len(ids):
        return b""
    return memoryview(ids.buffers()[1])[12 * ids.offset : 12 * (ids.offset + len(ids))].tobytes()


def _not_in(destinations: pa.ChunkedArray, removed: pa.Array) -> np.ndarray:
    return ~np.asarray(pc.is_in(destinations, value_set=removed).to_numpy())
