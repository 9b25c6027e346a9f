"""The ids of stores, and their partitions of the topic `cq.pending`, by the numbers that a task gives to stores."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grouping.digests.pending_matches import ID_BYTES
from spark_jobs.engine.index import Ints
from spark_jobs.engine.operators.aggregate.panes import lengthened
from spark_jobs.engine.rows.arrays import distinct_values
from spark_jobs.engine.rows.matches import Matches

__all__ = ["StoreNames"]

_ID = np.dtype(f"V{ID_BYTES}")
_AS_NUMBERS = np.dtype([("high", ">u8"), ("low", ">u4")])
"""An id as two numbers, which sort as the bytes of the id do."""


class StoreNames:
    """The stores of a task's matches, by number."""

    def __init__(self) -> None:
        self._ids = np.zeros(0, _ID)
        self._partitions = np.zeros(0, np.int32)

    def add(self, matches: Matches, rows: Ints) -> None:
        """Take in the stores of some matches; there must be at least one match."""
        numbers = matches.number[rows]
        count = int(numbers.max()) + 1
        self._ids, self._partitions = lengthened(self._ids, count), lengthened(self._partitions, count)
        ids = np.frombuffer(matches.destination.buffers()[1], _ID)[matches.destination.offset :]
        self._ids[numbers] = ids[rows]
        self._partitions[numbers] = matches.partition[rows]

    def partitions(self, stores: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the partition of `cq.pending` of each store."""
        return self._partitions[stores]

    def ids(self, stores: NDArray[np.int32]) -> NDArray[np.uint8]:
        """Return the bytes of the ids of stores, as a matrix."""
        return self._ids[stores].view(np.uint8).reshape(-1, ID_BYTES)

    def ranks(self, stores: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the place of each store in the order of partition and id, which does not depend on the numbers."""
        distinct = distinct_values(stores)
        ids = self._ids[distinct].view(_AS_NUMBERS)
        order = np.lexsort((ids["low"], ids["high"], self._partitions[distinct]))
        rank = np.zeros(self._ids.size, np.int32)
        rank[distinct[order]] = np.arange(distinct.size, dtype=np.int32)
        return rank[stores]
