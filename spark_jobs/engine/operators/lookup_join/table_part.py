"""A part of a table's replica: rows, each with the offset of the change that set it, and of the one that ended it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_jobs.engine.index import Ints
from spark_jobs.engine.index.key_tuples import KeyTuples, plain
from spark_jobs.engine.index.value_index import RowPairs, SoughtValues, ValueIndex
from spark_jobs.engine.rows.event_column import longest_value

__all__ = ["NEVER", "RATIO", "SMALL", "TablePart", "added"]

NEVER = int(np.iinfo(np.int64).max)
"""Replaces the offset of the change that ended a row, if there is no such change yet."""

RATIO = 8
"""The last two parts are merged unless the earlier one has more than `RATIO` times the rows of the later one."""
SMALL = 2_000
"""Two parts are also merged if they have at most this many rows together.

Building an index of so few rows again takes less time than looking up rows in two indexes.
"""
_DEAD = 4
"""A part is rebuilt when more than 1 / `_DEAD` of its rows are no longer visible at any pin."""
_LARGEST_BYTES = 1 << 30
"""Parts with more than this many bytes together are not merged: Arrow limits a column of texts to 2^31 bytes."""
_SAMPLE = 8_192
"""The number of texts that are sampled to tell whether the values of a column repeat."""


class TablePart:
    """Rows of a table in the order of their keys; a key may have several rows, which are visible at different pins.

    A row is visible at a pin if the change that set the row is before the pin, and if no change before the pin has
    superseded or removed the row: ``begun < pin <= ended``, where all three are offsets in the row's partition.
    """

    def __init__(
        self, columns: Mapping[str, pa.Array], partition: NDArray[np.int32], begun: Ints | None, ended: Ints | None
    ) -> None:
        """Keep the rows.

        Args:
            columns: The columns by name; rows must be sorted by the PRIMARY KEY.
            partition: The partition of the change that set each row.
            begun: The offset of the change that set each row; None if all these offsets are before every pin.
            ended: The offset of the change that superseded or removed each row; `NEVER` for a row without such a
                change. None if no row has such a change.
        """
        self.columns = {name: _packed(array) for name, array in columns.items()}
        self.partition = partition
        self.begun = begun
        self.ended = ended
        self._ends = 0 if ended is None else int(np.count_nonzero(ended != NEVER))
        self._indexes: dict[tuple[str, ...], ValueIndex] = {}
        self._longest: int | None = None

    @classmethod
    def of(
        cls, columns: Mapping[str, pa.Array], partition: NDArray[np.int32], begun: Ints, ended: Ints, horizon: Ints
    ) -> TablePart:
        """Return a part; `begun` or `ended` is left out if no pin from the horizon on needs these offsets."""
        young = bool((begun >= horizon[partition]).any())
        return cls(columns, partition, begun if young else None, ended if (ended != NEVER).any() else None)

    def __len__(self) -> int:
        return int(self.partition.size)

    def find(self, columns: tuple[str, ...], probes: SoughtValues) -> RowPairs:
        """Return the rows whose columns equal a probe's values, including rows that are not visible."""
        index = self._indexes.get(columns)
        if index is None:
            index = self._indexes[columns] = ValueIndex(KeyTuples([self.columns[name] for name in columns]))
        return index.find(probes, lambda rows: self.values(columns, rows))

    def values(self, columns: Sequence[str], rows: NDArray[np.integer]) -> KeyTuples:
        """Return the values of some columns in some rows."""
        places = pa.array(rows)
        return KeyTuples([self.columns[name].take(places) for name in columns])

    def end(self, rows: NDArray[np.int32], offsets: Ints) -> None:
        """Note that the changes at some offsets superseded or removed rows."""
        if self.ended is None:
            self.ended = np.full(len(self), NEVER)
        self.ended[rows] = offsets
        self._ends += int(rows.size)

    def visible(self, rows: NDArray[np.integer], pins: Ints) -> NDArray[np.bool_] | None:
        """Tell which of some rows are visible at a pin, given as offsets by partition; None if all are visible."""
        if self.begun is None and self.ended is None:
            return None
        pin = pins.take(self.partition.take(rows))
        seen = np.ones(rows.size, np.bool_) if self.begun is None else self.begun.take(rows) < pin
        return seen if self.ended is None else seen & (self.ended.take(rows) >= pin)

    def useful(self, horizon: Ints) -> NDArray[np.bool_] | None:
        """Tell which rows are visible at any pin from the horizon on; None if all rows are."""
        return None if self.ended is None else self.ended >= horizon[self.partition]

    def wasteful(self, horizon: Ints) -> bool:
        """Tell whether many rows are no longer visible at any pin from the horizon on."""
        if self._ends * _DEAD <= len(self):
            return False
        useful = self.useful(horizon)
        return useful is not None and (len(self) - int(np.count_nonzero(useful))) * _DEAD > len(self)

    @property
    def longest(self) -> int:
        """An upper bound for the bytes of a row's texts: the sum of the longest values of all columns."""
        if self._longest is None:
            values = (
                array.dictionary if pa.types.is_dictionary(array.type) else array for array in self.columns.values()
            )
            self._longest = sum(map(longest_value, values))
        return self._longest

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        times = sum(array.nbytes for array in (self.partition, self.begun, self.ended) if array is not None)
        indexes = sum(index.nbytes for index in self._indexes.values())
        return int(times + indexes + sum(array.nbytes for array in self.columns.values()))


