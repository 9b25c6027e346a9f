"""Gathers the partial aggregates of digests. `gather` does the same for matches.

A partial aggregate covers a range of offsets in one pane. No tick, START or EXPIRE of its readers lies within the pane,
and a cut covers the whole range or no part of it. So a digest has a partial aggregate if and only if it would have a
match at the first offset of the range.

Nearly every record has aggregates of every store. So the log is read once, in its order, for all questions, and each
record is processed for all questions at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grouping.digests.answers import LaterMatches
from grouping.digests.cursor import Cursor, DigestCoverage, SourceOffsets, highest, window_base
from grouping.digests.first_times import FirstTimes
from grouping.digests.gather import BOUNDS, Bounds, DigestQuestion
from grouping.digests.pending_log import PendingLog
from grouping.digests.pending_matches import PendingMatches
from grouping.digests.question_columns import (
    FIRST,
    LAST,
    CoveredOffsets,
    EarlierDigests,
    Flags,
    QuestionNumbers,
    VisibleTimes,
)

__all__ = ["AggregatePart", "AggregateQuestion", "gather_aggregates"]


class AggregateQuestion(NamedTuple):
    """A destination's question about aggregates."""

    question: DigestQuestion
    over_ms: int = 0
    """The length of OVER LAST in milliseconds; 0 without OVER LAST."""
    from_ms: int = 0
    """When the digest begins, in epoch milliseconds. Matches with earlier times are late."""
    ended_ms: int = 0
    """When the destination ended, in epoch milliseconds; 0 for a live destination. The last window of an ended
    destination has all matches that still wait.
    """


class AggregatePart(NamedTuple):
    """The partial aggregates of a record that belong to questions."""

    record: PendingMatches
    rows: QuestionNumbers
    """Numbers of rows in the record's table of states (`PendingMatches.values`). A row that belongs to several
    questions is repeated."""
    question: QuestionNumbers
    """By row: the number of the question to which the row belongs."""
    late: Flags
    """By row: whether the row's pane lies before the beginning of the question's digest."""


def gather_aggregates(
    log: PendingLog,
    questions: Sequence[AggregateQuestion],
    take: Callable[[list[AggregatePart]], None],
    bounds: Bounds = BOUNDS,
) -> list[LaterMatches]:
    """Answer the questions of destinations. All questions must have the same cut.

    Args:
        log: The log with the aggregates.
        questions: The questions of destinations.
        take: A function that is called for some records at a time, with a part of each record, in the order of the log.
        bounds: Limits on the records in memory.
    """
    sweep = _Sweep(questions)
    records = sweep.records(log, bounds.one)
    while some := list(islice(records, bounds.one)):
        parts = [part for position, record in some if (part := sweep.part(position, record)) is not None]
        if parts:
            take(parts)
    return sweep.answers()


