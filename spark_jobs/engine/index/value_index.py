"""An index of a table's rows by the values of some columns: it finds rows by hash, and then compares the values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from spark_jobs.engine.index import EqualityIndex, Ints, KeyDirectory
from spark_jobs.engine.index.key_tuples import KeyTuples

__all__ = ["SoughtValues", "ValueIndex"]

RowPairs = tuple[Ints, NDArray[np.int32]]
"""Pairs of a probe (a sought value) and a row with this value, as positions of probes and numbers of rows.

The pairs are ordered by probe, and then by row.
"""

Take = Callable[[NDArray[np.integer]], KeyTuples]
"""Returns the values of some rows in the indexed columns."""


class SoughtValues:
    """Values to look up, called probes. Their hashes are computed only once for all parts of a table."""

    def __init__(self, keys: KeyTuples) -> None:
        self.keys = keys
        self.hashes = keys.hashes()
        self.known = keys.known()
        """The positions of the values without a NULL, since NULL equals nothing; None if no value has a NULL."""


class ValueIndex:
    """The rows of a part of a table by the values of some columns. A row with a NULL in one of them is never found."""

    def __init__(self, values: KeyTuples) -> None:
        """Index the rows. A row takes 16 bytes if values are distinct, and four bytes if values repeat often."""
        hashes, known = values.hashes(), values.known()
        rows = np.arange(len(values), dtype=np.int32) if known is None else known.astype(np.int32)
        hashes = hashes if known is None else hashes[known]
        in_order = np.sort(hashes)  # np.unique would build a table of hashes, at ten times the cost
        distinct = in_order[np.append([True], in_order[1:] != in_order[:-1])] if rows.size else in_order
        self._rows: NDArray[np.int32] | None = None
        self._by_code: EqualityIndex | None = None
        self._mixed = False
        """Whether different values have the same hash; then `find` must compare each row, not only one of each hash."""
        if distinct.size < rows.size:
            self._directory = KeyDirectory(distinct)
            codes = self._directory.find(hashes)
            self._by_code = EqualityIndex(codes, int(distinct.size), rows)
            of_code = self._by_code.rows[self._by_code.starts[codes]]
            self._mixed = not values.take(rows).same(values.take(of_code)).all()
        else:
            self._directory = KeyDirectory(hashes)
            self._rows = None if known is None else rows

    def find(self, probes: SoughtValues, values: Take) -> RowPairs:
        """Return the pairs of a sought value and a row with an equal value.

        Args:
            probes: The sought values.
            values: Returns the values of the rows whose numbers are given. The index has only hashes of values.
        """
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


def _verified(probes: SoughtValues, values: Take, probe: NDArray[np.intp], rows: NDArray[np.int32]) -> RowPairs:
    same = probes.keys.take(probe).same(values(rows))
    return probe[same], rows[same]
