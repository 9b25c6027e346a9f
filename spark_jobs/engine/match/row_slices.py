"""Rows, cut into slices of bounded size, and numbered by common values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from spark_jobs.engine.index import Ints

__all__ = ["numbered", "slices"]

_DENSE = 16
"""Rows of a table for each pair, up to which the rows that are met are found by marking them."""


def slices(total: NDArray[np.int64], most: int) -> Iterator[tuple[int, int]]:
    """Cut rows, given by the running total of their sizes, into slices of bounded size, none of them empty."""
    first = 0
    while first < total.size:
        before = int(total[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(total, before + most, side="right")))
        yield first, last
        first = last


def numbered(rows: NDArray[np.integer], count: int) -> tuple[Ints, Ints]:
    """Return the distinct rows, and for each given row its place among them; `count` is the number of all rows."""
    if count > _DENSE * rows.size:
        distinct, which = np.unique(rows.astype(np.int64), return_inverse=True)
        return distinct, which
    seen = np.zeros(count, np.bool_)
    seen[rows] = True
    return np.flatnonzero(seen), (np.cumsum(seen) - 1)[rows]
