"""The index for equality and one bound: rows sorted by code, and then by constant."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spark_jobs.engine.index.ranges import Ints, Ranges

__all__ = ["CompositeIndex"]


class CompositeIndex:
    """The constant rows of ``a = :c0 AND b <op> :c1``. Each distinct constant of ``a`` has a code.

    The rows of one code are a sorted run. A binary search finds each event's value within the run of its code, for all
    events at once. The number of steps depends on the longest run, not on the number of all rows: a run of a few
    hundred rows takes eight steps.
    """

    def __init__(self, op: str, codes: NDArray[np.int32], count: int, keys: Ints, rows: NDArray[np.int32]) -> None:
        """Index rows.

        Args:
            op: The operator: ``<``, ``<=``, ``>`` or ``>=``; the column is on its left.
            codes: The code of each row.
            count: The number of codes; codes are in [0, count).
            keys: The key of each row's constant.
            rows: The numbers of the rows.
        """
        order = np.lexsort((keys, codes))
        self.op = op
        self.keys = keys[order]
        self.rows = rows[order]
        self.starts = np.zeros(count + 1, np.int32)
        np.cumsum(np.bincount(codes, minlength=count), out=self.starts[1:])

    def find(self, codes: NDArray[np.int32], values: Ints) -> Ranges:
        """Return the rows that each event satisfies, given its code (-1 if it has none) and its value."""
        first = self.starts[codes].astype(np.int64)
        last = np.where(codes >= 0, self.starts[codes + 1], first)
        cut = self._bisect(first, last, values)
        return Ranges(self.rows, cut, last) if self.op in {"<", "<="} else Ranges(self.rows, first, cut)

    def _bisect(self, first: Ints, last: Ints, values: Ints) -> Ints:
        """Return for each event the first position in its run whose key is greater than the event's value.

        For the operators ``<=`` and ``>``, the key may also equal the value.
        """
        low, high = first.copy(), last.copy()
        beyond = np.greater if self.op in {"<", ">="} else np.greater_equal
        open_ = np.flatnonzero(low < high)
        while open_.size:
            middle = (low[open_] + high[open_]) >> 1
            past = beyond(self.keys[middle], values[open_])
            high[open_[past]] = middle[past]
            low[open_[~past]] = middle[~past] + 1
            open_ = open_[low[open_] < high[open_]]
        return low

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self.keys.nbytes + self.rows.nbytes + self.starts.nbytes
