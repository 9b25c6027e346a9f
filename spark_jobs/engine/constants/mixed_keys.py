"""The keys of small tables that compare different columns: one look-up for each column, not for each set of columns.

A row is found by its rarest constant, the one that the fewest rows have. The row's other constants are then compared
with the event's values. For example, if each of 5,000 tables compares three of 50 columns, a batch needs only 50
look-ups.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.model.expression import Reference
from grouping.model.sql_type import SqlType
from spark_jobs.engine.constants.constant_rows import concatenated
from spark_jobs.engine.constants.shared_conjunct import SharedPart
from spark_jobs.engine.index import EqualityIndex, Ints, Ranges
from spark_jobs.engine.index.key_codes import KeyCodes
from spark_jobs.engine.rows.event_column import EventColumns

__all__ = ["MixedKeys"]

_PAIRS = 1_000_000
"""The largest number of pairs of an event and a row with the same first key that are compared at once."""

_KeyColumn = tuple[Reference, SqlType, SqlType]


class MixedKeys:
    """The keys of rows whose tables have different key columns; no key may be a set."""

    def __init__(self, members: Sequence[SharedPart], starts: Ints) -> None:
        """Index the rows of all members.

        Args:
            members: The parts.
            starts: For each member, the number of its first row.
        """
        arrays: dict[_KeyColumn, list[pa.Array]] = {}
        keys = [member.shape.shared_key or () for member in members]
        slots = [[slot for _, slot in member.shape.key_terms] for member in members]
        for member, key, own in zip(members, keys, slots, strict=True):
            for column, slot in zip(key, own, strict=True):
                arrays.setdefault(column, []).append(member.rows.constants[slot])
        numbers = {column: number for number, column in enumerate(arrays)}
        constants = [concatenated(values) for values in arrays.values()]
        self._codes = [KeyCodes(*column, values) for column, values in zip(arrays, constants, strict=True)]
        found = [codes.constants(values) for codes, values in zip(self._codes, constants, strict=True)]
        width, size = max(map(len, keys)), sum(len(member.rows) for member in members)
        self._columns = np.zeros((width, size), np.int32)
        """By place of a key in its row, and by number of the row: the number of the key's column."""
        self._wanted = np.full((width, size), -2, np.int32)
        """The code of each key's constant, at the same places as in `_columns`.

        The code is -1 for NULL, and -2 if the row has fewer keys.
        """
        taken = [0] * len(self._codes)
        for member, key, start in zip(members, keys, starts.tolist(), strict=True):
            rows = slice(start, start + len(member.rows))
            for place, number in enumerate(numbers[column] for column in key):
                self._columns[place, rows] = number
                self._wanted[place, rows] = found[number][taken[number] : taken[number] + len(member.rows)]
                taken[number] += len(member.rows)
        self._rarest_first()
        self._by_first = [self._index_of(number) for number in range(len(self._codes))]

    def _rarest_first(self) -> None:
        """Swap the first key of each row with its rarest key."""
        begins = np.cumsum([0, *(codes.count for codes in self._codes)])
        constants = begins[self._columns] + np.maximum(self._wanted, 0)
        real = self._wanted >= 0
        rows_with = np.bincount(constants[real], minlength=int(begins[-1]) + 1)[constants]
        rows_with[~real] = np.iinfo(np.int64).max
        rarest, rows = rows_with.argmin(axis=0), np.arange(real.shape[1])
        for keys in (self._columns, self._wanted):
            keys[0, rows], keys[rarest, rows] = keys[rarest, rows], keys[0, rows].copy()

    def _index_of(self, number: int) -> EqualityIndex:
        """Index the rows whose first key is in a given column."""
        known = ~np.any(self._wanted == -1, axis=0)  # NULL equals nothing: a row with NULL as a key is never found
        rows = np.flatnonzero(known & (self._columns[0] == number)).astype(np.int32)
        return EqualityIndex(self._wanted[0, rows], self._codes[number].count, rows)

    def find(self, events: EventColumns) -> tuple[Ints, Ranges]:
        """Return the events that have all keys of at least one row, and the rows of each of these events."""
        values = np.stack([codes.find(events) for codes in self._codes])
        event_parts, row_parts = [np.empty(0, np.int64)], [np.empty(0, np.int32)]
        for number, index in enumerate(self._by_first):
            known = np.flatnonzero(values[number] >= 0)
            if not index.rows.size or not known.size:
                continue
            for places, rows in index.find(values[number, known]).pairs(_PAIRS):
                mine = known[places]
                same = self._same(values, mine, rows)
                event_parts.append(mine[same])
                row_parts.append(rows[same])
        found, rows = np.concatenate(event_parts), np.concatenate(row_parts)
        order = np.argsort(found, kind="stable")
        distinct, first = np.unique(found[order], return_index=True)
        return distinct, Ranges(rows[order], first, np.append(first[1:], found.size)[: first.size])

    def _same(self, values: NDArray[np.int32], events: Ints, rows: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return for each pair of an event and a row whether the event also has the row's keys after the first."""
        same = np.ones(rows.size, np.bool_)
        for place in range(1, len(self._columns)):
            wanted = self._wanted[place, rows]
            same &= (wanted == -2) | (values[self._columns[place, rows], events] == wanted)
        return same

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        indexes = sum(index.nbytes for index in self._by_first) + sum(codes.nbytes for codes in self._codes)
        return int(self._columns.nbytes + self._wanted.nbytes + indexes)
