"""Which of the stored matches a destination has still to get, and which of them at this tick. No I/O but the log."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from grouping.digests.cursor import Cursor, Offsets, Sight, windows_at
from grouping.digests.pending_log import PendingLog, Place
from grouping.digests.rows import Row, Rows
from grouping.digests.stored import Stored
from grouping.pending_matches import PendingMatches

__all__ = ["Gathered", "Wanted", "gather"]


_MANY = 64
"""Records of one destination that are held in memory at once."""
_AT_ONCE = 256
"""Records of all that are held in memory at once."""


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
    """The records that hold them."""
    oldest: tuple[int, int] | None
    """The oldest epoch and version of the tables that met one of them."""


def gather(log: PendingLog, questions: Iterable[Wanted]) -> Iterator[Gathered]:
    """Answer destinations' questions in their order, reading a record once for many of them.

    Args:
        log: Where the matches are.
        questions: Of destinations; asked as the answers are taken.
    """
    asked: list[tuple[Wanted, list[Place]]] = []
    together: set[Place] = set()
    for question in questions:
        places = _places(question)
        further = [place for place in places if place not in together]
        if len(together) + len(further) > _AT_ONCE and asked:
            yield from _answers(log, asked, together)
            asked, together, further = [], set(), places
        asked.append((question, places))
        together.update(further)
    yield from _answers(log, asked, together)


def _answers(log: PendingLog, asked: list[tuple[Wanted, list[Place]]], places: set[Place]) -> Iterator[Gathered]:
    records = log.load(places)
    for question, own in asked:
        yield _answer(question, _in_order(log, question, own, records))


def _places(question: Wanted) -> list[Place]:
    """Return where the index says that matches lie which the destination has not been given; none of very many."""
    stored, cursor = question.stored, question.cursor
    if stored is None:
        return []
    first = bisect_left(stored.positions, cursor.next)
    if len(stored.positions) - first > _MANY:
        return []
    partition = stored.partition
    return [(partition, offset) for offset in (*cursor.held, *stored.positions[first:])]


def _in_order(
    log: PendingLog, question: Wanted, places: list[Place], records: dict[Place, PendingMatches]
) -> Iterator[tuple[int, PendingMatches]]:
    """Yield the records of a question in the order of the log; of very many, and of old ones, one at a time."""
    stored, cursor = question.stored, question.cursor
    if stored is None:
        return
    older = stored.older is not None and cursor.next < stored.positions[0]
    if places and not older:
        yield from ((place[1], records[place]) for place in places if place in records)
    elif stored.positions:
        for place, record in log.load([(stored.partition, offset) for offset in cursor.held]).items():
            yield place[1], record
        first = max(stored.older if stored.older is not None else stored.positions[0], cursor.next)
        for place, record in log.scan(stored.partition, first, stored.positions[-1]):
            if question.store in record.spans and place[1] not in cursor.held:
                yield place[1], record


def _answer(question: Wanted, records: Iterator[tuple[int, PendingMatches]]) -> Gathered:
    cursor, before_ms, covered = question.cursor, question.before_ms, question.covered
    rows = Rows()
    held: list[int] = []
    left_ms: int | None = None
    oldest: tuple[int, int] | None = None
    marks: dict[int, int] = {}
    for offset_in_log, record in records:
        windows = windows_at(question.history, record.epoch, record.version)
        if not windows:
            continue
        always = windows == [(None, None)]
        begin, end = record.spans[question.store]
        holds = False
        for partition, offset, time_ms, row in record.items[begin:end]:
            if time_ms < cursor.tick_ms and offset < cursor.covered.get(str(partition), 0):
                continue  # an earlier digest had it
            if not always and not any(
                (start is None or time_ms >= start) and (expire is None or time_ms < expire)
                for start, expire in windows
            ):
                continue
            if (
                before_ms is not None
                and time_ms < before_ms
                and (covered is None or offset < covered.get(str(partition), 0))
            ):
                # A batch that is replayed after a crash writes its matches again, in the same order.
                if offset > marks.get(partition, -1):
                    marks[partition] = offset
                    rows.append(Row(partition, offset, time_ms, record.values[row]))
            else:
                holds = True
                left_ms = time_ms if left_ms is None else min(left_ms, time_ms)
        if holds:
            held.append(offset_in_log)
            version = (record.epoch, record.version)
            oldest = version if oldest is None else min(oldest, version)
    return Gathered(rows, left_ms, tuple(held), oldest)
