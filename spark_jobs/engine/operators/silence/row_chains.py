"""For each key of a batch, the rows that were the key's latest row when they came, each linked to the next of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spark_jobs.engine.index import Ints

__all__ = ["RowChains"]


class RowChains(NamedTuple):
    """For each key, the rows that were its latest row when they came.

    If rows have equal times, the last one is the latest.
    """

    keys: Ints
    """The numbers of the keys of the batch, ascending and distinct."""
    rows: Ints
    """The rows that were the latest of their key, key by key, in the order of arrival."""
    key_of: Ints
    """For each row of `rows`: the index of its key in `keys`."""
    first: Ints
    """For each key: the index into `rows` of the key's first row; -1 if the key has no row in `rows`."""

    @classmethod
    def of(cls, numbers: Ints, times: Ints, known: Ints, keys: Ints) -> RowChains:
        """Return the chains of some rows.

        Args:
            numbers: The number of each row's key, by arrival.
            times: The event time of each row.
            known: For each key, the time of its latest row before the batch; a time before all others if there is none.
            keys: The distinct numbers, ascending.

        Example:
            >>> chains = RowChains.of(np.array([7, 7, 7]), np.array([5, 4, 6]), np.array([0]), np.array([7]))
            >>> chains.rows.tolist(), chains.first.tolist()
            ([0, 2], [0])
        """
        order = np.argsort(numbers, kind="stable")
        key_of = np.searchsorted(keys, numbers[order])
        _, ranks = np.unique(np.concatenate([known, times[order]]), return_inverse=True)
        ranks = ranks.reshape(-1)
        stride = ranks.size + 1
        floor, own = ranks[: known.size] + np.arange(known.size) * stride, ranks[known.size :] + key_of * stride
        highest = np.maximum.accumulate(np.maximum(own, floor[key_of]))
        before = np.maximum(np.concatenate([floor[:1], highest[:-1]]), floor[key_of])
        kept = np.flatnonzero(own >= before)
        first = np.full(keys.size, -1, np.int64)
        places = key_of[kept]
        begins = np.flatnonzero(np.diff(places, prepend=-1))
        first[places[begins]] = begins
        return cls(keys, order[kept], places, first)

    @property
    def followed(self) -> Ints:
        """The indexes into `rows` of all rows but the last one of each key; the next row of the key is at index + 1."""
        return np.flatnonzero(self.key_of[1:] == self.key_of[:-1])

    @property
    def last(self) -> Ints:
        """The indexes into `rows` of the last row of each key that has rows."""
        return np.flatnonzero(np.diff(self.key_of, append=-1))
