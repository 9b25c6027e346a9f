"""Tuples of column values as keys: their hashes, and their equality and order as in SQL.

NaN equals itself and is greater than all numbers; -0.0 equals 0.0; texts are ordered by their UTF-8 bytes, and BINARY
values by their bytes. Different values may have equal hashes.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_jobs.engine.index import Ints, mix
from spark_jobs.engine.rows.arrays import Hashes
from spark_jobs.engine.rows.event_column import hash_strings

__all__ = ["Hashes", "KeyTuples", "comparable", "plain"]


_SEED = np.uint64(secrets.randbits(64))
_ODD = np.uint64(0x9E3779B97F4A7C15)


def plain(array: pa.Array) -> pa.Array:
    """Return an array that is not dictionary-encoded."""
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


class KeyTuples:
    """The rows of some columns of equal length, each row a tuple of values."""

    def __init__(self, columns: Sequence[pa.Array]) -> None:
        """Take one or more columns."""
        self._columns = [comparable(plain(column)) for column in columns]

    def __len__(self) -> int:
        return len(self._columns[0])

    def known(self) -> NDArray[np.intp] | None:
        """Return the positions at which no column is NULL; None if no column has a NULL."""
        with_nulls = [column for column in self._columns if column.null_count]
        if not with_nulls:
            return None
        known = np.logical_and.reduce([column.is_valid().to_numpy(zero_copy_only=False) for column in with_nulls])
        return np.flatnonzero(known)

    def hashes(self) -> Hashes:
        """Return a hash for each row, with a random seed of this process; arbitrary for a row with a NULL."""
        found = _hashed(self._columns[0])
        for column in self._columns[1:]:
            found = mix((found * _ODD + (_hashed(column) ^ _SEED)).view(np.int64))
        return found

    def take(self, rows: NDArray[np.integer]) -> KeyTuples:
        """Return some of the rows."""
        places = pa.array(rows)
        return KeyTuples([column.take(places) for column in self._columns])

    def same(self, other: KeyTuples) -> NDArray[np.bool_]:
        """Return for each row whether it equals the row of `other` at the same place. Neither side may have NULLs."""
        equal = [_equal(left, right) for left, right in zip(self._columns, other._columns, strict=True)]
        same: NDArray[np.bool_] = np.logical_and.reduce(equal)
        return same

    def order(self, then: NDArray[np.integer] | None = None) -> Ints:
        """Return the indices that sort the rows by the first column, then by the next; equal rows keep their order.

        Args:
            then: A further sort key after all columns, without NULLs; None for no further key.
        """
        columns = self._columns if then is None else [*self._columns, pa.array(then)]
        if len(columns) == 1:
            order: Ints = pc.sort_indices(columns[0]).to_numpy().astype(np.int64)
            return order
        names = [str(number) for number in range(len(columns))]
        table = pa.table(dict(zip(names, columns, strict=True)))
        return np.asarray(pc.sort_indices(table, sort_keys=[(name, "ascending") for name in names]), np.int64)

    def repeats(self) -> NDArray[np.bool_]:
        """Return for each row after the first whether it equals the preceding row; the rows must be sorted."""
        if len(self) < 2:
            return np.zeros(0, np.bool_)
        before = KeyTuples([column.slice(0, len(column) - 1) for column in self._columns])
        return before.same(KeyTuples([column.slice(1) for column in self._columns]))


def comparable(column: pa.Array) -> pa.Array:
    """Return the column as texts, bytes, decimals or int64, with the same equality and order as its values in SQL."""
    kind = column.type
    if _is_text(kind) or pa.types.is_decimal(kind) or pa.types.is_int64(kind):
        return column
    if not pa.types.is_floating(kind):
        return (column.cast(pa.int32()) if pa.types.is_date32(kind) else column).cast(pa.int64())
    numbers = column.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0  # -0.0 + 0.0 is 0.0
    bits = np.where(np.isnan(numbers), np.nan, numbers).view(
        np.int64
    )  # all NaNs get the same bits, with a positive sign
    mask = ~column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else None
    return pa.array(bits ^ ((bits >> 63) & np.int64(0x7FFFFFFFFFFFFFFF)), mask=mask)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _hashed(column: pa.Array) -> Hashes:
    if _is_text(column.type):
        return hash_strings(column)
    if pa.types.is_decimal(column.type):
        words = np.frombuffer(column.buffers()[1], np.int64)[2 * column.offset : 2 * (column.offset + len(column))]
        return mix((mix(words[1::2]) * _ODD + words[::2].view(np.uint64)).view(np.int64))
    return mix(column.fill_null(0).to_numpy(zero_copy_only=False))


def _equal(left: pa.Array, right: pa.Array) -> NDArray[np.bool_]:
    if pa.types.is_int64(left.type):
        equal: NDArray[np.bool_] = left.to_numpy() == right.to_numpy()
        return equal
    same: NDArray[np.bool_] = pc.equal(left, right).to_numpy(zero_copy_only=False)
    return same
