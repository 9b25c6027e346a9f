"""Constant rows in a worker's memory, as packed columns; a row takes about fifty bytes, with its index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_jobs.engine.constants.begins import Begins
from spark_jobs.engine.index import Ints

__all__ = ["ConstantRows", "DESTINATION", "concatenated", "destinations"]

DESTINATION = np.dtype([("high", ">u8"), ("low", ">u4")])
"""The 12 bytes of a destination's id as two big-endian numbers, which sort in the order of the bytes."""


def destinations(ids: pa.Array) -> NDArray[np.void]:
    """Return the ids of a binary(12) array."""
    if not len(ids):
        return _NONE
    # Arrow may have padded the buffer after the last id.
    return np.frombuffer(ids.buffers()[1], DESTINATION, ids.offset + len(ids))[ids.offset :]


_NONE: NDArray[np.void] = np.empty(0, DESTINATION)


def concatenated(arrays: Sequence[pa.Array]) -> pa.Array:
    """Concatenate constants; several dictionaries become one, without values that no row uses."""
    if not any(pa.types.is_dictionary(array.type) for array in arrays):
        return pa.concat_arrays(arrays)
    plain = [array.dictionary_decode() if pa.types.is_dictionary(array.type) else array for array in arrays]
    return pa.concat_arrays(plain).dictionary_encode()


