"""Gathering of matches: the matches in a destination's digest, and the matches left for later ticks."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from grouping.digests.answers import DigestAnswer, DigestMatches, DigestUnavailable
from grouping.digests.cursor import Cursor, SourceOffsets, VisibilityInterval, Window, highest, windows_at
from grouping.digests.match_places import MatchPlaces
from grouping.digests.pending_log import PendingLog, Place
from grouping.digests.pending_matches import PendingMatches
from grouping.digests.rows import DigestRow, DigestRows, RowsUnavailable

__all__ = ["BOUNDS", "Bounds", "DigestQuestion", "gather"]


class Bounds(NamedTuple):
    """Limits on the number of records in memory at the same time."""

    one: int = 64
    """The largest number of records of one destination that are read together. If the destination has more records,
    they are read one by one."""
    together: int = 256
    """The largest number of records of several destinations that are read together."""


class DigestQuestion(NamedTuple):
    """The question about the matches of a destination's digest."""

    store: bytes
    stored: MatchPlaces | None
    """The offsets of the records on `cq.pending` that have matches of the store; None if no match is pending."""
    cursor: Cursor
    visibility: tuple[VisibilityInterval, ...]
    before_ms: int | None
    """The tick; None for a look, which leaves all matches for later ticks."""
    covered: SourceOffsets | None
    """The offsets that the tick's cut covers; None for all offsets."""
    below: int | None = None
    """The offset of the log up to which the tick's cut covers computed results; None for all of `stored`."""


BOUNDS = Bounds()
_NONE = (-1, 0)
"""A position and row number below all matches."""


def gather(log: PendingLog, questions: Iterable[DigestQuestion], bounds: Bounds = BOUNDS) -> Iterator[DigestAnswer]:
    """Answer the questions of destinations, in order. A record that neighbouring questions need is read once.

    Args:
        log: The log of pending matches.
        questions: A question for each destination. The iterator is read only as far as the next answers need.
        bounds: Limits on the records in memory.
    """
    asked: list[tuple[DigestQuestion, list[Place] | None]] = []
    together: set[Place] = set()
    for question in questions:
        places = _places(question, bounds.one)
        further = [place for place in places or () if place not in together]
        if len(together) + len(further) > bounds.together and asked:
            yield from _answers(log, asked, together)
            asked, together, further = [], set(), places or []
        asked.append((question, places))
        together.update(further)
    yield from _answers(log, asked, together)


def _answers(
    log: PendingLog, asked: list[tuple[DigestQuestion, list[Place] | None]], together: set[Place]
) -> Iterator[DigestAnswer]:
    records = log.load(together)
    for question, places in asked:
        if places is None:
            found = _scanned(log, question)
        else:
            found = ((place[1], records[place]) for place in places if place in records)
        try:
            yield _answer(question, found)
        except RowsUnavailable as error:
            yield DigestUnavailable(reason=error.detail or error.message)


def _places(question: DigestQuestion, most: int) -> list[Place] | None:
    """Return the places of records with matches that no digest of the destination has had, in the order of the log.

    The result is None if there are more than `most` places, or if the index lacks the places of older matches. The
    records must then be read by `_scanned`.
    """
    stored, cursor = question.stored, question.cursor
    if stored is None:
        return []
    first = bisect_left(stored.positions, cursor.next)
    if len(stored.positions) - first > most or (stored.older is not None and cursor.next < stored.positions[0]):
        return None  # if `older` is set, there is a first position
    offsets = stored.positions[first:]
    return [(stored.partition, offset) for offset in (sorted({*cursor.held, *offsets}) if cursor.held else offsets)]


def _scanned(log: PendingLog, question: DigestQuestion) -> Iterator[tuple[int, PendingMatches]]:
    """Yield the records of a question in the order of the log, one in memory at a time.

    The records that the cursor names are an exception: they are in memory together.
    """
    stored, cursor = question.stored, question.cursor
    assert stored is not None, "there is something to read"
    first = max(stored.positions[0] if stored.older is None else stored.older, cursor.next)
    named = [(stored.partition, offset) for offset in sorted(set(cursor.held)) if offset < first]
    records = log.load(named)
    yield from ((place[1], records[place]) for place in named if place in records)
    for place, record in log.scan(stored.partition, first, stored.positions[-1]):
        if question.store in record.spans:
            yield place[1], record


def _answer(question: DigestQuestion, records: Iterable[tuple[int, PendingMatches]]) -> DigestMatches:
    """Divide a destination's matches between this tick and later ticks, in the order of the log."""
    store, cursor, before_ms = question.store, question.cursor, question.before_ms
    covered = None if question.covered is None else highest(question.covered, cursor.covered)
    had_ms = max([cursor.tick_ms, *(one.tick_ms for one in cursor.earlier)]) if cursor.earlier else cursor.tick_ms
    rows, held, repeats = DigestRows(), list[int](), 0
    left_ms: int | None = None
    oldest: tuple[int, int] | None = None
    digested = {partition: (place, number) for partition, place, number in cursor.positions}
    marks, has_positions, is_due = dict(digested), False, False
    for position, record in records:
        windows = windows_at(question.visibility, record.epoch, record.version)
        if not windows:
            continue
        always, left = windows == [(None, None)], False
        if computed := record.computed:
            has_positions = True
            is_due = before_ms is not None and (question.below is None or position < question.below)
        for partition, offset, time_ms, number, row in record.items(store):
            if computed:
                if before_ms is None and (offset, number) <= digested.get(partition, _NONE):
                    continue
            elif time_ms < had_ms and cursor.passed(partition, offset, time_ms):
                continue
            else:
                is_due = (
                    before_ms is not None
                    and time_ms < before_ms
                    and (covered is None or offset < covered.get(str(partition), 0))
                )
            if not always and not _sees(windows, time_ms, at_expire=computed):
                continue
            if is_due:
                # A micro-batch that is replayed after a crash writes its matches again, in the same order.
                if (offset, number) > marks.get(partition, _NONE):
                    marks[partition] = (offset, number)
                    rows.append(DigestRow(partition, offset, time_ms, record.values[row]))
                else:
                    repeats += 1
            else:
                left = True
                wanted_ms = 0 if computed else time_ms  # a computed result is due at the next tick
                left_ms = wanted_ms if left_ms is None else min(left_ms, wanted_ms)
        if left:
            held.append(position)
            version = (record.epoch, record.version)
            oldest = version if oldest is None else min(oldest, version)
    positions = tuple((partition, *mark) for partition, mark in sorted(marks.items())) if has_positions else ()
    return DigestMatches(
        rows=rows, left_ms=left_ms, held=tuple(held), oldest=oldest, repeats=repeats, positions=positions
    )


def _sees(windows: list[Window], time_ms: int, *, at_expire: bool) -> bool:
    """Tell whether a time is in one of the windows of a CQ.

    The time of EXPIRE itself is in its window only with `at_expire`.
    """
    return any(
        (start is None or time_ms >= start) and (expire is None or time_ms < expire + at_expire)
        for start, expire in windows
    )
