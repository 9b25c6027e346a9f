"""Fills in values that records lack (Debezium's placeholder): a row keeps the value of its key's previous row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_jobs.engine.index import Ints
from spark_jobs.engine.index.key_tuples import KeyTuples, plain
from spark_jobs.engine.index.value_index import SoughtValues
from spark_jobs.engine.operators.lookup_join.table_part import NEVER, TablePart

__all__ = ["OldRows", "with_kept_values"]


class OldRows:
    """The row that each key has in the table before some changes."""

    def __init__(
        self, parts: Sequence[TablePart], key: Sequence[str], keys: KeyTuples, partitions: NDArray[np.int32]
    ) -> None:
        """Look the rows up.

        Args:
            parts: The rows of the table.
            key: The columns of the PRIMARY KEY.
            keys: The keys, which must be distinct within each partition.
            partitions: The partition of each key's changes.
        """
        self._parts = parts
        self._found: list[tuple[Ints, Ints]] = []
        """For each part of the table: the places of the keys that have a row in this part, and these rows."""
        probes = SoughtValues(keys)
        for part in parts:
            probe, row = part.find(tuple(key), probes)
            is_present = part.partition[row] == partitions[probe]
            if part.ended is not None:
                is_present &= part.ended[row] == NEVER
            self._found.append((probe[is_present], row[is_present]))

    def column(self, name: str, count: int) -> tuple[list[pa.Array], Ints]:
        """Return the values of a column in these rows, and the place of each key's value; -1 for a key without a row.

        Args:
            name: The column.
            count: The number of keys.
        """
        values: list[pa.Array] = []
        places, total = np.full(count, -1), 0
        for part, (probe, row) in zip(self._parts, self._found, strict=True):
            values.append(plain(part.columns[name].take(pa.array(row))))
            places[probe] = total + np.arange(row.size)
            total += row.size
        return values, places


def with_kept_values(
    values: pa.Array, row: NDArray[np.int32], keeps: NDArray[np.bool_], first: Ints, old: tuple[list[pa.Array], Ints]
) -> pa.Array:
    """Return the value of a column in the row that each change sets.

    The changes must be sorted by key; the changes of a key must be in the order of their records.

    Args:
        values: The column in the rows that changes set.
        row: The row that each change sets, as a place in `values`; -1 if the change removes the row.
        keeps: For each place in `values`, whether its row keeps the value of the key's previous row.
        first: The first change of each key.
        old: The result of `OldRows.column`: the values before the first change of each key.

    Returns:
        The values; NULL for a removal, and for a row that keeps a value although its key has no previous row.
    """
    keeping = (row >= 0) & keeps[row]
    pointer = row.astype(np.int64)
    starts = first[keeping[first]]
    before = old[1][np.flatnonzero(keeping[first])]
    pointer[starts] = np.where(before < 0, -1, len(values) + before)
    concrete = ~keeping
    concrete[first] = True
    pointer = pointer[np.maximum.accumulate(np.where(concrete, np.arange(row.size), 0))]
    pool = pa.concat_arrays([values, *old[0]])
    return pool.take(pa.array(pointer, mask=pointer < 0))
