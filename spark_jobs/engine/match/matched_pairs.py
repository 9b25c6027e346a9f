"""Matched pairs of event and entry, which look-ups yield, and their conversion to `Matches`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grouping.model.ids import GroupId
from grouping.plan.group import SelectList
from spark_jobs.engine.constants.constant_rows import ConstantRows
from spark_jobs.engine.index import Ints
from spark_jobs.engine.rows.matches import Matches

__all__ = ["NO_NUMBER", "MatchedPairs", "assembled", "once_per_group"]

NO_NUMBER = -1
"""The destination number of a virtual match, which belongs to all destinations of its group and is counted for none."""

_WIDTH = 12


@dataclass(frozen=True, slots=True)
class MatchedPairs:
    """The columns of matched pairs; either all pairs are virtual or none is."""

    event: Ints
    destination: pa.FixedSizeBinaryArray
    variant: NDArray[np.int32]
    partition: NDArray[np.int32]
    number: NDArray[np.int32]
    group: NDArray[np.int32]
    """The index of each pair's group."""

    @classmethod
    def of(
        cls, events: Ints, rows: ConstantRows, positions: NDArray[np.integer], group: NDArray[np.int32]
    ) -> MatchedPairs:
        """Return pairs of events and entries, given the positions of the entries in `rows`."""
        positions = positions.astype(np.intp, copy=False)  # converted once instead of for each column
        return cls(
            events,
            rows.ids(positions),
            rows.variant[positions],
            rows.partition[positions],
            rows.number[positions],
            group,
        )

    @classmethod
    def virtual(cls, events: Ints, variant: int, group: int) -> MatchedPairs:
        """Return a virtual match of a group for each event, independent of the matching entry."""
        count = events.size
        nothing = np.zeros(count, np.int32)
        blank = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(_WIDTH), count, [None, pa.py_buffer(bytes(_WIDTH * count))]
        )
        return cls(
            events,
            blank,
            np.full(count, variant, np.int32),
            nothing,
            np.full(count, NO_NUMBER, np.int32),
            np.full(count, group, np.int32),
        )


def once_per_group(pairs: Sequence[MatchedPairs]) -> list[MatchedPairs]:
    """Return the pairs with only one virtual match of each event and group.

    Otherwise, an event that matches entries in several parts of a group's tables would have several virtual matches.
    """
    seen: dict[int, Ints] = {}
    kept = []
    for found in pairs:
        if not found.event.size or found.number[0] != NO_NUMBER:
            kept.append(found)
            continue
        group = int(found.group[0])
        before = seen.get(group)
        events = found.event if before is None else found.event[~np.isin(found.event, before)]
        seen[group] = events if before is None else np.union1d(before, events)
        kept.append(MatchedPairs.virtual(events, int(found.variant[0]), group))
    return kept


def assembled(
    pairs: Sequence[MatchedPairs],
    groups: tuple[GroupId, ...],
    selects: tuple[SelectList, ...],
    select_of: NDArray[np.int32],
    mode_of: NDArray[np.int8],
) -> Matches:
    """Return pairs as matches.

    Args:
        pairs: The pairs.
        groups: The ids of the groups, at the indexes that `MatchedPairs.group` has.
        selects: All SELECT lists.
        select_of: By variant, the index of its SELECT list.
        mode_of: By variant, the mode of its destinations.
    """
    variant = _joined([found.variant for found in pairs])
    return Matches(
        event=_joined([found.event.astype(np.int32) for found in pairs]),
        destination=pa.concat_arrays([pa.array([], pa.binary(_WIDTH)), *(found.destination for found in pairs)]),
        mode=mode_of[variant],
        partition=_joined([found.partition for found in pairs]),
        number=_joined([found.number for found in pairs]),
        select=select_of[variant],
        group=_joined([found.group for found in pairs]),
        selects=selects,
        groups=groups,
    )


def _joined(arrays: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    return np.concatenate([np.empty(0, np.int32), *arrays])
