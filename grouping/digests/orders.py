"""Orders of digests: at a tick with very many destinations, the gateway only decides which destinations get a digest.

The gateway writes *orders* to `cq.orders`, and a Spark job makes the digests. The digests of an order depend only on
the order and on `cq.pending`, so a job that carries out an order again writes the same records.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from grouping.digests.answers import DigestMatches
from grouping.digests.cursor import MOST_HELD, Cursor, SourceOffsets, VisibilityInterval, moved
from grouping.digests.digest import Digest, DigestTimes, digest_parts
from grouping.digests.gather import BOUNDS, Bounds, DigestQuestion, gather
from grouping.digests.match_places import MatchPlaces
from grouping.digests.pending_log import PendingLog
from grouping.digests.rows import DigestRows, RowsUnavailable
from grouping.model.ids import DestinationId, GroupId, SelectId, StreamId
from grouping.model.query import DigestClause, PackedDigest
from grouping.model.sql_type import SqlType

__all__ = [
    "ANSWERS",
    "ORDERS",
    "OrderOutcome",
    "DigestFault",
    "DigestOrder",
    "DigestOutcome",
    "MadeDigest",
    "Order",
    "StorePlaces",
    "TableCut",
    "carry_out",
    "ordered_parts",
    "places_after",
]

ORDERS, ANSWERS = 0, 1
"""Partitions of `cq.orders`."""

_MANY = 64
"""The largest number of positions that an order names. If there are more, the order names only the first and the last,
and the job reads all records from the first to the last.
"""


class StorePlaces(msgspec.Struct, array_like=True, frozen=True):
    """The positions of a store's matches that a destination's cursor has not passed; a snapshot of `MatchPlaces`."""

    partition: int
    """The partition of `cq.pending` with the store's matches."""
    older: int | None
    """If set, each record from this offset to the first of `positions` may have matches too."""
    positions: tuple[int, ...]
    """Offsets of records with matches, ascending."""


def places_after(stored: MatchPlaces | None, cursor: Cursor, most: int = _MANY) -> StorePlaces | None:
    """Return the positions that a cursor has not passed; None if no match is pending.

    Args:
        stored: The store's positions.
        cursor: The destination's cursor.
        most: The largest number of positions that the result names.

    Example:
        >>> places_after(MatchPlaces(3, array("q", [5, 8, 9])), Cursor(next=6))
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
    """Everything needed to make a destination's digest."""

    destination_id: DestinationId
    born_ms: int
    """When the destination's incarnation began, epoch milliseconds."""
    topic: str
    partition: int
    digest: PackedDigest
    """The digest clause."""
    column_type: str
    """The type of TOP's column."""
    tick_ms: int
    from_ms: int
    cursor: Cursor
    visibility: tuple[VisibilityInterval, ...]
    store: bytes
    places: StorePlaces | None
    reached: int
    """The offset in the store's partition of `cq.pending` at which the tick's records end."""
    of_rows: tuple[GroupId, SelectId, str] | None = None
    """For a digest of a table's rows: its group, its SELECT list and its constants (`canonical_constants`)."""

    @property
    def clause(self) -> DigestClause:
        """The digest clause, typed."""
        return DigestClause.of(self.digest)


class TableCut(msgspec.Struct, array_like=True, frozen=True):
    """The rows of a table at a tick, and the queries of all digests of these rows in an order."""

    stream: bytes
    """The stream of the table's changes, as JSON."""
    ends: SourceOffsets
    """Source partition → position up to which the table's records are read; these records make the rows."""
    segment: bytes
    """An encoded `Segment` with an entry for each store of the digests; the entries are numbered from 0."""
    plans: bytes
    """The plans of the groups, as JSON."""
    selects: bytes
    """The SELECT lists, as JSON."""


class Order(msgspec.Struct, array_like=True, frozen=True):
    """A record of `cq.orders`: digests of one or several ticks that are made together."""

    stream_id: StreamId
    source: str
    """The stream's name."""
    covered: SourceOffsets
    """The cut: by source partition, the offset below which the digests cover events."""
    fired_ms: int
    """The time of the digests' records, epoch milliseconds."""
    digests: tuple[DigestOrder, ...]
    table: TableCut | None = None
    """The table for digests with `DigestOrder.of_rows`; None without such digests."""

    def only(self, *, of_rows: bool) -> Order:
        """Return the order with only its digests of a table's rows, or with only its other digests."""
        digests = tuple(each for each in self.digests if (each.of_rows is not None) == of_rows)
        return msgspec.structs.replace(self, digests=digests, table=self.table if of_rows else None)


