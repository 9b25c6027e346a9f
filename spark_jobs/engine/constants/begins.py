"""The begin of an entry: the offset in each source partition from which on events can match the entry.

Entries of groups over state (edges, frames and silences) have a begin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.store.constant_table import unpacked_since
from spark_jobs.engine.index import Ints

__all__ = ["Begins"]


@dataclass(frozen=True, slots=True)
class Begins:
    """The begins of entries. Entries that were accepted together have the same begin."""

    codes: NDArray[np.int32]
    """For each entry, the row of `offsets` with its begin."""
    offsets: NDArray[np.int64]
    """The distinct begins, one in each row; column p is the offset in source partition p.

    The last column is 0. The column stands for all partitions that were added after the entries were accepted.
    """

    @classmethod
    def of(cls, since: pa.Array) -> Begins:
        """Return the begins of the entries of a segment's block, given the block's column `since`."""
        encoded = since if pa.types.is_dictionary(since.type) else since.dictionary_encode()
        found = [unpacked_since(packed) for packed in encoded.dictionary.to_pylist()]
        width = max(map(len, found), default=0) + 1
        offsets = np.array([[*each, *[0] * (width - len(each))] for each in found], np.int64).reshape(-1, width)
        return cls(encoded.indices.to_numpy().astype(np.int32), offsets)

    @classmethod
    def concat(cls, parts: Sequence[Begins]) -> Begins:
        """Return the begins of the entries of all parts."""
        width = max(part.offsets.shape[1] for part in parts)
        parts = [part.pruned() for part in parts]
        padded = [np.pad(part.offsets, ((0, 0), (0, width - part.offsets.shape[1]))) for part in parts]
        distinct, which = np.unique(np.concatenate(padded), axis=0, return_inverse=True)
        starts = np.cumsum([0, *(part.offsets.shape[0] for part in parts)])
        codes = np.concatenate([part.codes + start for part, start in zip(parts, starts, strict=False)])
        return cls(which.reshape(-1)[codes].astype(np.int32), distinct)

    def pruned(self) -> Begins:
        """Return the same begins, without rows of `offsets` that no entry uses any more."""
        used, codes = np.unique(self.codes, return_inverse=True)
        return self if used.size == self.offsets.shape[0] else Begins(codes.astype(np.int32), self.offsets[used])

    def take(self, rows: NDArray[np.integer]) -> Begins:
        """Return the begins of some entries. All rows of `offsets` are kept, even if no entry uses them."""
        return Begins(self.codes[rows], self.offsets)

    def at(self, rows: NDArray[np.integer], partitions: NDArray[np.integer]) -> Ints:
        """Return, for each i, the begin of entry `rows[i]` in source partition `partitions[i]`."""
        begins: Ints = self.offsets[self.codes[rows], np.minimum(partitions, self.offsets.shape[1] - 1)]
        return begins

    def least(self, partition: int) -> int:
        """Return the smallest begin in a partition; the begins of entries that `take` left out may be included."""
        return int(self.offsets[:, min(partition, self.offsets.shape[1] - 1)].min())

    def latest(self, partition: int) -> int:
        """Return the largest begin in a partition; the begins of entries that `take` left out may be included."""
        return int(self.offsets[:, min(partition, self.offsets.shape[1] - 1)].max())

    def in_partition(self, partition: int) -> Ints:
        """Return the begins in a partition; the begins of entries that `take` left out may be included.

        An offset may be repeated, since rows of `offsets` may differ only in other partitions.
        """
        return self.offsets[:, min(partition, self.offsets.shape[1] - 1)]

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return int(self.codes.nbytes + self.offsets.nbytes)
