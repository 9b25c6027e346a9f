"""The index for equality: a directory from 64-bit hashes to dense codes, and an index from codes to rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spark_jobs.engine.index.ranges import Ints, Ranges
from spark_jobs.engine.rows.arrays import Codes, Hashes

__all__ = ["EqualityIndex", "KeyDirectory", "mix"]


def mix(keys: Ints) -> Hashes:
    """Hash int64 keys to 64 bits. Different keys have different hashes: the finaliser of splitmix64 is a bijection."""
    z = keys.astype(np.int64, copy=False).view(np.uint64).copy()
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z


class KeyDirectory:
    """The positions of a set of hashes. The leading bits of a hash choose a bucket, in which the hash is searched.

    A bucket has about one hash, so a look-up takes two cache misses; a binary search over a million hashes would take a
    dozen. If hashes are spread unevenly, look-ups take longer, but their results are right.
    """

    def __init__(self, hashes: Hashes) -> None:
        """Make the directory. The hashes must be distinct; the code of a hash is its position in `hashes`."""
        self._order = np.argsort(hashes).astype(np.int32)
        self._sorted = hashes[self._order]
        bits = max(1, int(hashes.size).bit_length())
        self._shift = np.uint64(64 - bits)
        prefixes = np.arange(1 << bits, dtype=np.uint64) << self._shift
        self._starts = np.append(np.searchsorted(self._sorted, prefixes), hashes.size).astype(np.int32)

    def find(self, hashes: Hashes) -> Codes:
        """Return the code of each hash; -1 for a hash that is not in the set."""
        if not self._sorted.size:
            return np.full(hashes.size, -1, np.int32)
        bucket = (hashes >> self._shift).view(np.int64)
        position = self._starts.take(bucket)
        last = self._starts[1:].take(bucket) - 1
        found = self._sorted.take(position, mode="clip") == hashes  # a hash of another bucket is never equal
        walking = np.flatnonzero((position < last) & ~found)
        while walking.size:
            here = position.take(walking) + 1
            position[walking] = here
            same = self._sorted.take(here) == hashes.take(walking)
            found[walking] = same
            walking = walking[(here < last.take(walking)) & ~same]
        return np.where(found, self._order.take(position, mode="clip"), np.int32(-1))

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self._order.nbytes + self._sorted.nbytes + self._starts.nbytes


class EqualityIndex:
    """The rows of each code."""

    def __init__(self, codes: Codes, count: int, rows: NDArray[np.int32]) -> None:
        """Index `rows` by their `codes`, each in [0, count)."""
        self.rows = rows[np.argsort(codes, kind="stable")]
        self.starts = np.zeros(count + 1, np.int32)
        np.cumsum(np.bincount(codes, minlength=count), out=self.starts[1:])

    def find(self, codes: Codes) -> Ranges:
        """Return the rows that have each event's code; no rows for the code -1."""
        known = codes >= 0
        first = self.starts[codes].astype(np.int64)
        last = np.where(known, self.starts[codes + 1], first)
        return Ranges(self.rows, first, last)

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self.rows.nbytes + self.starts.nbytes