def added(parts: tuple[TablePart, ...], part: TablePart, key: Sequence[str], horizon: Ints) -> tuple[TablePart, ...]:
    """Return the parts with a new part added. Merged parts lose the rows that are no longer visible at any pin.

    The parts are merged as in a log-structured merge tree, like those of a constant table: a part has more than `RATIO`
    times the rows of the next part, unless the two together exceed `_LARGEST_BYTES`.

    Args:
        parts: The parts, from the largest and oldest to the smallest and newest.
        part: The new part.
        key: The columns of the PRIMARY KEY.
        horizon: The oldest pin at which rows may be looked up, as offsets by partition.
    """
    kept, merged = list(parts), [part]
    rows, size = len(part), part.nbytes
    wasteful = next((place for place, old in enumerate(parts) if old.wasteful(horizon)), len(parts))
    while kept and (len(kept) > wasteful or _alike(kept[-1], rows, size)):
        merged.insert(0, kept.pop())
        rows += len(merged[0])
        size += merged[0].nbytes
    if len(merged) == 1:
        return (*kept, part) if len(part) else tuple(kept)
    whole = _merged(merged, key, horizon)
    return (*kept, whole) if len(whole) else tuple(kept)


def _alike(older: TablePart, rows: int, size: int) -> bool:
    small = len(older) <= rows * RATIO or len(older) + rows <= SMALL
    return small and older.nbytes + size <= _LARGEST_BYTES


def _merged(parts: Sequence[TablePart], key: Sequence[str], horizon: Ints) -> TablePart:
    """Return one part with the useful rows of some parts; the parts must be ordered from old to new."""
    useful = [part.useful(horizon) for part in parts]
    rows = [
        np.arange(len(part)) if mask is None else np.flatnonzero(mask) for part, mask in zip(parts, useful, strict=True)
    ]
    places = [None if mask is None else pa.array(kept) for mask, kept in zip(useful, rows, strict=True)]

    def joined(name: str) -> pa.Array:
        arrays = (part.columns[name] for part in parts)
        taken = [array if kept is None else array.take(kept) for array, kept in zip(arrays, places, strict=True)]
        return pa.concat_arrays([plain(array) for array in taken])

    keys = {name: joined(name) for name in key}
    order = KeyTuples(list(keys.values())).order()
    at = pa.array(order)
    columns = {name: (keys[name] if name in keys else joined(name)).take(at) for name in parts[0].columns}
    partition = np.concatenate([part.partition[kept] for part, kept in zip(parts, rows, strict=True)])[order]
    begun = [_filled(part.begun, -1, len(part))[kept] for part, kept in zip(parts, rows, strict=True)]
    ended = [_filled(part.ended, NEVER, len(part))[kept] for part, kept in zip(parts, rows, strict=True)]
    return TablePart.of(columns, partition, np.concatenate(begun)[order], np.concatenate(ended)[order], horizon)


def _filled(offsets: Ints | None, value: int, count: int) -> Ints:
    return np.full(count, value) if offsets is None else offsets


def _packed(array: pa.Array) -> pa.Array:
    """Return texts dictionary-encoded if that saves memory, and any other array unchanged."""
    if not pa.types.is_string(array.type):
        return array
    if not _repeats(array):
        return array
    encoded = array.dictionary_encode()
    return encoded if encoded.nbytes < array.nbytes else array


def _repeats(array: pa.Array) -> bool:
    """Tell whether values occur twice or more on average, by a sample drawn with replacement.

    Among n draws from D equally frequent values, about D * (1 - exp(-n / D)) are distinct. The draws must be random:
    rows are sorted by key, so draws at equal distances would miss the repeats in the first column of the key.
    """
    draws, half = min(len(array), _SAMPLE), len(array) / 2
    if not draws:
        return False
    sample = array.take(pa.array(np.random.default_rng(len(array)).integers(0, len(array), draws)))
    return len(sample.unique()) <= -half * math.expm1(-draws / half)
