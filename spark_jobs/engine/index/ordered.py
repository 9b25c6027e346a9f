"""The index for a single bound: rows sorted by their constants. An event's rows are at one end of this order."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from spark_jobs.engine.index.ranges import Ints, Ranges

__all__ = ["OrderedIndex", "search"]


_MANY = 4_096
"""With at least this many keys, the search is faster if the values are sorted first."""


def search(keys: Ints, values: Ints, *, right: bool, order: NDArray[np.intp] | None = None) -> Ints:
    """Return the insertion point of each value among sorted keys.

    If the values are sorted, successive searches read nearly the same keys, so a search over a million keys takes half
    the time.

    Args:
        keys: The sorted keys.
        values: The values to search for.
        right: Whether the insertion point is after the keys that equal the value; otherwise it is before them.
        order: The result of `np.argsort` for the values; None if it is not known.
    """
    side: Literal["left", "right"] = "right" if right else "left"
    if order is None:
        if keys.size < _MANY:
            return np.searchsorted(keys, values, side=side)
        order = np.argsort(values)
    found = np.empty(values.size, np.int64)
    found[order] = np.searchsorted(keys, values[order], side=side)
    return found


class OrderedIndex:
    """The constant rows of ``column <op> constant``, sorted by their constants."""

    def __init__(self, op: str, keys: Ints, rows: NDArray[np.int32]) -> None:
        """Index rows by their keys, for one of the operators ``< <= > >=`` with the column on its left."""
        order = np.argsort(keys, kind="stable")
        self.op = op
        self.keys = keys[order]
        self.rows = rows[order]

    def cuts(self, values: Ints, order: NDArray[np.intp] | None = None) -> Ints:
        """Return for each value the position at which the rows that it satisfies begin or end.

        The rows begin there for the operators ``<`` and ``<=``, and end there for ``>`` and ``>=``. The argument
        `order` is that of `search`.
        """
        # For "<" the rows begin after the constants that equal the value; for ">=" the rows end after them.
        return search(self.keys, values, right=self.op in {"<", ">="}, order=order)

    def reach(self, values: Ints, order: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the positions of the values that satisfy at least one row.

        Only the largest or the smallest key is searched among the sorted values, not each value among the keys.

        Args:
            values: The values.
            order: The result of `np.argsort` for the values.
        """
        if not self.keys.size:
            return order[:0]
        up = self.op in {"<", "<="}
        side: Literal["left", "right"] = "left" if self.op in {"<", ">="} else "right"
        end = int(np.searchsorted(values, self.keys[-1 if up else 0], side=side, sorter=order))
        return order[:end] if up else order[end:]

    def at(self, cut: Ints) -> Ranges:
        """Return the rows of each event, given the result of `cuts` for its value."""
        if self.op in {"<", "<="}:
            return Ranges(self.rows, cut, np.full(cut.size, self.keys.size))
        return Ranges(self.rows, np.zeros(cut.size, np.int64), cut)

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self.keys.nbytes + self.rows.nbytes
