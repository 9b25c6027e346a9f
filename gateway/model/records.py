"""CQs and destinations in the records of `cq.catalog` and of Redis."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from functools import lru_cache

import msgspec

from gateway.model.trigger_spec import CHANGE_BASED, TriggerSpec
from grouping.digests.cursor import VisibilityInterval, Window
from grouping.model.group import ConstantRow, canonical_constants, parse_constants, pending_id
from grouping.model.ids import DestinationId, GroupId, SelectId, StreamId
from grouping.model.query import DigestClause, Edge, PackedDigest
from grouping.plan.table_changes import is_changes
from grouping.statements.cq_text import CqText
from grouping.values.times import instant
from schemas.partition import partition_of

__all__ = [
    "CatalogCq",
    "Cq",
    "Destination",
    "EdgeSpec",
    "DueSnapshot",
    "PENDING_PARTITIONS",
    "THROTTLED_PARTITIONS",
    "TimedNote",
    "feed_of",
    "incarnation_of",
    "instant",
    "joined_with",
    "millis",
]


def millis(at: datetime) -> int:
    """Return an instant as epoch milliseconds, rounded down, so that the result is in the same year."""
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


class DueSnapshot(msgspec.Struct, frozen=True, array_like=True):
    """A snapshot that a CQ requested (EMIT CHANGES WITH SNAPSHOT) and that is not known to be written yet."""

    own: str
    """The value that `EdgeSpec.own` gets when the snapshot is written."""
    subscriber: str
    name: str
    """The CQ's name."""
    at_ms: int
    """When the CQ was created, epoch milliseconds. The record ``cq.snapshot`` has this time too."""


class EdgeSpec(msgspec.Struct, frozen=True, array_like=True):
    """The edges that a CQ reports, and the offsets at which they begin.

    Each CQ with edges has a destination of its own, even if another CQ is equal. A CQ with frames or ON SILENCE has an
    `EdgeSpec` too, but shares its destination with equal CQs. The first of these CQs sets `since`.
    """

    edge: Edge
    """The kind of edges; "" for a query with frames."""
    own: str | DueSnapshot
    """A hash of the CQ's subscriber, name and beginning; "" if equal CQs share destinations. The ids of the CQ's
    destinations depend on this hash. Until the CQ's snapshot is written, `DueSnapshot` holds the hash."""
    since: tuple[int, ...] = ()
    """By source partition, the offset of the first event that counts. For edges, if the first event of a key from this
    offset on is a match, the key enters with this event, even if earlier events of the key were matches too."""

    @classmethod
    def of(cls, edge: Edge, subscriber: str, name: str, begin_ms: int, *, snapshot: bool = False) -> EdgeSpec:
        """Return the edges of a CQ that begins at `begin_ms` (epoch milliseconds); the caller sets `since` later."""
        text = f"{subscriber}\0{name.casefold()}\0{begin_ms}".encode("utf-8", "surrogatepass")
        own = hashlib.blake2b(text, digest_size=8).hexdigest()
        return cls(edge, DueSnapshot(own, subscriber, name, begin_ms) if snapshot else own)

    @property
    def due_snapshot(self) -> DueSnapshot | None:
        """The snapshot that the destination still lacks; None if it lacks none."""
        return self.own if isinstance(self.own, DueSnapshot) else None

    @property
    def id_text(self) -> str:
        """The text by which the destination ids of equal CQs differ; "" if equal CQs share destinations."""
        own = self.own.own if isinstance(self.own, DueSnapshot) else self.own
        return f"{self.edge} {own}" if own else ""


class Destination(msgspec.Struct, frozen=True, array_like=True):
    """The place of the results of equal CQs. Only `edges` can change after the destination is created."""

    destination_id: DestinationId
    stream_id: StreamId
    group_id: GroupId
    select_id: SelectId
    constants: str
    """The constants, in the form of `canonical_constants`."""
    mode: str
    """``shared``, ``dedicated`` or ``virtual``; ``pending`` for a store of matches (id `p_…`)."""
    partition: int
    trigger: TriggerSpec = CHANGE_BASED
    digest: PackedDigest = ("all", (), 0, False)
    word: str = ""
    """The word after PUBLISH; empty without one."""
    slots: int | None = None
    """For an aggregate query and for its store: the number of constants in WHERE; None for other queries. A store has
    only the constants of WHERE, so queries that differ in HAVING share the store."""
    edges: EdgeSpec | None = None
    """The edges that the CQ reports; None if each match is a result."""

    @property
    def row(self) -> ConstantRow:
        """The constants with their types."""
        return parse_constants(self.constants)

    @property
    def clause(self) -> DigestClause:
        """The digest clause."""
        return DigestClause.of(self.digest)

    @property
    def written_by(self) -> tuple[str, int]:
        """The mode and the partition that the evaluator writes results by.

        The gateway copies results of a throttled destination from `cq.throttled` to the destination's own topic.
        """
        if self.trigger.at_most is None:
            return self.mode, self.partition
        return "throttled", partition_of(self.destination_id.encode(), THROTTLED_PARTITIONS)

    @property
    def of_rows(self) -> bool:
        """Whether each digest has the rows of a table at its tick, as for a query without EMIT over only a table."""
        return self.edges is None and is_changes(self.stream_id)

    @property
    def at_each_tick(self) -> bool:
        """Whether each tick must be served, even if no match is pending."""
        return self.of_rows or self.clause.even_if_empty


