"""The rows of a LEFT JOIN whose ON has constants: which of them are there is each query's own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spark_jobs.engine.index import Ints
from spark_jobs.engine.rows.columns import Columns
from spark_jobs.engine.rows.partners import Partners

__all__ = ["UndecidedRows"]


class UndecidedRows(NamedTuple):
    """The rows of a LEFT JOIN with constants in ON: for each row left of it its partners, then the row of NULLs."""

    made: Columns | None
    """The rows as the join made them, once a later join has made others of them."""
    at: Ints | None
    """For each present row, the row of the join from which it was made; None while they are the same."""
    beside: Ints
    """By row of the join: for a row of NULLs the number of its partners before it, else -1."""

    @classmethod
    def of(cls, probe: Ints, row: Ints) -> UndecidedRows:
        """Return the rows of a join, each with the row left of it and the table's row, -1 for none."""
        alone = np.flatnonzero(row < 0)
        beside = np.full(row.size, -1, np.int64)
        beside[alone] = np.diff(alone, prepend=-1) - 1
        return cls(None, None, beside)

    def taken(self, rows: Columns, probe: Ints) -> UndecidedRows:
        """Return the undecided rows for rows that a later join makes of some of the present ones."""
        if self.at is None:
            return UndecidedRows(rows, probe, self.beside)
        return UndecidedRows(self.made, self.at[probe], self.beside)

    def partners(self, rows: NDArray[np.integer]) -> Partners:
        """Return the partners of some of the present rows."""
        places = rows.astype(np.int64) if self.at is None else self.at[rows]
        beside = self.beside[places]
        alone = beside >= 0
        return Partners(self.made, places - np.where(alone, beside, 0), np.where(alone, beside, 1), alone)
