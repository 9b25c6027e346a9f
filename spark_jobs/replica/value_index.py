"""Rows by the values of some columns: hashes lead to them, and the values themselves decide."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from spark_jobs.index import EqualityIndex, Ints, KeyDirectory
from spark_jobs.replica.key_tuples import KeyTuples

__all__ = ["Probes", "ValueIndex"]

RowPairs = tuple[Ints, NDArray[np.int32]]
"""Positions of probes and, beside each, of a row; by probe, and those of one by row."""

Take = Callable[[NDArray[np.integer]], KeyTuples]
"""Gives the values of some rows in the columns that are indexed."""


class Probes:
    """Values to look up, whose hashes are computed once for all parts of a table."""

    def __init__(self, keys: KeyTuples) -> None:
        self.keys = keys
        self.hashes = keys.hashes()
        self.known = keys.known()
        """Those that have no NULL, which equals nothing; None when all have none."""


class ValueIndex:
    """The rows of a part of a table by the values of some of its columns; rows with a NULL there are not met."""

    def __init__(self, values: KeyTuples) -> None:
        """Index the rows. Sixteen bytes a row where the values are distinct, four where they repeat much."""
        hashes, known = values.hashes(), values.known()
        rows = np.arange(len(values), dtype=np.int32) if known is None else known.astype(np.int32)
        hashes = hashes if known is None else hashes[known]
        in_order = np.sort(hashes)  # np.unique would build a table of hashes, at ten times the cost
        distinct = in_order[np.append([True], in_order[1:] != in_order[:-1])] if rows.size else in_order
        self._rows: NDArray[np.int32] | None = None
        self._by_code: EqualityIndex | None = None
        self._mixed = False
        """Whether values that differ share a hash, so that each row must be compared, not one for all."""
        if distinct.size < rows.size:
            self._directory = KeyDirectory(distinct)
            codes = self._directory.find(hashes)
            self._by_code = EqualityIndex(codes, int(distinct.size), rows)
            of_code = self._by_code.rows[self._by_code.starts[codes]]
            self._mixed = not values.take(rows).same(values.take(of_code)).all()
        else:
            self._directory = KeyDirectory(hashes)
            self._rows = None if known is None else rows

    def find(self, probes: Probes, values: Take) -> RowPairs:
        """Return the rows that have a probe's values."""
        codes = self._directory.find(probes.hashes)
        hit = np.flatnonzero(codes >= 0)
        if probes.known is not None:
            hit = np.intersect1d(hit, probes.known, assume_unique=True)
        codes = codes[hit]
        if self._by_code is None:
            rows = codes if self._rows is None else self._rows[codes]
            return _verified(probes, values, hit, rows)
        first = self._by_code.starts[codes]
        if not self._mixed:
            same = probes.keys.take(hit).same(values(self._by_code.rows[first]))
            hit, codes, first = hit[same], codes[same], first[same]
        length = self._by_code.starts[codes + 1] - first
        probe = np.repeat(hit, length)
        before = np.cumsum(length) - length
        rows = self._by_code.rows[np.arange(probe.size) + np.repeat(first - before, length)]
        return _verified(probes, values, probe, rows) if self._mixed else (probe, rows)

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        own = 0 if self._rows is None else self._rows.nbytes
        return own + self._directory.nbytes + (0 if self._by_code is None else self._by_code.nbytes)


def _verified(probes: Probes, values: Take, probe: NDArray[np.intp], rows: NDArray[np.int32]) -> RowPairs:
    same = probes.keys.take(probe).same(values(rows))
    return probe[same], rows[same]
