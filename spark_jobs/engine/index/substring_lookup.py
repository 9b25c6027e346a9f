"""Finds the constant rows whose text occurs anywhere in an event's text, by a window of each row's text.

A window is a sequence of 8 bytes of a text (4, 2 or 1 byte for shorter texts). Each row is indexed by the window of its
text that the fewest rows have. All windows of an event's text are looked up, and the residual then checks each
candidate. Windows are integers, so NumPy hashes and looks up all windows of a batch together.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.model.expression import Reference
from spark_jobs.engine.index import EqualityIndex, Ints, KeyDirectory, mix
from spark_jobs.engine.index.lookup import AliveRows, Candidates
from spark_jobs.engine.rows.arrays import distinct_values
from spark_jobs.engine.rows.event_column import EventColumns

__all__ = ["SubstringLookup", "substring_lookups"]

_WIDTHS = (8, 4, 2, 1)
_TYPES = {8: "<u8", 4: "<u4", 2: "<u2", 1: "u1"}
_SLICE_BYTES = 1 << 21
"""The largest number of bytes of texts whose windows are looked up at once, unless a single text has more."""
_FILTER_BITS = 22
"""The number of bits of a window's hash that select a flag of the filter.

The filter rejects nearly all windows that no row has. Its four million flags fit into a processor's cache.
"""


def substring_lookups(column: Reference, parts: pa.Array, rows: NDArray[np.int32]) -> list[SubstringLookup]:
    """Return an index of rows for each width of windows.

    Args:
        column: The column of the event's text.
        parts: For each row, the text that the event's text must contain; no text may be empty.
        rows: The numbers of the rows.
    """
    lengths = np.diff(_offsets(parts))
    width = np.select([lengths >= size for size in _WIDTHS], _WIDTHS)
    places = {size: np.flatnonzero(width == size) for size in _WIDTHS}
    return [SubstringLookup(column, parts.take(pa.array(at)), rows[at], size) for size, at in places.items() if at.size]


class SubstringLookup:
    """The index of the rows whose windows have a certain width. The index does not change after it is built."""

    def __init__(self, column: Reference, parts: pa.Array, rows: NDArray[np.int32], width: int) -> None:
        """Index each row by the window of its text that the fewest rows have."""
        self._column = column
        self._width = width
        offsets = _offsets(parts)
        keys = _windows(_bytes(parts), width)
        place = _within(offsets, width)
        distinct, which, counts = np.unique(keys[place], return_inverse=True, return_counts=True)
        of = np.searchsorted(offsets, place, side="right") - 1
        rarest = np.lexsort((counts[which], of))
        first = np.flatnonzero(np.diff(of[rarest], prepend=-1))
        used, codes = np.unique(which[rarest[first]], return_inverse=True)
        hashes = mix(distinct[used].astype(np.int64, copy=False))
        self._directory = KeyDirectory(hashes)
        self._filter = np.zeros(1 << _FILTER_BITS, np.bool_)
        self._filter[hashes >> np.uint64(64 - _FILTER_BITS)] = True
        self._index = EqualityIndex(codes.astype(np.int32), used.size, rows)
        self._alive = AliveRows(self._index.rows)

    def find(self, events: EventColumns, selected: Ints) -> Candidates:
        """Return the candidates of the events at the positions `selected`."""
        column = events[self._column]
        found = [np.empty(0, np.int64), *self._known_windows(column.values)]
        pairs = distinct_values(np.concatenate(found))
        value, code = pairs >> 32, (pairs & 0xFFFFFFFF).astype(np.int32)
        starts = np.searchsorted(value, np.arange(len(column.values) + 1))
        own = column.spread(np.arange(len(column.values)), -1)[selected]
        known = np.flatnonzero(own >= 0)
        own = own[known]
        counts = starts[own + 1] - starts[own]
        begins = np.repeat(starts[own] - np.concatenate(([0], np.cumsum(counts)))[:-1], counts)
        codes = code[begins + np.arange(begins.size)]
        event = np.repeat(selected[known], counts)
        return Candidates(event, self._index.find(codes), self._alive, repeated=True)

    def _known_windows(self, values: pa.Array) -> Iterator[Ints]:
        """Find the windows of the texts that are also windows of rows.

        Yields:
            For each such window, the number of its text in the high 32 bits, and the window's code in the low 32 bits.
        """
        offsets, data = _offsets(values), _bytes(values)
        first = 0
        while first < len(values):
            last = max(int(np.searchsorted(offsets, offsets[first] + _SLICE_BYTES, side="right")) - 1, first + 1)
            keys = _windows(data[offsets[first] : offsets[last]], self._width)
            hashes = mix(keys.astype(np.int64))
            place = np.flatnonzero(self._filter[hashes >> np.uint64(64 - _FILTER_BITS)])
            codes = self._directory.find(hashes[place])
            hit = np.flatnonzero(codes >= 0)
            place, codes = place[hit] + offsets[first], codes[hit]
            value = np.searchsorted(offsets, place, side="right") - 1
            whole = place + self._width <= offsets[value + 1]
            yield value[whole] << 32 | codes[whole]
            first = last

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self._directory.nbytes + self._index.nbytes + self._filter.nbytes


def _offsets(texts: pa.Array) -> Ints:
    """Return where each text begins in the bytes of all texts, and where the last text ends."""
    if not len(texts):
        return np.zeros(1, np.int64)
    whole: NDArray[np.int32] = np.frombuffer(texts.buffers()[1], np.int32)
    return whole[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)


def _bytes(texts: pa.Array) -> NDArray[np.uint8]:
    data = texts.buffers()[2]
    return np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)


def _windows(data: NDArray[np.uint8], width: int) -> NDArray[np.unsignedinteger]:
    """Return the windows of the bytes as integers, including windows that reach from one text into the next."""
    count = max(data.size - width + 1, 0)
    if not count:
        return np.empty(0, np.uint64)
    return np.ndarray((count,), _TYPES[width], data.data, strides=(1,))


def _within(offsets: Ints, width: int) -> Ints:
    """Return the places of the windows that lie within one text."""
    counts = np.diff(offsets) - width + 1
    begins = np.repeat(offsets[:-1] - np.concatenate(([0], np.cumsum(counts)))[:-1], counts)
    return begins + np.arange(begins.size)
