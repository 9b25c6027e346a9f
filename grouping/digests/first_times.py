"""Recognition of repeated partial aggregates, which a replayed batch writes again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grouping.digests.pending_matches import PendingAggregates
from grouping.digests.question_columns import Flags, QuestionNumbers

__all__ = ["FirstTimes"]


class FirstTimes:
    """The last partial aggregate of each source partition that each owner (a question or a store) has read."""

    def __init__(self, owners: int) -> None:
        """Begin with owners that have read no aggregate."""
        self._owners = owners
        self._marks: dict[int, NDArray[np.int64]] = {}
        """By source partition, a matrix with a column for each owner. The five rows describe the owner's last
        aggregate: first offset, last offset, ordinal, epoch and version.
        """

    def of(self, items: PendingAggregates, owner: QuestionNumbers, seen: Flags, version: tuple[int, int]) -> Flags:
        """Return which visible items (partial aggregates) of a record are not repeats.

        A replay after a loss of Redis has other tables and other ordinals, but the same ranges of offsets. So an item
        of another version of the tables is a repeat if its range is known. After a loss of the checkpoint, the offsets
        of an item may lie within an earlier range. This item is a repeat too, so the record with the earlier range is
        kept until a cut covers the whole range.
        """
        first_time = seen.copy()
        for partition in np.unique(items.partitions[seen]).tolist():
            marks = self._marks.get(partition)
            if marks is None:
                marks = self._marks[partition] = np.full((5, self._owners), -1)
            mine = seen & (items.partitions == partition)
            first, last, ordinal, *found_by = marks[:, owner]
            same = (items.first == first) & (found_by[0] == version[0]) & (found_by[1] == version[1])
            new = mine & ((items.first > last) | (same & (items.ordinals > ordinal)))
            first_time &= new | ~mine
            places = np.flatnonzero(new)  # places ascend, so each owner keeps its last item
            marks[:3, owner[places]] = items.first[places], items.last[places], items.ordinals[places]
            marks[3, owner[places]], marks[4, owner[places]] = version
        return first_time
