"""A single bound: rows sorted by their constant, so an event's rows lie at one end."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from spark_jobs.engine.index.ranges import Ints, Ranges

__all__ = ["OrderedIndex", "search"]


_MANY = 4_096
"""Number of keys from which on sorting the values first makes the search faster."""


def search(keys: Ints, values: Ints, *, right: bool, order: NDArray[np.intp] | None = None) -> Ints:
    """Return the insertion point of each value among sorted keys.

    Sorting the values first makes neighbouring searches take the same path: twice as fast over a million keys.

    Args:
        keys: Where to search.
        values: The values to search for.
        right: Whether to come after equal keys.
        order: The result of `np.argsort` for the values, if known.
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
    """Rows of ``column <op> constant`` by their constants."""

    def __init__(self, op: str, keys: Ints, rows: NDArray[np.int32]) -> None:
        """Index rows by their keys for one operator of ``< <= > >=``, the column on its left."""
        order = np.argsort(keys, kind="stable")
        self.op = op
        self.keys = keys[order]
        self.rows = rows[order]

    def cuts(self, values: Ints, order: NDArray[np.intp] | None = None) -> Ints:
        """Return for each value where the rows with a TRUE comparison begin or end; `order` as in `search`."""
        # value < constant: constants right of all equal ones; value >= constant: up to the last equal one.
        return search(self.keys, values, right=self.op in {"<", ">="}, order=order)

    def reach(self, values: Ints, order: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return which values meet any row, by two steps of a search instead of one for each value.

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
        """Return the rows of each event, by the place of its value from `cuts`."""
        if self.op in {"<", "<="}:
            return Ranges(self.rows, cut, np.full(cut.size, self.keys.size))
        return Ranges(self.rows, np.zeros(cut.size, np.int64), cut)

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self.keys.nbytes + self.rows.nbytes
