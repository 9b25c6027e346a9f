"""A part of a group's constant table: constant rows with an index. A removed row is only struck out in the index."""

from __future__ import annotations

import logging
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from grouping.model.errors import InternalError
from spark_jobs.engine.constants.constant_rows import ConstantRows
from spark_jobs.engine.constants.shared_index_key import is_shared
from spark_jobs.engine.constants.table_shape import TableShape
from spark_jobs.engine.index import Ints
from spark_jobs.engine.index.union_lookup import AnyCandidates, AnyLookup, lookup_of
from spark_jobs.engine.rows.arrays import distinct_values
from spark_jobs.engine.rows.event_column import EventColumns
from spark_jobs.engine.rows.faults import FAULTS

__all__ = ["ConstantPart", "added"]

log = logging.getLogger(__name__)

_RATIO = 8
"""New rows are merged with the last part unless that part has more than `_RATIO` times the number of new rows."""
_SMALL = 2_000
"""New rows are also merged with the last part if both together have at most this many rows.

Building an index of so few rows again takes less time than looking events up in two indexes.
"""
_DEAD = 4
"""A part is rebuilt when more than 1 / `_DEAD` of its rows are struck out."""


class ConstantPart:
    """Rows with a common index, and which of them are struck out."""

    def __init__(self, shape: TableShape, rows: ConstantRows) -> None:
        """Index the rows."""
        self.shape = shape
        self.rows = rows
        self.lookup = None if is_shared(shape, rows) else _indexed(shape, rows)
        """The part's own index; None if the part is looked up in a shared index."""
        self.alive: NDArray[np.bool_] | None = None
        """For each row, whether it is live, that is, not struck out; None while all rows are live."""
        self.version = 0
        """A number that changes whenever `alive` changes."""

    @cached_property
    def variants(self) -> NDArray[np.int32]:
        """The distinct variants of the rows, including rows that are struck out."""
        return distinct_values(self.rows.variant)

    def remove(self, ids: NDArray[np.void]) -> ConstantPart | None:
        """Strike out the rows of some destinations.

        Returns:
            This part; or a rebuilt part, if too many rows are struck out; or None if no row is left.
        """
        found = self.rows.find(ids)
        if not found.size:
            return self
        if self.alive is None:
            self.alive = np.ones(len(self.rows), np.bool_)
        self.alive[found] = False
        self.version += 1
        left = int(np.count_nonzero(self.alive))
        if not left:
            return None
        return ConstantPart(self.shape, self.live_rows()) if (len(self.rows) - left) * _DEAD > len(self.rows) else self

    def live_rows(self) -> ConstantRows:
        """Return the live rows."""
        if self.alive is None:
            return self.rows
        return ConstantRows.concat([self.rows.take(np.flatnonzero(self.alive))])

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        own = 0 if self.lookup is None else self.lookup.nbytes
        return self.rows.nbytes + own + (0 if self.alive is None else self.alive.nbytes)


class _NoIndex:
    """Takes the place of an index that could not be built. Its look-ups raise an error, for this group only."""

    nbytes = 0

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def find(self, _events: EventColumns, _selected: Ints) -> AnyCandidates:
        raise InternalError("a group has no index", detail=self._reason)


def _indexed(shape: TableShape, rows: ConstantRows) -> AnyLookup | _NoIndex:
    try:
        return lookup_of(shape.plan.conjuncts, shape.path, shape.types, rows.constants, len(rows))
    except FAULTS as fault:
        log.exception("index not built", extra={"group": shape.plan.group_id})
        return _NoIndex(type(fault).__name__)


def added(shape: TableShape, parts: tuple[ConstantPart, ...], rows: ConstantRows) -> tuple[ConstantPart, ...]:
    """Return the parts of a table after rows were added.

    The parts are merged as in a log-structured merge tree: each part has more than `_RATIO` times the rows of the next
    part. So a row is indexed only a few times, even if a million rows are added one by one, and events are looked up in
    few indexes.
    """
    merged = [rows]
    size = len(rows)
    kept = list(parts)
    while kept and (len(kept[-1].rows) <= size * _RATIO or len(kept[-1].rows) + size <= _SMALL):
        merged.append(kept.pop().live_rows())
        size += len(merged[-1])
    whole = ConstantRows.concat(merged) if len(merged) > 1 else rows
    return (*kept, ConstantPart(shape, whole))
