"""Questions about aggregates as arrays: the offsets that cuts and cursors cover, and the visible record times.

An *item* is a partial aggregate; it covers a range of offsets of one source partition (`PendingAggregates`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from grouping.digests.cursor import DigestCoverage, SourceOffsets, VisibilityInterval, Window, windows_at
from grouping.digests.pending_matches import PendingAggregates

__all__ = ["FIRST", "LAST", "CoveredOffsets", "Flags", "EarlierDigests", "QuestionNumbers", "VisibleTimes"]

QuestionNumbers = NDArray[np.int64]
Flags = NDArray[np.bool_]
FIRST, LAST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
"""Sentinels below and above all times and offsets."""
_ALWAYS: list[Window] = [(None, None)]
_NOTHING = DigestCoverage(0, {})


class CoveredOffsets:
    """By question and source partition, the offset up to which a cut or a cursor covers events."""

    def __init__(self, offsets: Sequence[SourceOffsets | None]) -> None:
        """Take the offsets by question; None covers all events."""
        partitions = {int(partition) for some in offsets if some is not None for partition in some}
        self._width = max(partitions, default=-1) + 1
        # The last column is for partitions without an offset.
        self._limits = np.zeros((len(offsets), self._width + 1), np.int64)
        for number, some in enumerate(offsets):
            if some is None:
                self._limits[number] = LAST
            elif some:
                self._limits[number, list(map(int, some))] = list(some.values())

    def holds_all(self, owner: QuestionNumbers, items: PendingAggregates) -> Flags:
        """Return for each item whether its question covers the whole range of the item's offsets."""
        limits: QuestionNumbers = self._limits[owner, np.minimum(items.partitions, self._width)]
        return items.last < limits

    def holds(self, owner: QuestionNumbers, items: PendingAggregates) -> Flags:
        """Return for each item whether its question covers at least the first offset of the item's range."""
        limits: QuestionNumbers = self._limits[owner, np.minimum(items.partitions, self._width)]
        return items.first < limits


class EarlierDigests:
    """Offsets and times that earlier digests covered, per question. Nearly always only the last digest matters."""

    def __init__(self, coverages: Sequence[tuple[DigestCoverage, ...]]) -> None:
        self._levels: list[tuple[NDArray[np.int64], CoveredOffsets]] = []
        for level in range(max(map(len, coverages), default=0)):
            some = [each[level] if level < len(each) else _NOTHING for each in coverages]
            ticks = np.array([each.tick_ms or FIRST for each in some])
            self._levels.append((ticks, CoveredOffsets([each.covered for each in some])))

    def holds(self, owner: QuestionNumbers, items: PendingAggregates) -> Flags:
        """Return for each item whether the item was in an earlier digest."""
        found = np.zeros(owner.size, np.bool_)
        for ticks, covered in self._levels:
            found |= (items.times < ticks[owner]) & covered.holds(owner, items)
        return found

    def holds_partly(self, owner: QuestionNumbers, items: PendingAggregates) -> Flags:
        """Return for each item whether the cut of an earlier digest lies within the item's range."""
        found = np.zeros(owner.size, np.bool_)
        for ticks, covered in self._levels:
            found |= (items.times < ticks[owner]) & covered.holds(owner, items) & ~covered.holds_all(owner, items)
        return found


class VisibleTimes:
    """The visible record times of questions at one version of the tables.

    Only the last selected version is kept, since neighbouring records mostly have the same version.
    """

    def __init__(self, visibility: Sequence[tuple[VisibilityInterval, ...]]) -> None:
        self._visibility = visibility
        self._version: tuple[int, int] | None = None
        self._flags = np.zeros(len(visibility), np.bool_)
        self._bounds = np.empty((2, len(visibility)), np.int64)
        """START and EXPIRE, by question."""
        self._several: dict[int, list[Window]] = {}
        """The windows of questions with several windows, which are few."""

    def at(self, epoch: int, version: int) -> Flags:
        """Select a version, and return for each question whether any time is visible to it at this version."""
        if self._version == (epoch, version):
            return self._flags
        self._version = (epoch, version)
        self._bounds[0], self._bounds[1] = FIRST, LAST
        self._several = {}
        for number, intervals in enumerate(self._visibility):
            windows = windows_at(intervals, epoch, version)
            self._flags[number] = bool(windows)
            if len(windows) > 1:
                self._several[number] = windows
            elif windows and windows != _ALWAYS:
                start, expire = windows[0]
                self._bounds[0, number] = FIRST if start is None else start
                self._bounds[1, number] = LAST if expire is None else expire
        return self._flags

    def inside(self, owner: QuestionNumbers, times: NDArray[np.int64]) -> Flags:
        """Return for each time whether the time is visible to the question at the same place in `owner`."""
        start, expire = self._bounds[:, owner]
        seen: Flags = (times >= start) & (times < expire)
        for number in self._several.keys() & set(owner.tolist()) if self._several else ():
            mine = np.flatnonzero(owner == number)
            seen[mine] = [_within(at_ms, self._several[number]) for at_ms in times[mine].tolist()]
        return seen


def _within(at_ms: int, windows: Iterable[Window]) -> bool:
    return any((start is None or at_ms >= start) and (expire is None or at_ms < expire) for start, expire in windows)
