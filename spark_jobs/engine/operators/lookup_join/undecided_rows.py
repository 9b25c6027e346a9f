"""The rows of a LEFT JOIN with constants in ON: each query's constants decide which of the rows the query has."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spark_jobs.engine.index import Ints
from spark_jobs.engine.rows.columns import Columns
from spark_jobs.engine.rows.partners import Partners

__all__ = ["UndecidedRows"]


class UndecidedRows(NamedTuple):
    """The rows of a LEFT JOIN with constants in ON.

    For each of its input rows, the join makes a joined row with each row of the table that may fit, and then a row of
    NULLs. A query has the row of NULLs if its constants leave out all of these joined rows. After later joins, the
    *present rows* are the rows that the last join made.
    """

    made: Columns | None
    """The rows that the LEFT JOIN made; None until a later join makes new rows of them."""
    at: Ints | None
    """For each present row, the row of `made` from which it was made; None until a later join."""
    beside: Ints
    """For each row of NULLs that the LEFT JOIN made: how many joined rows of the same input row are right before it.

    The number is -1 for a joined row.
    """

    @classmethod
    def of(cls, probe: Ints, row: Ints) -> UndecidedRows:
        """Return the rows of a LEFT JOIN.

        Args:
            probe: For each row, the input row from which the join made it; ascending.
            row: For each row, the row of the table; -1 for the row of NULLs.
        """
        padded = np.flatnonzero(row < 0)
        beside = np.full(row.size, -1, np.int64)
        beside[padded] = np.diff(padded, prepend=-1) - 1
        return cls(None, None, beside)

    def taken(self, rows: Columns, probe: Ints) -> UndecidedRows:
        """Return the undecided rows after a later join.

        Args:
            rows: The present rows, before the later join.
            probe: For each row of the later join, the present row from which it is made.
        """
        if self.at is None:
            return UndecidedRows(rows, probe, self.beside)
        return UndecidedRows(self.made, self.at[probe], self.beside)

    def partners(self, rows: NDArray[np.integer]) -> Partners:
        """Return the partners of some of the present rows."""
        places = rows.astype(np.int64) if self.at is None else self.at[rows]
        beside = self.beside[places]
        padded = beside >= 0
        return Partners(self.made, places - np.where(padded, beside, 0), np.where(padded, beside, 1), padded)
