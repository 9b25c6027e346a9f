"""CQs and destinations as the gateway remembers them: the records of `cq.catalog` and of Redis."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from math import gcd

import msgspec

from grouping.digests.cursor import VisibilityInterval, Window
from grouping.model.group import (
    NO_PANE,
    ConstantRow,
    Pane,
    canonical_constants,
    parse_constants,
    pending_id,
)
from grouping.model.ids import DestinationId, GroupId, SelectId, StreamId
from grouping.model.query import ChangeBased, CronBased, DigestClause, PackedDigest, TimerBased, Trigger
from grouping.statements.cq_text import CqText
from grouping.values.times import instant
from schemas.partition import partition_of

__all__ = [
    "CatalogCq",
    "Cq",
    "Destination",
    "PENDING_PARTITIONS",
    "TimedNote",
    "TriggerSpec",
    "feed_of",
    "incarnation_of",
    "instant",
    "joined_with",
    "millis",
    "on_pane",
    "pane_of",
]


def millis(at: datetime) -> int:
    """Return an instant as epoch milliseconds."""
    return round((at - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(milliseconds=1))


class TriggerSpec(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """A trigger with its phase: what makes two CQs fire at the same instants."""

    every_ms: int = 0
    """0 for change-based and cron."""
    phase_ms: int = 0
    """Of the grid START + k × EVERY: START, or acceptance, modulo the interval."""
    cron: str = ""
    zone: str = ""
    over_ms: int = 0
    """OVER LAST; 0 where a tick counts its own matches only."""

    @classmethod
    def of(cls, trigger: Trigger, anchor_ms: int) -> TriggerSpec:
        """Make the spec of a trigger whose grid begins at an instant."""
        match trigger:
            case ChangeBased():
                return _CHANGE_BASED
            case TimerBased(every, over):
                every_ms = round(every.total_seconds() * 1000)
                over_ms = 0 if over is None else round(over.total_seconds() * 1000)
                return cls(every_ms, anchor_ms % every_ms, over_ms=over_ms)
            case CronBased(cron, zone):
                return cls(cron=" ".join(cron.split()), zone=zone)

    @property
    def trigger(self) -> Trigger:
        """The trigger without its phase."""
        if self.every_ms:
            over = timedelta(milliseconds=self.over_ms) if self.over_ms else None
            return TimerBased(timedelta(milliseconds=self.every_ms), over)
        return CronBased(self.cron, self.zone) if self.cron else ChangeBased()

    @property
    def timed(self) -> bool:
        """Whether results gather until a tick."""
        return bool(self.every_ms or self.cron)


_CHANGE_BASED = TriggerSpec()

_PANES = 60
"""So many of them a period has, at least, where that can be: what is told apart grows with these, not with matches."""
_SECOND_MS, _MINUTE_MS = 1000, 60_000
_WIDTHS = [
    unit * many for unit in (_SECOND_MS, _MINUTE_MS, 60 * _MINUTE_MS) for many in (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30)
]


@lru_cache(maxsize=4096)
def pane_of(trigger: TriggerSpec) -> Pane:
    """Return how finely times are told apart where a trigger's groups are stored: no tick lies within a pane.

    Example:
        >>> pane_of(TriggerSpec(every_ms=300_000, phase_ms=61_250)), pane_of(TriggerSpec(cron="0 8 * * *"))
        ((5000, 1250), (60000, 0))
    """
    if trigger.cron:
        return _MINUTE_MS, 0
    every_ms = trigger.every_ms
    fitting = [width for width in _WIDTHS if every_ms % width == 0 and width * _PANES <= every_ms]
    width = max(fitting, default=gcd(every_ms, _SECOND_MS))
    return width, trigger.phase_ms % width


def on_pane(at_ms: int, pane: Pane) -> int:
    """Return an instant, or the first after it, at which a pane begins.

    Example:
        >>> on_pane(12_001, (1000, 250)), on_pane(12_250, (1000, 250))
        (12250, 12250)
    """
    width, phase = pane
    return at_ms + (phase - at_ms) % width


class Destination(msgspec.Struct, frozen=True, array_like=True):
    """Where the results of equal CQs go, and all that its id stands for. Never changes."""

    destination_id: DestinationId
    stream_id: StreamId
    group_id: GroupId
    select_id: SelectId
    constants: str
    """As `canonical_constants` writes them."""
    mode: str
    """``shared``, ``dedicated`` or ``virtual``; ``pending`` for a store of matches (id `p_…`)."""
    partition: int
    trigger: TriggerSpec = TriggerSpec()
    digest: PackedDigest = ("all", (), 0, False)
    word: str = ""
    """The word after PUBLISH, if there was one."""
    slots: int | None = None
    """Of a query over groups: how many of the constants are WHERE's, and decide where its matches are stored."""
    pane: Pane = NO_PANE
    """Of a store of groups: how finely it tells times apart."""

    @property
    def row(self) -> ConstantRow:
        """The constants, typed."""
        return parse_constants(self.constants)

    @property
    def clause(self) -> DigestClause:
        """The digest clause."""
        return DigestClause.of(self.digest)


