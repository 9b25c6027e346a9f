"""Helpers for arrays of rows: slices of bounded size, and distinct rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from spark_jobs.engine.index import Ints

__all__ = ["numbered", "slices"]

_DENSE = 16
"""If a table has at most this many rows for each given row, distinct rows are found by marking; else by sorting."""


def slices(total: NDArray[np.int64], most: int) -> Iterator[tuple[int, int]]:
    """Yield slices of rows whose sizes add up to at most `most`; a larger row is a slice of its own.

    A slice is the index of its first row, and the index after its last row.

    Args:
        total: The running total of the rows' sizes.
        most: The largest size of a slice.
    """
    first = 0
    while first < total.size:
        before = int(total[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(total, before + most, side="right")))
        yield first, last
        first = last


def numbered(rows: NDArray[np.integer], count: int) -> tuple[Ints, Ints]:
    """Return the distinct rows, ascending, and for each given row its index among the distinct rows.

    Args:
        rows: Rows of a table.
        count: The number of rows of the table.
    """
    if count > _DENSE * rows.size:
        distinct, which = np.unique(rows.astype(np.int64), return_inverse=True)
        return distinct, which
    seen = np.zeros(count, np.bool_)
    seen[rows] = True
    return np.flatnonzero(seen), (np.cumsum(seen) - 1)[rows]