class DigestOutcome(msgspec.Struct, array_like=True, frozen=True):
    """The outcome of a digest of an order."""

    destination_id: DestinationId
    born_ms: int
    tick_ms: int
    reached: int
    """As in `DigestOrder`."""
    cursor: Cursor | None
    """The destination's new cursor; None if the cursor does not change."""
    late: int
    """The number of matches with times before the beginning of the digest."""
    left_ms: int | None
    """The earliest time of the matches that are left for later ticks."""
    oldest: tuple[int, int] | None
    """The lowest epoch and version of the constant tables among the matches that are left."""
    repeats: int = 0
    """The number of repeated matches, which replayed micro-batches have written."""
    failure: str = ""
    """Why the digest could not be made, in which case no part is written; empty otherwise."""

    @property
    def incarnation(self) -> str:
        """The name of the incarnation, under which the cursor is stored."""
        return f"{self.destination_id}/{self.born_ms}"

    @property
    def sent(self) -> bool:
        """Whether a digest was sent."""
        return self.cursor is not None and self.cursor.tick_ms == self.tick_ms


class OrderOutcome(msgspec.Struct, array_like=True, frozen=True):
    """A record of `cq.orders`: the outcomes of an order's digests, under the order's offset as key."""

    stream_id: StreamId
    fired_ms: int
    digests: tuple[DigestOutcome, ...]


class DigestFault(NamedTuple):
    """A dead letter that reports that a digest, or some of its rows, could not be written."""

    code: str
    """The code of the dead letter."""
    detail: str
    """The reason, in full sentences."""


class MadeDigest(NamedTuple):
    """A digest of an order."""

    order: DigestOrder
    digest: Digest | None
    """None if there is nothing to send."""
    outcome: DigestOutcome
    fault: DigestFault | None = None


def carry_out(
    log: PendingLog, order: Order, bounds: Bounds = BOUNDS, most_held: int = MOST_HELD
) -> Iterator[tuple[DigestOrder, Digest | None, DigestOutcome]]:
    """Yield the digests of an order (None if there is nothing to send) with their outcomes, in order.

    Args:
        log: The log of pending matches.
        order: The order.
        bounds: Limits on the records in memory.
        most_held: The largest number of records that a cursor names.
    """
    questions = (
        DigestQuestion(each.store, _stored(each.places), each.cursor, each.visibility, each.tick_ms, order.covered)
        for each in order.digests
    )
    for each, found in zip(order.digests, gather(log, questions, bounds), strict=True):
        try:
            if not isinstance(found, DigestMatches):
                raise RowsUnavailable(found.reason)
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
        cursor = moved(
            each.cursor, tick_ms, order.covered, each.reached, found.held, most_held, positions=found.positions
        )
        answered = DigestOutcome(
            each.destination_id,
            each.born_ms,
            each.tick_ms,
            each.reached,
            cursor if cursor != each.cursor else None,
            digest.late if digest is not None and not found.positions else 0,
            found.left_ms,
            found.oldest,
            found.repeats,
        )
        yield each, digest, answered


def _digest(each: DigestOrder, matches: DigestRows) -> Digest | None:
    """Return a digest of an order; None if there is nothing to send."""
    if not matches and not each.clause.even_if_empty:
        return None
    return Digest.of(each.clause, SqlType.of(each.column_type), matches, each.from_ms)


def ordered_parts(
    order: Order, each: DigestOrder, digest: Digest
) -> Iterator[tuple[bytes, tuple[tuple[str, bytes], ...]]]:
    """Yield value and headers of each record of a digest of an order."""
    return digest_parts(
        order.source, each.destination_id, digest, DigestTimes(order.fired_ms, each.from_ms, each.tick_ms)
    )


def _stored(places: StorePlaces | None) -> MatchPlaces | None:
    return None if places is None else MatchPlaces(places.partition, array("q", places.positions), places.older)
