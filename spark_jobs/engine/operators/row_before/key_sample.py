"""A sample of the keys of a state, to find keys that have rows in two source partitions.

The sample has the lowest hashes of the keys, at most `_KEPT`. All partitions use the same hash function, so a hash that
is in the samples of two partitions stands for a key with rows in both. A partition with more keys has no sample of the
higher hashes, so some keys with rows in two partitions are not found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from spark_jobs.engine.operators.row_before.key_numbers import KeyNumbers, null_masks
from spark_jobs.engine.rows.arrays import distinct_values

__all__ = ["KeySample", "merged_samples"]

_KEPT = 4_096
"""The largest number of hashes of a sample."""
_SEED = 42
"""A fixed seed, since the samples of all workers are compared."""

KeyHashes = NDArray[np.uint64]


class KeySample:
    """The lowest hashes of some columns of the keys in one state."""

    def __init__(self, places: Sequence[int], width: int) -> None:
        """Begin without keys.

        Args:
            places: The columns to hash, by their places in BY.
            width: The number of columns in BY.
        """
        self._places = places
        self._width = width
        self._keys: KeyNumbers | None = None
        self._count = 0
        self._lowest: KeyHashes = np.empty(0, np.uint64)

    def of(self, keys: KeyNumbers) -> KeyHashes:
        """Return the sample of a state's keys, ascending; only keys that are new since the last call are hashed."""
        if keys is not self._keys:
            self._keys, self._count, self._lowest = keys, 0, self._lowest[:0]
        if keys.count > self._count:
            columns = keys.columns(np.arange(self._count, keys.count))
            hashed = {str(place): pl.Series(columns[place]) for place in self._places}
            masks = null_masks(columns[self._width :], self._places)
            found = pl.DataFrame(hashed | {"nulls": masks}).hash_rows(seed=_SEED).to_numpy()
            self._lowest, self._count = merged_samples([self._lowest, found]), keys.count
        return self._lowest


def merged_samples(samples: Iterable[KeyHashes]) -> KeyHashes:
    """Return one sample for the keys of several samples.

    Example:
        >>> merged_samples([np.array([3, 5], np.uint64), np.array([4, 5], np.uint64)]).tolist()
        [3, 4, 5]
    """
    return distinct_values(np.concatenate([np.empty(0, np.uint64), *samples]))[:_KEPT]