class _Sweep:
    """A pass through the log for all questions; the arrays have an entry for each question."""

    def __init__(self, questions: Sequence[AggregateQuestion]) -> None:
        self._questions = [each.question for each in questions]
        self._from = np.array([each.from_ms for each in questions], np.int64)
        count = len(questions)
        numbers = defaultdict[bytes, list[int]](list)
        self._holders = defaultdict[int, list[int]](list)
        """Offset of a record → the questions whose cursors name the record in `Cursor.held`."""
        for number, question in enumerate(self._questions):
            numbers[question.store].append(number)
            for position in question.cursor.held:
                self._holders[position].append(number)
        self._of_store = {store: np.array(some) for store, some in numbers.items()}
        self._next = np.array([question.cursor.next for question in self._questions], np.int64)
        self._before = np.array([FIRST if each.before_ms is None else each.before_ms for each in self._questions])
        self._over = np.array([bool(each.over_ms) for each in questions], np.bool_)
        """By question: whether it has OVER LAST, so that a match may be in several digests."""
        self._now = CoveredOffsets([_cut(question) for question in self._questions])
        had, done = [], []
        for question, over_ms, _, ended_ms in questions:
            tick = ended_ms or question.before_ms
            had.append(_coverage(question.cursor, tick, over_ms))
            done.append(_coverage(question.cursor, None if tick is None else tick + 1, over_ms))
        self._had, self._done = EarlierDigests(had), EarlierDigests(done)
        self._visible = VisibleTimes([question.visibility for question in self._questions])
        self._first_times = FirstTimes(count)
        self._rolled_before = np.array([each.stored.rolled_before if each.stored else 0 for each in self._questions])
        self._left = np.full(count, LAST)
        self._held: list[list[int]] = [[] for _ in range(count)]
        self._oldest: list[tuple[int, int] | None] = [None] * count
        self._repeats = np.zeros(count, np.int64)

    # -- records -------------------------------------------------------------------------------------------------------

    def records(self, log: PendingLog, at_once: int) -> Iterator[tuple[int, PendingMatches]]:
        """Yield the records that may hold aggregates for a question, in the order of the log."""
        wanted: dict[int, set[int]] = {}
        rolled: dict[int, set[int]] = {}
        scanned: dict[int, int] = {}
        for question in self._questions:
            stored, cursor = question.stored, question.cursor
            if stored is None:
                continue
            offsets = wanted.setdefault(stored.partition, set())
            offsets.update(offset for offset in stored.positions if offset >= cursor.next)
            offsets.update(offset for offset in cursor.held if offset >= stored.rolled_before)
            if stored.rolled is not None:
                rolled.setdefault(stored.partition, set()).add(stored.rolled)
            if stored.older is not None and stored.positions and cursor.next < stored.positions[0]:
                first = max(stored.older, cursor.next)  # the older records have no positions, so they are scanned
                scanned[stored.partition] = min(first, scanned.get(stored.partition, first))
        for partition, offsets in wanted.items():
            since, some = scanned.get(partition), rolled.get(partition, set())
            single = offsets - some
            yield from _loaded(log, partition, some, at_once)  # rolled records are first, as they replace older ones
            yield from _loaded(log, partition, {each for each in single if since is None or each < since}, at_once)
            if since is not None:
                found = log.scan(partition, since, max(single))
                yield from ((place[1], record) for place, record in found if not record.before)

    # -- parts of records ----------------------------------------------------------------------------------------------

    def part(self, position: int, record: PendingMatches) -> AggregatePart | None:
        """Return the part of a record that belongs to this tick, and note the part for later ticks."""
        stores = list(self._of_store.keys() & record.spans.keys())
        if not stores:
            return None
        asking = [self._of_store[store] for store in stores]
        spans = np.repeat(np.array([record.spans[store] for store in stores]), [len(each) for each in asking], axis=0)
        numbers = np.concatenate(asking)
        wanted = self._next[numbers] <= position
        if position in self._holders:
            wanted |= np.isin(numbers, self._holders[position])
        limits = self._rolled_before[numbers]
        wanted &= limits == record.before if record.before else limits <= position
        wanted &= self._visible.at(record.epoch, record.version)[numbers]
        begins, ends = spans[wanted].T
        sizes = ends - begins
        owner = np.repeat(numbers[wanted], sizes)
        items = record.aggregates.at(np.arange(owner.size) + np.repeat(begins - np.cumsum(sizes) + sizes, sizes))
        seen = self._visible.inside(owner, items.times)
        new = self._first_times.of(items, owner, seen, (record.epoch, record.version))
        now = seen & (items.times < self._before[owner])
        had = self._had.holds(owner, items)
        now &= self._now.holds(owner, items) & ~had
        np.add.at(self._repeats, owner[now & ~new], 1)
        kept = now & new
        later = new & (self._over[owner] | ~now) & ~self._done.holds(owner, items)
        later |= new & (now | had) & ~self._now.holds_all(owner, items)
        later |= new & self._done.holds_partly(owner, items)
        if later.any():
            self._leave(position, record, owner[later], items.times[later])
        if not kept.any():
            return None
        own = owner[kept]
        return AggregatePart(record, items.rows[kept].astype(np.int64), own, items.times[kept] < self._from[own])

    def _leave(self, position: int, record: PendingMatches, owner: QuestionNumbers, times: NDArray[np.int64]) -> None:
        np.minimum.at(self._left, owner, times)
        version = (record.epoch, record.version)
        for number in np.unique(owner).tolist():
            self._held[number].append(position)
            oldest = self._oldest[number]
            self._oldest[number] = version if oldest is None else min(oldest, version)

    def answers(self) -> list[LaterMatches]:
        """Return the aggregates left for later ticks, by question."""
        left = (None if at_ms == LAST else at_ms for at_ms in self._left.tolist())
        return [
            LaterMatches(left_ms=at_ms, held=tuple(held), oldest=oldest, repeats=repeats)
            for at_ms, held, oldest, repeats in zip(left, self._held, self._oldest, self._repeats.tolist(), strict=True)
        ]


def _loaded(
    log: PendingLog, partition: int, offsets: Iterable[int], at_once: int
) -> Iterator[tuple[int, PendingMatches]]:
    """Yield records of a partition in order, with at most `at_once` of them in memory."""
    ordered = iter(sorted(offsets))
    while places := [(partition, offset) for offset in islice(ordered, at_once)]:
        found = log.load(places)
        for place in places:
            if place in found:
                yield from ((place[1], each) for each in found[place].whole)


def _cut(question: DigestQuestion) -> SourceOffsets | None:
    return None if question.covered is None else highest(question.covered, question.cursor.covered)


def _coverage(cursor: Cursor, before_ms: int | None, over_ms: int) -> tuple[DigestCoverage, ...]:
    """Return the coverages of earlier digests; with OVER LAST, only of the last digest before the tick's window."""
    if over_ms:
        base = window_base(cursor, before_ms if before_ms is not None else cursor.tick_ms + 1, over_ms)
        return () if base is None else (base,)
    return (DigestCoverage(cursor.tick_ms, cursor.covered), *cursor.earlier)