@dataclass(frozen=True, slots=True)
class ConstantRows:
    """Entries of a group with the same constant types, sorted by `high` so that removed entries are found fast."""

    high: NDArray[np.uint64]
    """First eight bytes of the destination."""
    low: NDArray[np.uint32]
    """The other four bytes."""
    number: NDArray[np.int32]
    """The number of the destination, or of the store for a timer-based CQ; matches are counted by this number."""
    partition: NDArray[np.int32]
    """The partition of the topic to which the destination's matches are written."""
    variant: NDArray[np.int32]
    """The number of the entry's variant (SELECT list, mode and kind of edges) in `constant_cache.Snapshot`."""
    starts: Ints | None
    """The record time in ms of each entry's START: earlier events are no matches. None if no entry has a START."""
    expires: Ints | None
    """The record time in ms of each entry's EXPIRE: only earlier events are matches. None if no entry has an EXPIRE."""
    constants: tuple[pa.Array, ...]
    """For each slot, the constants of the entries; strings are dictionary-encoded."""
    begins: Begins | None = None
    """Where each entry begins, in a group over state: edges, frames and silences. None in any other group."""

    @classmethod
    def of(cls, table: pa.Table, variant: int, slots: int, *, at_expire: bool = False) -> ConstantRows:
        """Return the entries of a segment's block.

        Args:
            table: The block's rows.
            variant: The variant of all entries of the block.
            slots: The number of slots.
            at_expire: Whether a result at the time of EXPIRE itself is also a match, as for results that wait for the
                watermark.
        """
        table = table.combine_chunks()
        expires = _window(_one(table["expire_ms"]), np.iinfo(np.int64).max)
        if expires is not None and at_expire:
            expires = np.minimum(expires, np.iinfo(np.int64).max - 1) + 1
        ids = destinations(_one(table["destination"]))
        high = ids["high"].astype(np.uint64)
        rows = cls(
            high,
            ids["low"].astype(np.uint32),
            _one(table["number"]).to_numpy(),
            _one(table["partition"]).to_numpy(),
            np.full(table.num_rows, variant, np.int32),
            _window(_one(table["start_ms"]), np.iinfo(np.int64).min),
            expires,
            tuple(_packed(_one(table[f"c{slot}"])) for slot in range(slots)),
            Begins.of(_one(table["since"])) if "since" in table.column_names else None,
        )
        return rows.take(np.argsort(high))

    @classmethod
    def concat(cls, parts: Sequence[ConstantRows]) -> ConstantRows:
        """Merge rows of the same table.

        Columns are sorted one after the other, so memory never holds unsorted copies of all columns at once.
        """
        high = np.concatenate([part.high for part in parts])
        order = np.argsort(high, kind="stable")
        places = pa.array(order)
        starts = _joined([part.starts for part in parts], parts, np.iinfo(np.int64).min)
        expires = _joined([part.expires for part in parts], parts, np.iinfo(np.int64).max)
        slots = range(len(parts[0].constants))
        begins = _begins(parts)
        return cls(
            high[order],
            np.concatenate([part.low for part in parts])[order],
            np.concatenate([part.number for part in parts])[order],
            np.concatenate([part.partition for part in parts])[order],
            np.concatenate([part.variant for part in parts])[order],
            None if starts is None else starts[order],
            None if expires is None else expires[order],
            tuple(concatenated([part.constants[slot] for part in parts]).take(places) for slot in slots),
            None if begins is None else begins.take(order),
        )

    @classmethod
    def appended(cls, parts: Sequence[ConstantRows]) -> ConstantRows:
        """Return the rows of several tables one after the other, not sorted, and without their constants."""
        return cls(
            np.concatenate([part.high for part in parts]),
            np.concatenate([part.low for part in parts]),
            np.concatenate([part.number for part in parts]),
            np.concatenate([part.partition for part in parts]),
            np.concatenate([part.variant for part in parts]),
            _joined([part.starts for part in parts], parts, np.iinfo(np.int64).min),
            _joined([part.expires for part in parts], parts, np.iinfo(np.int64).max),
            (),
            _begins(parts),
        )

    def take(self, positions: NDArray[np.integer]) -> ConstantRows:
        """Return the rows at some positions, in the order of the positions."""
        wanted = pa.array(positions)
        return ConstantRows(
            self.high[positions],
            self.low[positions],
            self.number[positions],
            self.partition[positions],
            self.variant[positions],
            None if self.starts is None else self.starts[positions],
            None if self.expires is None else self.expires[positions],
            tuple(array.take(wanted) for array in self.constants),
            None if self.begins is None else self.begins.take(positions),
        )

    def __len__(self) -> int:
        return int(self.high.size)

    def find(self, ids: NDArray[np.void]) -> Ints:
        """Return the positions of the rows whose destination is among `ids`; the rows must be sorted by `high`."""
        high, low = ids["high"].astype(np.uint64), ids["low"].astype(np.uint32)
        first = np.searchsorted(self.high, high, side="left")
        last = np.searchsorted(self.high, high, side="right")
        hits = []
        for step in range(int((last - first).max(initial=0))):  # ids that share their first eight bytes are neighbours
            here = np.flatnonzero(first + step < last)
            position = first[here] + step
            hits.append(position[self.low[position] == low[here]])
        return np.concatenate(hits).astype(np.int64) if hits else np.empty(0, np.int64)

    @property
    def windowed(self) -> bool:
        """Whether some entry has a START or an EXPIRE."""
        return self.starts is not None or self.expires is not None

    def in_window(self, rows: NDArray[np.integer], time_ms: Ints) -> NDArray[np.bool_]:
        """Return for each of some rows whether its START and EXPIRE allow a match with an event of a record time.

        Args:
            rows: The rows.
            time_ms: For each of these rows, the record time in epoch milliseconds.
        """
        inside = np.ones(rows.size, np.bool_)
        if self.starts is not None:
            inside &= time_ms >= self.starts[rows]
        if self.expires is not None:
            inside &= time_ms < self.expires[rows]
        return inside

    def ids(self, rows: NDArray[np.integer]) -> pa.FixedSizeBinaryArray:
        """Return the destinations of some rows."""
        ids = np.empty(rows.size, DESTINATION)
        ids["high"], ids["low"] = self.high[rows], self.low[rows]
        return pa.FixedSizeBinaryArray.from_buffers(pa.binary(12), rows.size, [None, pa.py_buffer(ids.tobytes())])

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        arrays = (self.high, self.low, self.number, self.partition, self.variant, self.starts, self.expires)
        columns = sum(array.nbytes for array in arrays if array is not None)
        begins = 0 if self.begins is None else self.begins.nbytes
        return int(columns + begins + sum(array.nbytes for array in self.constants))


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])


def _begins(parts: Sequence[ConstantRows]) -> Begins | None:
    """Return the begins of all rows; None in a group whose entries have no begins.

    Either all parts of a table have begins or none has, since all entries of a group are over one computation.
    """
    begins = [part.begins for part in parts if part.begins is not None]
    return Begins.concat(begins) if begins else None


def _packed(values: pa.Array) -> pa.Array:
    return values.dictionary_encode() if pa.types.is_string(values.type) else values


def _window(times: pa.Array, always: int) -> Ints | None:
    if times.null_count == len(times):
        return None
    filled: Ints = pc.fill_null(times, always).to_numpy()
    return filled


def _joined(windows: Sequence[Ints | None], parts: Sequence[ConstantRows], always: int) -> Ints | None:
    if all(window is None for window in windows):
        return None
    filled = [
        np.full(len(part), always) if window is None else window for window, part in zip(windows, parts, strict=True)
    ]
    return np.concatenate(filled)
