"""Interfaces of rows: their columns, and the positions and times of the source records that they come from.

Expressions read only columns, so the same code evaluates them over events, elements of arrays and computed values.
"""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.model.expression import Reference

__all__ = ["Columns", "PlacedColumns", "SingleColumn", "TakenPlaces"]


class Columns(Protocol):
    """Rows, numbered from 0, as columns by name."""

    @property
    def count(self) -> int:
        """The number of rows."""

    def column(self, name: Reference) -> pa.Array:
        """Return the column's values."""

    def encoded(self, name: Reference) -> pa.Array:
        """Return the column's values, dictionary-encoded if their distinct values are known without a search."""


class PlacedColumns(Columns, Protocol):
    """Rows that come from source records."""

    @property
    def partitions(self) -> NDArray[np.int32]:
        """The source record's partition, by row."""

    @property
    def offsets(self) -> NDArray[np.int64]:
        """The source record's offset, by row."""

    @property
    def time_ms(self) -> NDArray[np.int64]:
        """The source record's time, by row, in epoch milliseconds."""


class TakenPlaces:
    """The positions and times of rows that are taken from other rows; each array is made when it is first read."""

    def __init__(self, placed: PlacedColumns, taken: NDArray[np.int64]) -> None:
        """Take rows.

        Args:
            placed: The rows to take from.
            taken: For each row here, its number in `placed`.
        """
        self._placed = placed
        self._taken = taken

    @cached_property
    def partitions(self) -> NDArray[np.int32]:
        """The source record's partition, by row."""
        return self._placed.partitions[self._taken]

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """The source record's offset, by row."""
        return self._placed.offsets[self._taken]

    @cached_property
    def time_ms(self) -> NDArray[np.int64]:
        """The source record's time, by row, in epoch milliseconds."""
        return self._placed.time_ms[self._taken]


class SingleColumn:
    """Rows with a single column, which is returned for every name."""

    def __init__(self, values: pa.Array) -> None:
        """Take the column's values."""
        self.count = len(values)
        self._values = values

    def column(self, name: Reference) -> pa.Array:
        """Return the values."""
        return self._values

    def encoded(self, name: Reference) -> pa.Array:
        """Return the values, not dictionary-encoded."""
        return self._values
