"""The form of the constant tables between gateway and Spark: segments of added and removed entries.

A stream's tables at version v are all segments up to v, applied in order. A commit appends a segment for its version;
neighbouring segments are merged from time to time (a log-structured merge), so a table has few, large segments. Entries
with the same group, constant types, SELECT list and mode form one Arrow batch, a `Block`.

A large segment is stored in pieces, each of which is a `Segment` too (segment_log.py). Pieces have no order, since a
piece removes entries only from older segments. Pieces are written, merged and loaded one at a time, so the number of
rows is not limited by memory.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from grouping.model.group import ConstantRow
from grouping.model.ids import GroupId, SelectId
from grouping.model.query import Edge
from grouping.model.sql_type import SqlType
from grouping.store.arrow_types import ARROW_TYPES

__all__ = ["MODES", "Block", "Entry", "Segment", "constants_array", "cut", "net", "storage_type", "unpacked_since"]

MODES = ("shared", "dedicated", "virtual", "pending", "throttled")
"""Where the matches of an entry are written: `pending` is the log of matches that wait for a tick (`cq.pending`), and
`throttled` the log of results of CQs with AT MOST, which the gateway copies to their destinations (`cq.throttled`)."""


FRAMES: Literal["frames"] = "frames"
"""The value of `Block.edge` for queries over frames. Each match from the offsets `Entry.since` on is a result."""


class Block(NamedTuple):
    """The common fields of all entries in an Arrow batch."""

    group_id: GroupId
    type_texts: tuple[str, ...]
    select_id: SelectId
    mode: str
    until: tuple[int, ...] = ()
    """For a leaving destination: by source partition, the offset of the first event without a result."""
    edge: Edge | Literal["frames"] = ""
    """For a group with EMIT, which edges are results; `FRAMES` for a group over frames, "" for any other group."""

    @property
    def types(self) -> tuple[SqlType, ...]:
        """The types of the constants, by slot."""
        return tuple(map(SqlType.of, self.type_texts))


class Entry(msgspec.Struct, frozen=True):
    """A destination and its constants. The destination gets matching events with record times in [start, expire)."""

    block: Block
    destination: str
    """`d_…` or, for mode pending, `p_…`."""
    row: ConstantRow
    number: int
    """The number of the destination in counts of matches (`MatchTally`). A stream reuses the numbers of destinations
    that are gone, so the numbers stay small.
    """
    partition: int
    """For modes shared, pending and throttled the partition of `cq.results`, `cq.pending` or `cq.throttled`; else 0."""
    start_ms: int | None = None
    expire_ms: int | None = None
    bounds: bytes = b""
    """For a store of aggregates, the bounds of its panes (`grouping.model.panes`)."""
    since: tuple[int, ...] = ()
    """For an entry with edges or over frames: by source partition, the offset of the first event that can have a
    result. Partitions beyond the end of the tuple have the offset 0.
    """


def storage_type(sql_type: SqlType) -> pa.DataType:
    """Return the Arrow type in which constants of a type are stored. DECIMALs of any size are stored exactly, as text.

    Example:
        >>> storage_type(SqlType.of("SET<BIGINT>"))
        ListType(list<item: int64>)
    """
    if sql_type.is_set:
        return pa.list_(storage_type(sql_type.member))
    return ARROW_TYPES.get(sql_type, pa.string())


def _stored(sql_type: SqlType, value: object) -> object:
    if value is None:
        return None
    if sql_type.is_set:
        return [_stored(sql_type.member, item) for item in value]  # type: ignore[attr-defined]  # a SET's value is a tuple
    return value if sql_type in ARROW_TYPES else str(value)


def constants_array(sql_type: SqlType, values: Sequence[object]) -> pa.Array:
    """Return the constants of a slot as the evaluator holds them. Equal strings share memory (a dictionary array)."""
    array = pa.array(
        values if sql_type in ARROW_TYPES else [_stored(sql_type, value) for value in values], storage_type(sql_type)
    )
    return array.dictionary_encode() if pa.types.is_string(array.type) else array


def _packed(since: tuple[int, ...]) -> bytes:
    return struct.pack(f"<{len(since)}q", *since)


def unpacked_since(packed: bytes) -> tuple[int, ...]:
    """Return `Entry.since` from its bytes in a segment: a little-endian int64 for each source partition.

    Example:
        >>> unpacked_since(bytes([5]) + bytes(15))
        (5, 0)
    """
    return struct.unpack(f"<{len(packed) // 8}q", packed)


def _to_batch(block: Block, entries: Sequence[Entry]) -> pa.RecordBatch:
    ids = bytes.fromhex("".join([entry.destination[2:] for entry in entries]))
    columns: dict[str, pa.Array] = {
        "destination": pa.Array.from_buffers(pa.binary(12), len(entries), [None, pa.py_buffer(ids)]),
        "number": pa.array([entry.number for entry in entries], pa.int32()),
        "partition": pa.array([entry.partition for entry in entries], pa.int32()),
        "start_ms": pa.array([entry.start_ms for entry in entries], pa.int64()),
        "expire_ms": pa.array([entry.expire_ms for entry in entries], pa.int64()),
    }
    bounds = [entry.bounds for entry in entries]
    if any(bounds):
        columns["bounds"] = pa.array(bounds, pa.binary())
    if block.edge:
        sinces = pa.array([_packed(entry.since) for entry in entries], pa.binary())
        columns["since"] = sinces.dictionary_encode()
    for slot, sql_type in enumerate(block.types):
        values: list[object] = [entry.row.values[slot] for entry in entries]
        if sql_type not in ARROW_TYPES:
            values = [_stored(sql_type, value) for value in values]
        columns[f"c{slot}"] = pa.array(values, storage_type(sql_type))
    return pa.RecordBatch.from_pydict(columns)


class Segment:
    """The net changes of a stream's tables between two versions.

    `removed` is applied before `added`, so the entries of a destination in both are replaced.
    """

    def __init__(self, removed: pa.Array, added: dict[Block, pa.Table]) -> None:
        self.removed = removed
        """The removed destinations, as binary(12), each once."""
        self.added = added
        """The added entries of each block, with the columns destination, number, partition, start_ms, expire_ms, c0,
        c1, and so on. Blocks of stores of aggregates have also `bounds`; blocks with edges or frames have also `since`,
        as bytes that `unpacked_since` reads.
        """

    @classmethod
    def of(cls, removed: Iterable[str], added: Iterable[Entry]) -> Segment:
        """Make the segment of a commit."""
        by_block: dict[Block, list[Entry]] = {}
        for entry in added:
            by_block.setdefault(entry.block, []).append(entry)
        ids = sorted({bytes.fromhex(destination[2:]) for destination in removed})
        tables = {block: pa.Table.from_batches([_to_batch(block, entries)]) for block, entries in by_block.items()}
        return cls(pa.array(ids, pa.binary(12)), tables)

    def encode(self, more: int = 0) -> bytes:
        """Return the segment or piece as bytes, with the number of further pieces of the same segment."""
        blocks = []
        for block, table in self.added.items():
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
            stored = block if block.edge else block[:-1]  # without an edge, the same form as in earlier versions
            blocks.append((stored, memoryview(sink.getvalue())))
        return msgspec.msgpack.encode((_id_bytes(self.removed), blocks, more))

    @classmethod
    def decode(cls, data: bytes) -> tuple[Segment, int]:
        """Decode a segment or a piece, and return it with the number of further pieces."""
        stored = _decode(data)
        ids = pa.Array.from_buffers(pa.binary(12), len(stored.removed) // 12, [None, pa.py_buffer(stored.removed)])
        return cls(ids, {block: pa.ipc.open_stream(body).read_all() for block, body in stored.blocks}), stored.more

    @property
    def rows(self) -> int:
        """The number of added entries and removed destinations."""
        return int(len(self.removed) + sum(table.num_rows for table in self.added.values()))

    @property
    def nbytes(self) -> int:
        """Approximate number of bytes when encoded."""
        return int(self.removed.nbytes + sum(_BLOCK_BYTES + table.nbytes for table in self.added.values()))


class _StoredSegment(msgspec.Struct, array_like=True):
    """The stored form of a segment or piece. Earlier versions, without pieces, wrote no `more`."""

    removed: bytes
    blocks: list[tuple[Block, bytes]]
    more: int = 0


_decode = msgspec.msgpack.Decoder(_StoredSegment).decode

_BLOCK_BYTES = 1_000
"""Approximate number of bytes of an Arrow block without rows."""
_NO_IDS = pa.nulls(0, pa.binary(12))  # `pa.array` would import pandas, which takes a third of the gateway's start


def net(segments: Iterable[Iterable[Segment]], *, oldest: bool) -> Iterator[Segment]:
    """Yield the net changes of neighbouring segments, in pieces that are not empty.

    Args:
        segments: The pieces of each segment, from the newest segment to the oldest.
        oldest: Whether the last segment starts at version 0. Removals are then left out, since nothing is older.
    """
    removed = _NO_IDS
    for pieces in segments:
        own = [removed]
        for piece in pieces:
            own.append(piece.removed)
            if left := _without(piece.added, removed):
                yield Segment(_NO_IDS, left)
        removed = pa.concat_arrays(own)
    if len(removed) and not oldest:
        yield Segment(removed.unique(), {})


def cut(changes: Iterable[Segment], nbytes: int) -> Iterator[Segment]:
    """Yield the same changes in one or more pieces of at most `nbytes` each. A larger row is a piece by itself."""
    held: list[Segment] = []
    blocks: set[Block] = set()
    size = 0
    for part in _parts(changes, nbytes):
        known = len(blocks & part.added.keys())
        if held and size + part.nbytes - _BLOCK_BYTES * known > nbytes:
            yield _joined(held)
            held, blocks, size, known = [], set(), 0, 0
        held.append(part)
        blocks.update(part.added)
        size += part.nbytes - _BLOCK_BYTES * known
    yield _joined(held)


def _parts(changes: Iterable[Segment], nbytes: int) -> Iterator[Segment]:
    """Yield small changes unchanged, and large changes block by block and slice by slice."""
    for change in changes:
        if change.nbytes <= nbytes:
            yield change
            continue
        step = max(nbytes // 12, 1)
        for first in range(0, len(change.removed), step):
            yield Segment(change.removed[first : first + step], {})
        for block, table in change.added.items():
            yield from (Segment(_NO_IDS, {block: part}) for part in _slices(table, nbytes))


def _slices(table: pa.Table, nbytes: int) -> Iterator[pa.Table]:
    """Yield a table in parts, by halving it repeatedly, since its rows may differ much in size."""
    if table.nbytes <= nbytes or table.num_rows == 1:
        yield table
        return
    middle = table.num_rows // 2
    yield from _slices(table[:middle], nbytes)
    yield from _slices(table[middle:], nbytes)


def _joined(parts: Sequence[Segment]) -> Segment:
    if len(parts) == 1:
        return parts[0]
    tables: dict[Block, list[pa.Table]] = {}
    for part in parts:
        for block, table in part.added.items():
            tables.setdefault(block, []).append(table)
    removed = pa.concat_arrays([_NO_IDS, *(part.removed for part in parts)])
    return Segment(removed, {block: pa.concat_tables(some).combine_chunks() for block, some in tables.items()})


def _without(added: dict[Block, pa.Table], removed: pa.Array) -> dict[Block, pa.Table]:
    """Return the entries of destinations that are not removed."""
    if not len(removed) or not added:
        return added
    ids = pa.chunked_array([chunk for table in added.values() for chunk in table["destination"].chunks], pa.binary(12))
    kept = pc.invert(pc.is_in(ids, value_set=removed))
    left, first = {}, 0
    for block, table in added.items():
        rows = table.filter(kept[first : first + table.num_rows])
        first += table.num_rows
        if rows.num_rows:
            left[block] = rows
    return left


def _id_bytes(ids: pa.Array) -> bytes:
    """Return the concatenated bytes of all ids, without making a Python object for each id."""
    if not len(ids):
        return b""
    return memoryview(ids.buffers()[1])[12 * ids.offset : 12 * (ids.offset + len(ids))].tobytes()
