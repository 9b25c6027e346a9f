"""Pending matches as Spark sends them to the gateway: many in a record of `cq.pending`.

A record holds matches of a task for a partition of the topic. Items are sorted by store (`p_…`), and within a store in
source order; a row of JSON is stored once for all stores that have it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import repeat
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from grouping.model.ids import StreamId

__all__ = ["ID_BYTES", "PendingAggregates", "PendingMatches", "aggregate_record", "pack_aggregates", "pack_pending"]

ID_BYTES = 12
"""The length of a store's id without its prefix, in bytes."""
_ORDINAL_BITS = 31
_ORDINAL_MASK = (1 << _ORDINAL_BITS) - 1


class PendingAggregates(NamedTuple):
    """Items that are partial aggregates: matches of a store with the same key and pane, from one range of offsets.

    A replay writes the items of a store and range in the same order as before.
    """

    partitions: NDArray[np.int32]
    """The source partition."""
    first: NDArray[np.int64]
    """The first offset of the range, ascending within a store and partition."""
    last: NDArray[np.int64]
    """The last offset of the range."""
    ordinals: NDArray[np.int32]
    """The place of the item among the items of its store and range, ascending."""
    times: NDArray[np.int64]
    """When the pane begins, epoch milliseconds."""
    rows: NDArray[np.int32]
    """The number of the item's row in the table of states (`PendingMatches.values`)."""

    def at(self, places: NDArray[np.int64]) -> PendingAggregates:
        """Return the items at the given places."""
        return PendingAggregates(*[column[places] for column in self])  # type: ignore[arg-type]  # each of its own type


class PendingMatches(msgspec.Struct, array_like=True, frozen=True, dict=True, omit_defaults=True):
    """A record of `cq.pending`."""

    stream_id: StreamId
    epoch: int
    """The epoch of the constant tables by which the matches were found."""
    version: int
    ids: bytes
    """The distinct stores, 12 bytes each."""
    ends: bytes
    """By store (int32): the end of its items. The items of a store begin where those of the previous store end."""
    partitions: bytes
    """By item (int32): the source partition."""
    offsets: bytes
    """By item (int64): the source offset; for computed results, the position in the computation."""
    times: bytes
    """By item (int64): the time of the source record, or of the computed result, epoch milliseconds."""
    rows: bytes
    """By item (int32): its place in `values`."""
    values: list[bytes]
    """Rows as JSON objects; for aggregates a single value, the table of their states as an Arrow stream."""
    ends_at: bytes = b""
    """For aggregates only, by item (int64): the last offset of the range; `offsets` has the first one."""
    ordinals: bytes = b""
    """By item (int32): for aggregates, the item's place among the items of its store and range; for matches, the number
    of the row within its source record. Empty if each source record has at most one row.
    """
    before: int = 0
    """For a rolled record: the offset of the log before which the record replaces all records of its stores; else 0."""
    earlier: tuple[PendingMatches, ...] = ()
    """For a rolled record: the aggregates of earlier versions of the tables, in the order of the versions."""
    elements: bytes = b""
    """By item (int32): for matches, the bits of the row's number above the 31 bits in `ordinals`; empty if none is
    set.
    """
    computed: bool = False
    """Whether the items are results that waited for the watermark (FOR, SILENCE). Such an item has a position in its
    computation in place of a source offset. The positions grow within a store and partition.
    """

    @property
    def whole(self) -> tuple[PendingMatches, ...]:
        """The parts by version of the tables; an unrolled record has a single part."""
        return (*self.earlier, self)

    @classmethod
    def decode(cls, body: bytes) -> PendingMatches:
        """Decode a record's value."""
        return _decode(body)

    def encode(self) -> bytes:
        """Encode the record's value."""
        return msgspec.msgpack.encode(self)

    @cached_property
    def spans(self) -> dict[bytes, tuple[int, int]]:
        """By store: the number of its first item, and the number after its last item."""
        spans, begin = {}, 0
        for number, end in enumerate(np.frombuffer(self.ends, np.int32).tolist()):
            spans[self.ids[number * ID_BYTES : (number + 1) * ID_BYTES]] = (begin, end)
            begin = end
        return spans

    @cached_property
    def time_of(self) -> NDArray[np.int64]:
        """The time of each item's source record."""
        return np.frombuffer(self.times, np.int64)

    @cached_property
    def aggregates(self) -> PendingAggregates:
        """The items of aggregates, as columns."""
        return PendingAggregates(
            np.frombuffer(self.partitions, np.int32),
            np.frombuffer(self.offsets, np.int64),
            np.frombuffer(self.ends_at, np.int64),
            np.frombuffer(self.ordinals, np.int32),
            self.time_of,
            np.frombuffer(self.rows, np.int32),
        )

    @cached_property
    def _columns(self) -> tuple[memoryview, ...]:
        columns = ((self.partitions, "i"), (self.offsets, "q"), (self.times, "q"), (self.rows, "i"))
        return tuple(memoryview(column).cast(kind) for column, kind in columns)  # type: ignore[call-overload]

    @cached_property
    def _numbers(self) -> memoryview | NDArray[np.int64] | None:
        if not self.ordinals:
            return None
        if not self.elements:
            return memoryview(self.ordinals).cast("i")
        high = np.frombuffer(self.elements, np.int32).astype(np.int64)
        return (high << _ORDINAL_BITS) | np.frombuffer(self.ordinals, np.int32)

    def items(self, store: bytes) -> Iterator[tuple[int, int, int, int, int]]:
        """Yield a store's items: the source's partition, offset and time, the row's number, and the place in `values`.

        Items are unpacked on demand, since the unpacked items of many records would take much memory.
        """
        begin, end = self.spans.get(store, (0, 0))
        partitions, offsets, times, rows = self._columns
        numbers = self._numbers
        if end == begin + 1:
            number = 0 if numbers is None else int(numbers[begin])
            return iter(((partitions[begin], offsets[begin], times[begin], number, rows[begin]),))
        # All columns have the same length.
        return zip(  # noqa: B905
            partitions[begin:end].tolist(),
            offsets[begin:end].tolist(),
            times[begin:end].tolist(),
            repeat(0, end - begin) if numbers is None else numbers[begin:end].tolist(),
            rows[begin:end].tolist(),
        )


