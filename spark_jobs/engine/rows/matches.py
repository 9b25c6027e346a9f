"""Matches, from the look-up to the split: (event, entry) pairs as columns."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.model.ids import GroupId
from grouping.plan.group import SelectList
from grouping.store.work_units import unit_of
from spark_jobs.engine.rows.arrays import distinct_values

__all__ = ["Matches"]


@dataclass(frozen=True, slots=True)
class Matches:
    """The matches of one task's events; every array has one element per match.

    A pair of an event and a destination occurs at most once. The matches may be in any order, since the split writes
    the records of each destination in the order of the events.
    """

    event: NDArray[np.int32]
    """The row of the event in the batch's `Events`."""
    destination: pa.FixedSizeBinaryArray
    """The 12 bytes of the destination's id, without its prefix. (NumPy's ``S12`` would cut zero bytes off the end.)"""
    mode: NDArray[np.int8]
    """The mode of the destination, as an index into `grouping.store.constant_table.MODES`."""
    partition: NDArray[np.int32]
    """The partition of the topic that the mode writes to."""
    number: NDArray[np.int32]
    """The number of the destination, or of the store for a timer-based CQ; matches are counted by this number."""
    select: NDArray[np.int32]
    """The SELECT list, as an index into `selects`."""
    group: NDArray[np.int32]
    """The group, as an index into `groups`."""
    selects: tuple[SelectList, ...]
    groups: tuple[GroupId, ...]
    """Group ids."""

    @property
    def units(self) -> list[str]:
        """The ids of the work units that have matches (`grouping.store.work_units`): SELECT lists of groups."""
        return [self._unit(code) for code in distinct_values(self._codes()).tolist()]

    def only(self, units: Collection[str]) -> Matches:
        """Return only the matches of some work units."""
        codes = self._codes()
        distinct, which = np.unique(codes, return_inverse=True)
        kept = np.array([self._unit(code) in units for code in distinct.tolist()], np.bool_)
        return self.taken(np.flatnonzero(kept[which]))

    def taken(self, found: NDArray[np.int64]) -> Matches:
        """Return some of the matches, given by their places."""
        return Matches(
            self.event[found],
            self.destination.take(pa.array(found)),
            self.mode[found],
            self.partition[found],
            self.number[found],
            self.select[found],
            self.group[found],
            self.selects,
            self.groups,
        )

    def of_rows(self, event: NDArray[np.int32]) -> Matches:
        """Return the same matches with `event` as their row numbers."""
        return replace(self, event=event)

    def _codes(self) -> NDArray[np.int64]:
        return (self.group.astype(np.int64) << 32) | self.select

    def _unit(self, code: int) -> str:
        return unit_of(self.groups[code >> 32], self.selects[code & 0xFFFFFFFF].select_id)
