"""The rows of a LEFT JOIN that decide, by a query's constants, whether a row padded with NULLs is in the result."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from grouping.model.errors import InternalError
from spark_jobs.engine.rows.arrays import Ints
from spark_jobs.engine.rows.columns import Columns

__all__ = ["PartnerSource", "Partners", "partners"]


class Partners(NamedTuple):
    """The join partners of each row.

    The only partner of a row that met the table is the row itself. The partners of a row padded with NULLs are all rows
    of its event that met the table.
    """

    rows: Columns | None
    """The rows of the join; None if later joins left them unchanged, so that they are the present rows."""
    first: Ints
    """By row, the place of its first partner among the rows of the join; the others follow."""
    size: Ints
    """By row, the number of its partners."""
    alone: NDArray[np.bool_]
    """Whether the row is padded with NULLs; a padded row is in the result if none of its partners is."""


@runtime_checkable
class PartnerSource(Protocol):
    """Rows that have partners."""

    def partners(self, prefix: str, rows: NDArray[np.integer]) -> Partners:
        """Return the partners of some rows, in the LEFT JOIN with the given prefix."""


def partners(source: Columns, prefix: str, rows: NDArray[np.integer]) -> Partners:
    """Return the partners of some rows.

    Raises:
        InternalError: The rows do not come from a join.
    """
    if not isinstance(source, PartnerSource):
        raise InternalError(f'"{prefix}" is joined with nothing')
    return source.partners(prefix, rows)
