"""A part of the rows in the state of frames, ordered by the number of their key, then by arrival."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_jobs.engine.index import Ints

__all__ = ["FramePart"]


class FramePart(NamedTuple):
    """Some rows of the state of frames."""

    numbers: Ints
    """The number of each row's key, ascending."""
    offsets: Ints
    times: Ints
    """The record time of each row in epoch milliseconds."""
    columns: Mapping[str, pa.Array]
    """By name, the columns from which values are computed; a part of older rows may lack some of these columns."""

    @classmethod
    def of(cls, numbers: Ints, offsets: Ints, times: Ints, columns: Mapping[str, pa.Array]) -> FramePart:
        """Return a part of rows that are given in the order of arrival."""
        return cls(numbers, offsets, times, columns).take(np.argsort(numbers, kind="stable"))

    def numbered(self, numbers: Ints) -> FramePart:
        """Return the same rows with other numbers of their keys; `numbers` has the new number of each row's key."""
        return FramePart.of(numbers, self.offsets, self.times, self.columns)

    @classmethod
    def empty(cls) -> FramePart:
        """Return no rows."""
        none = np.empty(0, np.int64)
        return cls(none, none, none, {})

    @classmethod
    def appended(cls, parts: Sequence[FramePart], names: Iterable[str]) -> FramePart:
        """Return the rows of the first part, then of the second, and so on, with the columns in `names`.

        The result is not ordered by key.
        """
        return cls(
            np.concatenate([part.numbers for part in parts]),
            np.concatenate([part.offsets for part in parts]),
            np.concatenate([part.times for part in parts]),
            {name: pa.concat_arrays([part.column(name, parts) for part in parts]) for name in names},
        )

    @classmethod
    def joined(cls, parts: Sequence[FramePart]) -> FramePart:
        """Return one part with the rows of all parts, ordered by key.

        The rows of each part must have come before the rows of the next part.
        """
        rows = cls.appended(parts, dict.fromkeys(name for part in parts for name in part.columns))
        return rows.take(np.argsort(rows.numbers, kind="stable"))

    def column(self, name: str, others: Iterable[FramePart]) -> pa.Array:
        """Return a column; if the part lacks the column, return NULLs of the type that the column has in `others`."""
        found = self.columns.get(name)
        if found is None:
            kind = next(part.columns[name].type for part in others if name in part.columns)
            return pa.nulls(self.numbers.size, kind)
        return found

    def take(self, rows: NDArray[np.integer]) -> FramePart:
        """Return some rows."""
        places = pa.array(rows)
        columns = {name: column.take(places) for name, column in self.columns.items()}
        return FramePart(self.numbers[rows], self.offsets[rows], self.times[rows], columns)

    def of_keys(self, keys: Ints) -> FramePart:
        """Return the rows of some keys; the numbers of the keys must ascend."""
        first = np.searchsorted(self.numbers, keys, side="left")
        size = np.searchsorted(self.numbers, keys, side="right") - first
        begins = np.cumsum(size) - size
        return self.take(np.arange(size.sum()) + np.repeat(first - begins, size))

    @property
    def size(self) -> int:
        """The number of rows."""
        return int(self.numbers.size)

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        own = self.numbers.nbytes + self.offsets.nbytes + self.times.nbytes
        return int(own + sum(column.nbytes for column in self.columns.values()))
