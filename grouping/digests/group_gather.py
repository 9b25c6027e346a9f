"""Which of the stored groups destinations count at a tick: as `gather` does it for matches, by whole records.

A partial group stands for a range of offsets in one pane. No tick, START or EXPIRE of its readers lies within a pane,
and a cut holds all of a range or nothing, so it is in or out as a single match at the range's first offset would be.

A store has something in nearly every record, so the log is gone through once for all questions, in its order, and what
a record has for all of them is decided at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grouping.digests.cursor import Cursor, DigestCoverage, Offsets, Window, highest, window_base, windows_at
from grouping.digests.gather import BOUNDS, Bounds, DigestQuestion
from grouping.digests.pending_log import PendingLog
from grouping.digests.pending_matches import PendingGroups, PendingMatches

__all__ = ["GroupAnswer", "GroupPart", "gather_groups"]

Rows = NDArray[np.int64]
Flags = NDArray[np.bool_]
_NONE = np.iinfo(np.int64).max
_ALWAYS: list[Window] = [(None, None)]


class GroupPart(NamedTuple):
    """What questions want of one record."""

    record: PendingMatches
    rows: Rows
    """Of its table of states; a row that several questions want is there as often."""
    question: Rows
    """By row: the question's number."""


class GroupAnswer(NamedTuple):
    """What is left of a question's groups."""

    left_ms: int | None
    """The earliest pane among those that are left for later ticks."""
    held: tuple[int, ...]
    """The records that hold them, ascending."""
    oldest: tuple[int, int] | None
    """The oldest epoch and version of the tables that met one of them."""
    repeats: int
    """Partial groups that were there once more, since their batch was replayed."""


def gather_groups(
    log: PendingLog,
    questions: Sequence[tuple[DigestQuestion, int]],
    take: Callable[[list[GroupPart]], None],
    bounds: Bounds = BOUNDS,
) -> list[GroupAnswer]:
    """Answer destinations' questions, all of which have one cut.

    Args:
        log: Where the groups are.
        questions: Of destinations, each with the length of OVER LAST in milliseconds, 0 where there is none.
        take: Called with the partial groups that count, in the order of the log, of some records at a time.
        bounds: Of what is held in memory.
    """
    sweep = _Sweep(questions)
    records = sweep.records(log, bounds.one)
    while some := list(islice(records, bounds.one)):
        parts = [part for position, record in some if (part := sweep.part(position, record)) is not None]
        if parts:
            take(parts)
    return sweep.answers()


class _Class(NamedTuple):
    """Questions that differ in their stores, and in what they saw."""

    before_ms: int | None
    had: tuple[DigestCoverage, ...]
    """What earlier digests held that this one does not hold again."""
    done: tuple[DigestCoverage, ...]
    """What no later digest holds."""
    over: bool
    covered: Offsets | None

    @classmethod
    def of(cls, question: DigestQuestion, over_ms: int) -> _Class:
        cursor, before_ms = question.cursor, question.before_ms
        covered = None if question.covered is None else highest(question.covered, cursor.covered)
        had = _coverage(cursor, before_ms, over_ms)
        done = _coverage(cursor, None if before_ms is None else before_ms + 1, over_ms) if over_ms else had
        return cls(before_ms, had, done, bool(over_ms), covered)


