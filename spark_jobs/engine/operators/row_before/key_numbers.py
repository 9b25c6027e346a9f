"""Numbers of keys: each distinct tuple of values gets the next number when the tuple comes for the first time.

Keys are compared as GROUP BY compares them: NULL equals NULL, NaN equals NaN, and -0.0 equals 0.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_jobs.engine.index import Ints
from spark_jobs.engine.index.key_tuples import KeyTuples, comparable, plain
from spark_jobs.engine.index.value_index import SoughtValues, ValueIndex

__all__ = ["KeyNumbers", "distinct_keys", "key_columns", "key_values", "null_masks"]

_RATIO = 8
"""New keys are merged with the last part unless that part has more than `_RATIO` times the number of new keys."""
_SMALL = 2_000
"""New keys and the last part are also merged if they have at most this many keys together."""
_LARGEST_BYTES = 1 << 30
"""Parts with more than this many bytes together are not merged: Arrow limits a column of texts to 2^31 bytes."""
_MASK_BITS = 62
"""The number of columns whose NULLs one integer marks, with a bit for each column."""


def key_columns(columns: Sequence[pa.Array]) -> list[pa.Array]:
    """Return the columns of keys, converted so that two keys are equal exactly if all their values are equal.

    NULL is replaced by a fixed value, and marked in masks.

    Args:
        columns: The values of BY; at least one column.

    Returns:
        For each column, a column of texts, bytes, decimals or int64 without NULLs; then the masks, one for each 62
        columns.
    """
    masks = [np.zeros(len(columns[0]), np.int64) for _ in range(0, len(columns), _MASK_BITS)]
    filled = []
    for place, column in enumerate(columns):
        values = comparable(plain(column))
        if values.null_count:
            nulls = values.is_null().to_numpy(zero_copy_only=False).astype(np.int64)
            masks[place // _MASK_BITS] |= nulls << (place % _MASK_BITS)
            values = values.fill_null(_nothing(values.type))
        filled.append(values)
    return [*filled, *map(pa.array, masks)]


def key_values(keys: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the original values of a column that `key_columns` returned.

    Args:
        keys: The column. Its original values must have no NULL, and must not be floating-point numbers.
        kind: The type of the original values.

    Example:
        >>> key_values(key_columns([pa.array([7], pa.date32())])[0], pa.date32())[0].as_py()
        datetime.date(1970, 1, 8)
    """
    return (keys.cast(pa.int32()) if pa.types.is_date32(kind) else keys).cast(kind)


def null_masks(masks: Sequence[pa.Array], places: Sequence[int]) -> Ints:
    """Return for each key an integer that marks the NULLs in some of its columns.

    Args:
        masks: The masks that `key_columns` returns after the columns.
        places: The columns, by their places in BY; only the first 62 are used.
    """
    found = np.zeros(len(masks[0]), np.int64)
    for bit, place in enumerate(places[:_MASK_BITS]):
        found |= ((masks[place // _MASK_BITS].to_numpy() >> (place % _MASK_BITS)) & 1) << bit
    return found


def _nothing(kind: pa.DataType) -> pa.Scalar:
    if pa.types.is_decimal(kind):
        return pa.scalar(Decimal(0), kind)
    return pa.scalar("" if pa.types.is_string(kind) else b"" if pa.types.is_binary(kind) else 0, kind)


def distinct_keys(keys: KeyTuples) -> tuple[Ints, Ints]:
    """Return the first row of each distinct key, and for each row the index of its key among the distinct keys."""
    hashes = keys.hashes()
    order = np.argsort(hashes, kind="stable")
    same_hash = hashes[order][1:] == hashes[order][:-1]
    neighbours = np.flatnonzero(same_hash)
    repeats = same_hash
    if not keys.take(order[neighbours]).same(keys.take(order[neighbours + 1])).all():
        order = keys.order()  # different keys share a hash
        repeats = keys.take(order).repeats()
    new = np.append(np.ones(min(order.size, 1), np.bool_), ~repeats)
    which = np.empty(order.size, np.int64)
    which[order] = np.cumsum(new) - 1
    return order[new], which


class _Part:
    """Keys with successive numbers, and an index that finds them."""

    def __init__(self, columns: Sequence[pa.Array], first: int) -> None:
        self.columns = columns
        self.first = first
        self._index = ValueIndex(KeyTuples(columns))

    def __len__(self) -> int:
        return len(self.columns[0])

    def find(self, probes: SoughtValues) -> tuple[Ints, Ints]:
        """Return the places of the probes that are keys of this part, and the numbers of these keys."""
        probe, row = self._index.find(probes, self._values)
        return probe, row.astype(np.int64) + self.first

    def _values(self, rows: NDArray[np.integer]) -> KeyTuples:
        places = pa.array(rows)
        return KeyTuples([column.take(places) for column in self.columns])

    @property
    def nbytes(self) -> int:
        return self._index.nbytes + sum(int(column.nbytes) for column in self.columns)


class KeyNumbers:
    """The distinct keys so far, numbered from 0, in parts that are merged as in a log-structured merge tree."""

    def __init__(self) -> None:
        """Begin without keys."""
        self._parts: tuple[_Part, ...] = ()
        self.count = 0
        """The number of keys."""

    def of(self, columns: Sequence[pa.Array]) -> Ints:
        """Return the number of each row's key; new keys are added.

        Args:
            columns: The keys, as `key_columns` returns them.
        """
        probes = SoughtValues(KeyTuples(columns))
        numbers = np.full(len(columns[0]), -1, np.int64)
        for part in self._parts:
            probe, number = part.find(probes)
            numbers[probe] = number
        missing = np.flatnonzero(numbers < 0)
        if missing.size:
            first, which = distinct_keys(probes.keys.take(missing))
            numbers[missing] = self.count + which
            places = pa.array(missing[first])
            self._add([column.take(places) for column in columns])
        return numbers

    def columns(self, numbers: Ints) -> list[pa.Array]:
        """Return the keys with some numbers, as columns that `key_columns` returned.

        Args:
            numbers: The numbers, which must ascend.

        Returns:
            The columns; an empty list if no key was ever added.
        """
        bounds = np.searchsorted(numbers, [part.first for part in self._parts] + [self.count])
        taken = []
        for part, first, last in zip(self._parts, bounds[:-1], bounds[1:], strict=True):
            places = pa.array(numbers[first:last] - part.first)
            taken.append([column.take(places) for column in part.columns])
        return [pa.concat_arrays(pieces) for pieces in zip(*taken, strict=True)]

    def _add(self, columns: Sequence[pa.Array]) -> None:
        kept, pieces, count = [*self._parts], [columns], len(columns[0])
        size = sum(int(column.nbytes) for column in columns)
        added = count
        while kept and _alike(kept[-1], count, size):
            pieces.insert(0, kept[-1].columns)
            count += len(kept[-1])
            size += kept.pop().nbytes
        merged = [pa.concat_arrays(parts) for parts in zip(*pieces, strict=True)]
        first = kept[-1].first + len(kept[-1]) if kept else 0
        self._parts = (*kept, _Part(merged, first))
        self.count += added

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return sum(part.nbytes for part in self._parts)


def _alike(older: _Part, count: int, size: int) -> bool:
    small = len(older) <= count * _RATIO or len(older) + count <= _SMALL
    return small and older.nbytes + size <= _LARGEST_BYTES