PENDING_PARTITIONS = 16
"""Of `cq.pending`; fixed, since the place of stored matches follows from it."""


def joined_with(destination: Destination) -> tuple[Destination, ...]:
    """Return the destinations that a CQ of one is a member of: that one, and the store that its ticks read."""
    return (destination, _store_of(destination)) if destination.trigger.timed else (destination,)


def feed_of(destination: Destination) -> Destination:
    """Return what the constant table feeds for a destination: itself, or the store of matches that its ticks read.

    All timer-based destinations of one constant row and SELECT list read one store, whatever their ticks and digest
    clauses, so that a match is stored once (NiagaraCQ §3.6.2).
    """
    return _store_of(destination) if destination.trigger.timed else destination


@lru_cache(maxsize=20_000)
def _store_of(destination: Destination) -> Destination:
    constants, pane = destination.constants, NO_PANE
    if destination.slots is not None:
        row = destination.row
        stored = ConstantRow(row.types[: destination.slots], row.values[: destination.slots])
        constants, pane = canonical_constants(stored), pane_of(destination.trigger)
    name = pending_id(destination.group_id, constants, destination.select_id, pane)
    return Destination(
        DestinationId(name),
        destination.stream_id,
        destination.group_id,
        destination.select_id,
        constants,
        "pending",
        partition_of(name.encode(), PENDING_PARTITIONS),
        pane=pane,
    )


class Cq(msgspec.Struct, frozen=True, array_like=True):
    """A live CQ of one subscriber."""

    name: str
    text: CqText
    destination_id: DestinationId
    created_ms: int
    offset: int | tuple[int, ...]
    """Where its reader begins (a list over partitions for a virtual destination)."""
    start_ms: int | None = None
    expire_ms: int | None = None
    paused: bool = False
    pauses: tuple[tuple[int, int | None], ...] = ()
    """When it was paused and resumed, of a virtual destination the latest: its reader keeps them (docs/results.md)."""
    joined_ms: int = 0
    """When it came to its destination, where it was created elsewhere or replaced there since; else 0."""
    views: tuple[str, ...] = ()
    """The views that it reads, and those that these read."""

    @property
    def since_ms(self) -> int:
        """When it came to its destination."""
        return self.joined_ms or self.created_ms

    @property
    def latest_ms(self) -> int:
        """When it was created, or came to its destination, whichever is later."""
        return max(self.created_ms, self.joined_ms)

    @property
    def window(self) -> Window:
        """The record times that it sees."""
        return (self.start_ms, self.expire_ms)


class CatalogCq(msgspec.Struct, frozen=True):
    """One record of `cq.catalog`, key `cq/<subscriber>/<name>`; a tombstone removes it."""

    subscriber: str
    cq: Cq
    destination: Destination


class TimedNote(msgspec.Struct, array_like=True, frozen=True):
    """When a timer-based destination began and which matches it may see, key `timed/<destination>` on `cq.catalog`."""

    visibility: tuple[VisibilityInterval, ...] = ()
    """Oldest first. A stored match is the destination's if it saw its time at the version that met the event."""
    born_ms: int = 0
    """When its first CQ was accepted."""
    from_ms: int = 0
    """START of that CQ, else the same: where the first digest begins."""
    changed_ms: int = 0
    """When the last of the history began: the time of a PAUSE or RESUME."""
    store: str = ""
    """Where its matches are stored, and the partition of `cq.pending` that this is in: as `feed_of` gives them."""
    partition: int = 0
    owed_ms: int = 0
    """EXPIRE of the last CQ that was not paused, while paused ones share the destination; 0 when there was none."""


def incarnation_of(destination_id: DestinationId, note: TimedNote) -> str:
    """Return the name of one incarnation of a destination.

    One that was taken up again has cursors of its own, for the last digest of the one before may still be to come.
    """
    return f"{destination_id}/{note.born_ms}"
