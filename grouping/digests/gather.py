"""Which of the stored matches a destination has still to get, and which of them at this tick. No I/O but the log."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from grouping.digests.cursor import Cursor, Offsets, Sight, Window, highest, windows_at
from grouping.digests.pending_log import PendingLog, Place
from grouping.digests.rows import Row, Rows
from grouping.digests.stored import Stored
from grouping.pending_matches import PendingMatches

__all__ = ["BOUNDS", "Bounds", "Gathered", "Wanted", "gather"]


class Bounds(NamedTuple):
    """How many records are held in memory at once."""

    one: int = 64
    """Of one destination; where it has more, they are read one after the other."""
    together: int = 256
    """Of several destinations, read together."""


class Wanted(NamedTuple):
    """One destination's question."""

    store: bytes
    stored: Stored | None
    """None: nothing is pending."""
    cursor: Cursor
    history: tuple[Sight, ...]
    before_ms: int | None
    """The tick; None for no row at all, just what is left."""
    covered: Offsets | None
    """What the tick's cut covers; None for everything."""


class Gathered(NamedTuple):
    """The answer."""

    rows: Rows
    """This tick's matches, each once, in source order per partition."""
    left_ms: int | None
    """The earliest time among those that are left for later ticks."""
    held: tuple[int, ...]
    """The records that hold them, ascending."""
    oldest: tuple[int, int] | None
    """The oldest epoch and version of the tables that met one of them."""
    repeats: int
    """Matches that were there once more, since their batch was replayed."""


BOUNDS = Bounds()


def gather(log: PendingLog, questions: Iterable[Wanted], bounds: Bounds = BOUNDS) -> Iterator[Gathered]:
    """Answer destinations' questions in their order, reading a record once for many of them.

    Args:
        log: Where the matches are.
        questions: Of destinations; asked as the answers are taken.
        bounds: Of what is held in memory.
    """
    asked: list[tuple[Wanted, list[Place] | None]] = []
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
    log: PendingLog, asked: list[tuple[Wanted, list[Place] | None]], together: set[Place]
) -> Iterator[Gathered]:
    records = log.load(together)
    for question, places in asked:
        if places is None:
            found = _scanned(log, question)
        else:
            found = ((place[1], records[place]) for place in places if place in records)
        yield _answer(question, found)


def _places(question: Wanted, most: int) -> list[Place] | None:
    """Return where matches lie that the destination has not been given, in the order of the log.

    None where there are very many, or old ones that the index has no positions of: the log is read from the first on.
    """
    stored, cursor = question.stored, question.cursor
    if stored is None:
        return []
    first = bisect_left(stored.positions, cursor.next)
    if len(stored.positions) - first > most or (stored.older is not None and cursor.next < stored.positions[0]):
        return None  # a store with older records has positions
    return [(stored.partition, offset) for offset in sorted({*cursor.held, *stored.positions[first:]})]


def _scanned(log: PendingLog, question: Wanted) -> Iterator[tuple[int, PendingMatches]]:
    """Yield the records of a question in the order of the log, one at a time but those that its cursor names."""
    stored, cursor = question.stored, question.cursor
    assert stored is not None, "there is something to read"
    first = max(stored.positions[0] if stored.older is None else stored.older, cursor.next)
    named = [(stored.partition, offset) for offset in sorted(set(cursor.held)) if offset < first]
    records = log.load(named)
    yield from ((place[1], records[place]) for place in named if place in records)
    for place, record in log.scan(stored.partition, first, stored.positions[-1]):
        if question.store in record.spans:
            yield place[1], record


def _answer(question: Wanted, records: Iterable[tuple[int, PendingMatches]]) -> Gathered:
    """Go through the records that may hold something of a destination, in the order of the log."""
    sieve = _Sieve(question)
    held: list[int] = []
    oldest: tuple[int, int] | None = None
    for position, record in records:
        if sieve.take(record):
            held.append(position)
            version = (record.epoch, record.version)
            oldest = version if oldest is None else min(oldest, version)
    return Gathered(sieve.rows, sieve.left_ms, tuple(held), oldest, sieve.repeats)


class _Sieve:
    """Parts the matches of one destination into this tick's, those that are left, and those that it has had."""

    def __init__(self, question: Wanted) -> None:
        self._question = question
        before = question.cursor.covered
        self._covered = None if question.covered is None else highest(question.covered, before)
        self._marks: dict[int, int] = {}
        """By source partition: the last offset that was taken."""
        self.rows = Rows()
        self.left_ms: int | None = None
        self.repeats = 0

    def take(self, record: PendingMatches) -> bool:
        """Go through a record, and return whether something of it is left for later ticks."""
        question, cursor = self._question, self._question.cursor
        windows = windows_at(question.history, record.epoch, record.version)
        if not windows:
            return False
        before_ms, always, left = question.before_ms, windows == [(None, None)], False
        for partition, offset, time_ms, row in record.items(question.store):
            if cursor.passed(partition, offset, time_ms):
                continue
            if not always and not _sees(windows, time_ms):
                continue
            if before_ms is not None and time_ms < before_ms and self._covers(partition, offset):
                self._add(Row(partition, offset, time_ms, record.values[row]))
            else:
                left = True
                self.left_ms = time_ms if self.left_ms is None else min(self.left_ms, time_ms)
        return left

    def _covers(self, partition: int, offset: int) -> bool:
        return self._covered is None or offset < self._covered.get(str(partition), 0)

    def _add(self, row: Row) -> None:
        """Take a match, unless it was taken already.

        A batch that is replayed after a crash writes its matches again, in the same order: offsets only grow otherwise.
        """
        if row.offset > self._marks.get(row.partition, -1):
            self._marks[row.partition] = row.offset
            self.rows.append(row)
        else:
            self.repeats += 1


def _sees(windows: list[Window], time_ms: int) -> bool:
    return any(
        (start is None or time_ms >= start) and (expire is None or time_ms < expire) for start, expire in windows
    )
