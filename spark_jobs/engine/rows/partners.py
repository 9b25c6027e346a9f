"""The join partners of each row of a LEFT JOIN whose condition ON contains constants of queries.

Such a join makes, for each event, a row with each row of the table that may join, and one more row that is padded with
NULLs. A query's constants decide which of these rows are in its result: the padded row is in the result only if the
condition is TRUE for none of the event's other rows.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from grouping.model.errors import InternalError
from spark_jobs.engine.rows.arrays import Ints
from spark_jobs.engine.rows.columns import Columns

__all__ = ["PartnerSource", "Partners", "partners"]


class Partners(NamedTuple):
    """The join partners of each row: the rows for which the condition ON must be evaluated to decide about the row.

    A row that was joined with a row of the table has only itself as partner. A row padded with NULLs has all joined
    rows of its event as partners.
    """

    rows: Columns | None
    """The rows that the LEFT JOIN made; None if no later join followed, since the caller's rows are then these rows."""
    first: Ints
    """For each row, the place of its first partner among `rows`; its other partners follow."""
    size: Ints
    """For each row, the number of its partners."""
    is_padded: NDArray[np.bool_]
    """Whether each row is padded with NULLs; such a row is in the result if ON is TRUE for none of its partners."""


@runtime_checkable
class PartnerSource(Protocol):
    """Rows that have partners."""

    def partners(self, prefix: str, rows: NDArray[np.integer]) -> Partners:
        """Return the partners of some rows in the LEFT JOIN whose table has the given prefix."""


def partners(source: Columns, prefix: str, rows: NDArray[np.integer]) -> Partners:
    """Return the partners of some rows.

    Raises:
        InternalError: The rows do not come from a join.
    """
    if not isinstance(source, PartnerSource):
        raise InternalError(f'"{prefix}" is joined with nothing')
    return source.partners(prefix, rows)