class _Sweep:
    """Questions on their way through the log."""

    def __init__(self, questions: Sequence[tuple[DigestQuestion, int]]) -> None:
        self._questions = [question for question, _ in questions]
        self._classes: list[_Class] = []
        self._class_of: list[int] = []
        known: dict[str, int] = {}
        for question, over_ms in questions:
            made = _Class.of(question, over_ms)
            key = repr(made)  # it holds dicts
            if key not in known:
                known[key] = len(known)
                self._classes.append(made)
            self._class_of.append(known[key])
        self._reading = [
            (question.cursor.next, frozenset(question.cursor.held), question.visibility) for question in self._questions
        ]
        """From which record on each question reads, which of those before, and what it saw."""
        self._of_store: dict[bytes, list[int]] = {}
        for number, question in enumerate(self._questions):
            self._of_store.setdefault(question.store, []).append(number)
        count = len(questions)
        self._marks: dict[int, NDArray[np.int64]] = {}
        """By source partition: first and last offset, and ordinal, of what each question met last."""
        self._left = np.full(count, _NONE)
        self._held: list[list[int]] = [[] for _ in range(count)]
        self._oldest: list[tuple[int, int] | None] = [None] * count
        self._repeats = np.zeros(count, np.int64)

    # -- which records -------------------------------------------------------------------------------------------------

    def records(self, log: PendingLog, at_once: int) -> Iterator[tuple[int, PendingMatches]]:
        """Yield the records that may hold something, in the order of the log."""
        wanted: dict[int, set[int]] = {}
        scanned: dict[int, int] = {}
        for question in self._questions:
            stored, cursor = question.stored, question.cursor
            if stored is None:
                continue
            offsets = wanted.setdefault(stored.partition, set())
            offsets.update(offset for offset in stored.positions if offset >= cursor.next)
            offsets.update(cursor.held)
            if stored.older is not None and stored.positions and cursor.next < stored.positions[0]:
                first = max(stored.older, cursor.next)  # of the older ones there are no positions
                scanned[stored.partition] = min(first, scanned.get(stored.partition, first))
        for partition, offsets in wanted.items():
            since = scanned.get(partition)
            ordered = sorted(offset for offset in offsets if since is None or offset < since)
            for begin in range(0, len(ordered), at_once):
                places = [(partition, offset) for offset in ordered[begin : begin + at_once]]
                found = log.load(places)
                yield from ((place[1], found[place]) for place in places if place in found)
            if since is not None:
                yield from ((place[1], record) for place, record in log.scan(partition, since, max(offsets)))

    # -- what of them --------------------------------------------------------------------------------------------------

    def part(self, position: int, record: PendingMatches) -> GroupPart | None:
        """Return what counts of a record, and note what is left."""
        by_class = defaultdict[int, list[tuple[int, int, int]]](list)
        reading, class_of = self._reading, self._class_of
        narrow: dict[int, list[Window]] = {}
        for store in self._of_store.keys() & record.spans.keys():
            begin, end = record.spans[store]
            for number in self._of_store[store]:
                following, held, visibility = reading[number]
                if position < following and position not in held:
                    continue  # the question has passed it
                windows = windows_at(visibility, record.epoch, record.version)
                if windows:
                    by_class[class_of[number]].append((number, begin, end))
                    if windows != _ALWAYS:
                        narrow[number] = windows
        rows, owners = [], []
        for number, spans in by_class.items():
            found = self._of_class(self._classes[number], position, record, spans, narrow)
            rows.append(found[0])
            owners.append(found[1])
        if not rows or not sum(each.size for each in rows):
            return None
        return GroupPart(record, np.concatenate(rows), np.concatenate(owners))

    def _of_class(
        self,
        each: _Class,
        position: int,
        record: PendingMatches,
        spans: list[tuple[int, int, int]],
        narrow: dict[int, list[Window]],
    ) -> tuple[Rows, Rows]:
        numbers, begins, ends = np.array(spans).T
        sizes = ends - begins
        owner = np.repeat(numbers, sizes)
        items = record.groups.at(np.arange(owner.size) + np.repeat(begins - np.cumsum(sizes) + sizes, sizes))
        seen = np.ones(owner.size, np.bool_)
        for number in narrow.keys() & set(numbers.tolist()) if narrow else ():
            mine = owner == number
            seen[mine] = _seen(items.times[mine], narrow[number])
        now = seen & ~_within(items, each.had)
        if each.before_ms is None:
            now[:] = False
        else:
            now &= items.times < each.before_ms
            if each.covered is not None:
                now &= items.first < _limits(items, each.covered)
        kept = self._first_time(items, owner, now)
        later = seen & ~_within(items, each.done)
        if not each.over:
            later &= ~now
        if later.any():
            self._leave(position, record, owner[later], items.times[later])
        return items.rows[kept].astype(np.int64), owner[kept]

    def _first_time(self, items: PendingGroups, owner: Rows, now: Flags) -> Flags:
        """Return which of the items that are in were not met before: a batch that is replayed writes its own again."""
        kept = now.copy()
        for partition in np.unique(items.partitions[now]).tolist():
            marks = self._marks.get(partition)
            if marks is None:
                marks = self._marks[partition] = np.full((3, len(self._questions)), -1)
            mine = now & (items.partitions == partition)
            first, last, ordinal = marks[:, owner]
            new = mine & ((items.first > last) | ((items.first == first) & (items.ordinals > ordinal)))
            kept &= new | ~mine
            met = np.flatnonzero(new)  # those of a question ascend, and the last one stays
            marks[:, owner[met]] = items.first[met], items.last[met], items.ordinals[met]
        np.add.at(self._repeats, owner[now & ~kept], 1)
        return kept

    def _leave(self, position: int, record: PendingMatches, owner: Rows, times: NDArray[np.int64]) -> None:
        np.minimum.at(self._left, owner, times)
        version = (record.epoch, record.version)
        for number in np.unique(owner).tolist():
            self._held[number].append(position)
            oldest = self._oldest[number]
            self._oldest[number] = version if oldest is None else min(oldest, version)

    def answers(self) -> list[GroupAnswer]:
        """Return what is left, by question."""
        left = (None if at_ms == _NONE else at_ms for at_ms in self._left.tolist())
        return [
            GroupAnswer(at_ms, tuple(held), oldest, repeats)
            for at_ms, held, oldest, repeats in zip(left, self._held, self._oldest, self._repeats.tolist(), strict=True)
        ]


def _coverage(cursor: Cursor, before_ms: int | None, over_ms: int) -> tuple[DigestCoverage, ...]:
    """Return what earlier digests held; with OVER LAST those that lie before the window of a tick."""
    if over_ms:
        base = window_base(cursor, before_ms if before_ms is not None else cursor.tick_ms + 1, over_ms)
        return () if base is None else (base,)
    return (DigestCoverage(cursor.tick_ms, cursor.covered), *cursor.earlier)


def _within(items: PendingGroups, held: Iterable[DigestCoverage]) -> Flags:
    """Tell of items whether earlier digests held them."""
    found = np.zeros(items.times.size, np.bool_)
    for coverage in held:
        if coverage.tick_ms:
            found |= (items.times < coverage.tick_ms) & (items.first < _limits(items, coverage.covered))
    return found


def _limits(items: PendingGroups, covered: Offsets) -> NDArray[np.int64]:
    """Return by item up to which offset its partition is covered."""
    partitions = items.partitions
    if partitions.size and (partitions == partitions[0]).all():
        return np.full(partitions.size, covered.get(str(partitions[0]), 0), np.int64)
    return np.array([covered.get(str(partition), 0) for partition in partitions.tolist()], np.int64)


def _seen(times: NDArray[np.int64], windows: list[Window]) -> Flags:
    seen = np.zeros(times.size, np.bool_)
    for start, expire in windows:
        inside = np.ones(times.size, np.bool_)
        if start is not None:
            inside &= times >= start
        if expire is not None:
            inside &= times < expire
        seen |= inside
    return seen