PENDING_PARTITIONS = 16
"""The number of partitions of `cq.pending`. The number is fixed, because it determines where matches are stored."""
THROTTLED_PARTITIONS = 16
"""The number of partitions of `cq.throttled`. The number is fixed, because all results of a destination must be in one
partition, whose order decides which of them are written."""


def joined_with(destination: Destination) -> tuple[Destination, ...]:
    """Return a CQ's destination, followed by the store that the destination reads if it is timer-based."""
    return (destination, _store_of(destination)) if destination.trigger.timed else (destination,)


def feed_of(destination: Destination) -> Destination:
    """Return the destination whose id is in the constant table: the destination itself or, if timer-based, its store.

    All timer-based destinations with the same constant row and SELECT list read the same store, whatever their ticks
    and digest clauses, so a match is stored once (NiagaraCQ §3.6.2).
    """
    return _store_of(destination) if destination.trigger.timed else destination


@lru_cache(maxsize=20_000)
def _store_of(destination: Destination) -> Destination:
    constants = destination.constants
    if destination.slots is not None:
        row = destination.row
        stored = ConstantRow(row.types[: destination.slots], row.values[: destination.slots])
        constants = canonical_constants(stored)
    edges = "" if destination.edges is None else destination.edges.id_text
    name = pending_id(destination.group_id, constants, destination.select_id, edges)
    return Destination(
        DestinationId(name),
        destination.stream_id,
        destination.group_id,
        destination.select_id,
        constants,
        "pending",
        partition_of(name.encode(), PENDING_PARTITIONS),
        slots=destination.slots,
        edges=destination.edges,
    )


class Cq(msgspec.Struct, frozen=True, array_like=True):
    """A live CQ of a subscriber."""

    name: str
    text: CqText
    destination_id: DestinationId
    created_ms: int
    offset: int | tuple[int, ...]
    """The offset where the CQ's reader begins; for a virtual destination, an offset for each partition."""
    start_ms: int | None = None
    expire_ms: int | None = None
    paused: bool = False
    pauses: tuple[tuple[int, int | None], ...] = ()
    """The latest pauses of a virtual CQ, each with its begin and its end (None while the CQ is paused), in epoch
    milliseconds. The CQ's reader skips records of these times (docs/results.md)."""
    joined_ms: int = 0
    """When the CQ joined its destination, epoch milliseconds; 0 if this was at `created_ms`. After an ALTER, the time
    may be later than `created_ms`. After an OR REPLACE that keeps the destination, the time is earlier."""
    views: tuple[str, ...] = ()
    """The views that the query reads, directly or through other views."""

    @property
    def since_ms(self) -> int:
        """When the CQ joined its destination, epoch milliseconds."""
        return self.joined_ms or self.created_ms

    @property
    def latest_ms(self) -> int:
        """When the CQ was created or joined its destination, whichever is later; epoch milliseconds."""
        return max(self.created_ms, self.joined_ms)

    @property
    def window(self) -> Window:
        """The window of record times that the CQ sees."""
        return (self.start_ms, self.expire_ms)


class CatalogCq(msgspec.Struct, frozen=True):
    """A record of `cq.catalog` under the key `CatalogKey.cq(subscriber, name)`; a tombstone removes the CQ."""

    subscriber: str
    cq: Cq
    destination: Destination


class TimedNote(msgspec.Struct, array_like=True, frozen=True):
    """The beginning of a timer-based destination, and the matches that it sees.

    The record on `cq.catalog` has the key `timed/<destination>`.
    """

    visibility: tuple[VisibilityInterval, ...] = ()
    """The visibility intervals, oldest first. Each match is found with one version of the constant tables. The
    destination sees the match if the interval of this version includes the event's time."""
    born_ms: int = 0
    """When the destination's first CQ was accepted, epoch milliseconds."""
    from_ms: int = 0
    """The first digest has matches from this time on, epoch milliseconds: START of the first CQ or, without START, the
    time at which this CQ was accepted."""
    changed_ms: int = 0
    """When the last interval of `visibility` began, epoch milliseconds: for example, the time of a PAUSE or RESUME."""
    store: str = ""
    """The store of the destination's matches, which determines the partition of `cq.pending` (`feed_of`)."""
    partition: int = 0
    last_expire_ms: int = 0
    """EXPIRE of the last unpaused CQ, if this CQ has expired and only paused CQs are left; else 0. The destination
    still fires at the tick that covers this time, so that the matches before EXPIRE are published."""


def incarnation_of(destination_id: DestinationId, note: TimedNote) -> str:
    """Return the name of an incarnation of a destination.

    Each incarnation has its own cursor, because the last digest of the previous incarnation may not be written yet.
    """
    return f"{destination_id}/{note.born_ms}"