_decode = msgspec.msgpack.Decoder(PendingMatches).decode


def pack_aggregates(
    stream_id: StreamId, table: tuple[int, int], ids: NDArray[np.uint8], aggregates: PendingAggregates, states: bytes
) -> bytes:
    """Encode partial aggregates as a record's value. The arguments are those of `aggregate_record`."""
    return aggregate_record(stream_id, table, ids, aggregates, states).encode()


def aggregate_record(
    stream_id: StreamId, table: tuple[int, int], ids: NDArray[np.uint8], aggregates: PendingAggregates, states: bytes
) -> PendingMatches:
    """Return a record of partial aggregates.

    Args:
        stream_id: The source stream.
        table: Epoch and version of the constant tables.
        ids: By item the 12 bytes of its store, as a matrix; the items of one store are neighbours.
        aggregates: The items.
        states: The table of their states.
    """
    names = np.ascontiguousarray(ids).view(f"V{ID_BYTES}").ravel()
    last = np.flatnonzero(np.append(names[1:] != names[:-1], True))
    return PendingMatches(
        stream_id,
        *table,
        names[last].tobytes(),
        (last + 1).astype(np.int32).tobytes(),
        aggregates.partitions.astype(np.int32).tobytes(),
        aggregates.first.astype(np.int64).tobytes(),
        aggregates.times.astype(np.int64).tobytes(),
        aggregates.rows.astype(np.int32).tobytes(),
        [states],
        aggregates.last.astype(np.int64).tobytes(),
        aggregates.ordinals.astype(np.int32).tobytes(),
    )


def pack_pending(
    stream_id: StreamId,
    table: tuple[int, int],
    ids: NDArray[np.uint8],
    events: tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]],
    rows: NDArray[np.int32],
    values: Sequence[bytes],
    numbers: NDArray[np.int64] | None = None,
    *,
    computed: bool = False,
) -> bytes:
    """Encode matches as a record's value.

    Args:
        stream_id: The source stream.
        table: Epoch and version of the constant tables.
        ids: By item the 12 bytes of its store, as a matrix.
        events: By item the source's partition, offset and time; for computed results the position, not the offset.
        rows: By item its place in `values`.
        values: The rows.
        numbers: By item the number of its row within its source record; None if each record has at most one row.
        computed: Whether the items are computed results.
    """
    names = np.ascontiguousarray(ids).view(f"V{ID_BYTES}").ravel()
    order = np.lexsort(ids.T[::-1])  # stable, so the items of a store stay in source order
    names = names[order]
    last = np.flatnonzero(np.append(names[1:] != names[:-1], True))
    partitions, offsets, times = events
    high = None if numbers is None else numbers >> _ORDINAL_BITS
    return msgspec.msgpack.encode(
        PendingMatches(
            stream_id,
            *table,
            names[last].tobytes(),
            (last + 1).astype(np.int32).tobytes(),
            partitions[order].astype(np.int32).tobytes(),
            offsets[order].astype(np.int64).tobytes(),
            times[order].astype(np.int64).tobytes(),
            rows[order].astype(np.int32).tobytes(),
            list(values),
            ordinals=b"" if numbers is None else (numbers[order] & _ORDINAL_MASK).astype(np.int32).tobytes(),
            elements=b"" if high is None or not high.any() else high[order].astype(np.int32).tobytes(),
            computed=computed,
        )
    )
