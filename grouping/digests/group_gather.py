"""Which of the stored groups a destination counts at a tick: as `gather` does it for matches, by whole columns.

A partial group stands for a range of offsets in one pane. No tick, START or EXPIRE of its readers lies within a pane,
and a cut holds all of a range or nothing, so it is in or out as a single match at the range's first offset would be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grouping.digests.cursor import Cursor, DigestCoverage, Offsets, Window, highest, window_base, windows_at
from grouping.digests.gather import BOUNDS, Bounds, DigestQuestion, places_of, scanned
from grouping.digests.pending_log import PendingLog, Place
from grouping.digests.pending_matches import PendingGroups, PendingMatches

__all__ = ["GroupAnswer", "gather_groups"]

Rows = NDArray[np.int64]


class GroupAnswer(NamedTuple):
    """The partial groups that a tick counts, and what is left."""

    parts: list[tuple[int, PendingMatches, Rows]]
    """Records by their offsets, each with its rows of the table of states, in the order of the log."""
    left_ms: int | None
    """The earliest pane among those that are left for later ticks."""
    held: tuple[int, ...]
    """The records that hold them, ascending."""
    oldest: tuple[int, int] | None
    """The oldest epoch and version of the tables that met one of them."""
    repeats: int
    """Partial groups that were there once more, since their batch was replayed."""


def gather_groups(
    log: PendingLog, questions: Iterable[tuple[DigestQuestion, int]], bounds: Bounds = BOUNDS
) -> Iterator[GroupAnswer]:
    """Answer destinations' questions in their order; one that is asked again has the answer that it had.

    Args:
        log: Where the groups are.
        questions: Of destinations, each with the length of OVER LAST in milliseconds, 0 where there is none.
        bounds: Of what is held in memory.
    """
    asked: list[tuple[DigestQuestion, int, list[Place] | None]] = []
    together: set[Place] = set()
    for question, over_ms in questions:
        places = places_of(question, bounds.one)
        further = [place for place in places or () if place not in together]
        if len(together) + len(further) > bounds.together and asked:
            yield from _answers(log, asked, together)
            asked, together, further = [], set(), places or []
        asked.append((question, over_ms, places))
        together.update(further)
    yield from _answers(log, asked, together)


def _answers(
    log: PendingLog, asked: list[tuple[DigestQuestion, int, list[Place] | None]], together: set[Place]
) -> Iterator[GroupAnswer]:
    records = log.load(together)
    for question, over_ms, places in asked:
        if places is None:
            found = scanned(log, question)
        else:
            found = ((place[1], records[place]) for place in places if place in records)
        yield _Gathering(question, over_ms).answer(found)


class _Gathering:
    """One question's way through the log."""

    def __init__(self, question: DigestQuestion, over_ms: int) -> None:
        cursor = question.cursor
        self._question = question
        self._covered = None if question.covered is None else highest(question.covered, cursor.covered)
        self._had = _coverage(cursor, question.before_ms, over_ms)
        """What earlier digests held that this one does not hold again."""
        following = _coverage(cursor, None if question.before_ms is None else question.before_ms + 1, over_ms)
        self._done = following if over_ms else self._had
        """What no later digest holds."""
        self._over_ms = over_ms
        self._marks: dict[int, tuple[int, int, int]] = {}

    def answer(self, records: Iterable[tuple[int, PendingMatches]]) -> GroupAnswer:
        """Go through the records that may hold something, in the order of the log."""
        parts, held, repeats = list[tuple[int, PendingMatches, Rows]](), list[int](), 0
        left_ms: int | None = None
        oldest: tuple[int, int] | None = None
        for position, record in records:
            windows = windows_at(self._question.visibility, record.epoch, record.version)
            begin, end = record.spans.get(self._question.store, (0, 0))
            if not windows or begin == end:
                continue
            items = record.groups.between(begin, end)
            seen = _seen(items.times, windows)
            new = seen & ~_within(items, self._had)
            now = new & self._in(items)
            kept, again = self._first_time(items, now)
            repeats += again
            if kept.any():
                parts.append((position, record, items.rows[kept].astype(np.int64)))
            later = seen & ~_within(items, self._done) & ~(now if not self._over_ms else np.zeros_like(now))
            if later.any():
                held.append(position)
                earliest = int(items.times[later].min())
                left_ms = earliest if left_ms is None else min(left_ms, earliest)
                version = (record.epoch, record.version)
                oldest = version if oldest is None else min(oldest, version)
        return GroupAnswer(parts, left_ms, tuple(held), oldest, repeats)

    def _in(self, items: PendingGroups) -> NDArray[np.bool_]:
        before_ms = self._question.before_ms
        if before_ms is None:
            return np.zeros(items.times.size, np.bool_)
        inside = items.times < before_ms
        return inside if self._covered is None else inside & (items.first < _limits(items, self._covered))

    def _first_time(self, items: PendingGroups, now: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], int]:
        """Return which of the items that are in were not met before: a batch that is replayed writes its own again."""
        kept = now.copy()
        for partition in np.unique(items.partitions[now]).tolist():
            mine = now & (items.partitions == partition)
            first, last, ordinal = self._marks.get(partition, (-1, -1, -1))
            new = mine & ((items.first > last) | ((items.first == first) & (items.ordinals > ordinal)))
            kept &= new | ~mine
            places = np.flatnonzero(new)
            if places.size:
                end = places[-1]
                self._marks[partition] = int(items.first[end]), int(items.last[end]), int(items.ordinals[end])
        return kept, int(np.count_nonzero(now) - np.count_nonzero(kept))


def _coverage(cursor: Cursor, before_ms: int | None, over_ms: int) -> list[DigestCoverage]:
    """Return what earlier digests held; with OVER LAST those that lie before the window of a tick."""
    if over_ms:
        base = window_base(cursor, before_ms if before_ms is not None else cursor.tick_ms + 1, over_ms)
        return [] if base is None else [base]
    return [DigestCoverage(cursor.tick_ms, cursor.covered), *cursor.earlier]


def _within(items: PendingGroups, held: Iterable[DigestCoverage]) -> NDArray[np.bool_]:
    """Tell of items whether earlier digests held them."""
    found = np.zeros(items.times.size, np.bool_)
    for coverage in held:
        if coverage.tick_ms:
            found |= (items.times < coverage.tick_ms) & (items.first < _limits(items, coverage.covered))
    return found


def _limits(items: PendingGroups, covered: Offsets) -> NDArray[np.int64]:
    """Return by item up to which offset its partition is covered."""
    partitions = items.partitions
    if partitions.size and partitions[0] == partitions[-1] and (partitions == partitions[0]).all():
        return np.full(partitions.size, covered.get(str(partitions[0]), 0), np.int64)
    return np.array([covered.get(str(partition), 0) for partition in partitions.tolist()], np.int64)


def _seen(times: NDArray[np.int64], windows: list[Window]) -> NDArray[np.bool_]:
    seen = np.zeros(times.size, np.bool_)
    for start, expire in windows:
        inside = np.ones(times.size, np.bool_)
        if start is not None:
            inside &= times >= start
        if expire is not None:
            inside &= times < expire
        seen |= inside
    return seen
