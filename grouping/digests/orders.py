"""Digests that are made elsewhere than where it was decided whose they are: all that it takes, and what came of it.

At a tick of very many destinations the gateway writes *orders* to the log `cq.orders`, and a Spark job carries them
out. An order needs nothing but itself and `cq.pending`: its digests are the same whoever makes them, and how often.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator

import msgspec

from grouping.digests.cursor import MOST_HELD, Cursor, Offsets, VisibilityInterval, moved
from grouping.digests.digest import Digest, Frame, digest_parts
from grouping.digests.gather import BOUNDS, Bounds, DigestQuestion, gather
from grouping.digests.match_places import MatchPlaces
from grouping.digests.pending_log import PendingLog
from grouping.digests.rows import Rows, RowsUnavailable
from grouping.model.ids import DestinationId, StreamId
from grouping.model.query import DigestClause, PackedDigest
from grouping.model.sql_type import SqlType

__all__ = [
    "ANSWERS",
    "ORDERS",
    "Answer",
    "DigestOutcome",
    "StorePlaces",
    "Order",
    "DigestOrder",
    "carry_out",
    "lying",
    "ordered_parts",
]

ORDERS, ANSWERS = 0, 1
"""Partitions of `cq.orders`."""

_MANY = 64
"""Positions that an order names; of more it has the first and the last, and what lies between is read."""


class StorePlaces(msgspec.Struct, array_like=True, frozen=True):
    """Where the matches of a store lie that a destination has still to get: a `MatchPlaces` as it was at an instant."""

    partition: int
    older: int | None
    positions: tuple[int, ...]


def lying(stored: MatchPlaces | None, cursor: Cursor, most: int = _MANY) -> StorePlaces | None:
    """Return where what a cursor has not passed lies now; None where nothing is pending.

    Args:
        stored: Of the store.
        cursor: The destination's.
        most: Positions that are named.

    Example:
        >>> lying(MatchPlaces(3, array("q", [5, 8, 9])), Cursor(next=6))
        StorePlaces(partition=3, older=None, positions=(8, 9))
    """
    if stored is None or not stored.positions:
        return None
    positions = tuple(stored.positions[bisect_left(stored.positions, cursor.next) :])
    older = stored.older if cursor.next < stored.positions[0] else None
    if len(positions) > most:
        return StorePlaces(stored.partition, positions[0] if older is None else older, positions[-1:])
    return StorePlaces(stored.partition, older, positions)


class DigestOrder(msgspec.Struct, array_like=True, frozen=True):
    """One destination's digest."""

    destination_id: DestinationId
    born_ms: int
    """Which of its incarnations."""
    topic: str
    partition: int
    digest: PackedDigest
    """The digest clause."""
    column_type: str
    """Of TOP's column."""
    tick_ms: int
    from_ms: int
    cursor: Cursor
    visibility: tuple[VisibilityInterval, ...]
    store: bytes
    lying: StorePlaces | None
    reached: int
    """In the store's partition of `cq.pending`: what lies behind is none of this tick's."""

    @property
    def clause(self) -> DigestClause:
        """The digest clause, typed."""
        return DigestClause.of(self.digest)


class Order(msgspec.Struct, array_like=True, frozen=True):
    """A record of the log: digests of one tick, or of some that are due together."""

    stream_id: StreamId
    source: str
    """The stream's name."""
    covered: Offsets
    """The cut: by source partition, matches of lower offsets are in."""
    fired_ms: int
    """The time that the digests give as theirs."""
    digests: tuple[DigestOrder, ...]


class DigestOutcome(msgspec.Struct, array_like=True, frozen=True):
    """What the gateway has to know when a digest is out."""

    destination_id: DestinationId
    born_ms: int
    tick_ms: int
    reached: int
    cursor: Cursor | None
    """Where it moves to; None: it stays, since nothing was there."""
    late: int
    """Matches of times before the digest begins."""
    left_ms: int | None
    """The earliest time of what is left for later ticks."""
    oldest: tuple[int, int] | None
    """The oldest epoch and version of the tables that met something of it."""
    repeats: int = 0
    """Matches that were there once more."""
    failure: str = ""
    """Why the digest could not be made; then nothing of it is out."""

    @property
    def incarnation(self) -> str:
        """What its cursor is kept under."""
        return f"{self.destination_id}/{self.born_ms}"

    @property
    def sent(self) -> bool:
        """Whether there was a digest to send."""
        return self.cursor is not None and self.cursor.tick_ms == self.tick_ms


class Answer(msgspec.Struct, array_like=True, frozen=True):
    """A record of the log: what came of an order. Its key is the order's offset."""

    stream_id: StreamId
    fired_ms: int
    digests: tuple[DigestOutcome, ...]


def carry_out(
    log: PendingLog, order: Order, bounds: Bounds = BOUNDS, most_held: int = MOST_HELD
) -> Iterator[tuple[DigestOrder, Digest | None, DigestOutcome]]:
    """Yield each digest of an order, in turn: None where there is nothing to send; and what came of it.

    Args:
        log: Where the matches are.
        order: What is to be made.
        bounds: Of what is held in memory.
        most_held: Records that a cursor names.
    """
    questions = (
        DigestQuestion(each.store, _stored(each.lying), each.cursor, each.visibility, each.tick_ms, order.covered)
        for each in order.digests
    )
    for each, found in zip(order.digests, gather(log, questions, bounds), strict=True):
        try:
            if found.failure:
                raise RowsUnavailable(found.failure)
            digest = _digest(each, found.rows)
        except RowsUnavailable as error:
            failure = error.detail or error.message
            yield (
                each,
                None,
                DigestOutcome(
                    each.destination_id, each.born_ms, each.tick_ms, each.reached, None, 0, None, None, 0, failure
                ),
            )
            continue
        tick_ms = None if digest is None else each.tick_ms
        cursor = moved(each.cursor, tick_ms, order.covered, each.reached, found.held, most_held)
        answered = DigestOutcome(
            each.destination_id,
            each.born_ms,
            each.tick_ms,
            each.reached,
            cursor if cursor != each.cursor else None,
            digest.late if digest is not None else 0,
            found.left_ms,
            found.oldest,
            found.repeats,
        )
        yield each, digest, answered


def _digest(each: DigestOrder, matches: Rows) -> Digest | None:
    """Return what is sent of a digest's matches, None where that is nothing."""
    if not matches and not each.clause.even_if_empty:
        return None
    return Digest.of(each.clause, SqlType.of(each.column_type), matches, each.from_ms)


def ordered_parts(
    order: Order, each: DigestOrder, digest: Digest
) -> Iterator[tuple[bytes, tuple[tuple[str, bytes], ...]]]:
    """Yield value and headers of the records of one of an order's digests."""
    return digest_parts(order.source, each.destination_id, digest, Frame(order.fired_ms, each.from_ms, each.tick_ms))


def _stored(where: StorePlaces | None) -> MatchPlaces | None:
    return None if where is None else MatchPlaces(where.partition, array("q", where.positions), where.older)
