"""Orders of digests: makes the orders for Spark, and arms the destinations again when the orders are carried out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from gateway.metrics import TICK_SECONDS
from gateway.model.membership import Membership
from gateway.model.records import Destination, feed_of
from gateway.model.table_entries import TableEntries, rows_of
from gateway.state.timer_state import TimerState
from gateway.state.working_copy import WorkingCopy
from gateway.timers.deliver import source_of
from gateway.timers.firing import CHUNK, TickRun
from gateway.timers.gathering import DueDestination
from gateway.timers.intake import Intake
from gateway.timers.pending_index import store_key
from gateway.timers.probes import ProgressProbes
from gateway.timers.retention import Retention
from gateway.timers.schedule import following_tick
from gateway.topics.positions import topic_of
from grouping.digests.cursor import Cursor, SourceOffsets, highest
from grouping.digests.digest import column_type
from grouping.digests.orders import DigestOrder, Order, OrderOutcome, TableCut, places_after
from grouping.model.catalog import Stream
from grouping.model.ids import DestinationId, GroupId, SelectId, StreamId
from grouping.model.panes import pack_bounds
from grouping.settings.settings import Settings
from grouping.store.constant_table import Entry, Segment

__all__ = ["OrderDesk", "table_cut"]

_ORDER_BYTES = 4 << 20
"""Approximate size of an order in bytes; an order must fit in a record."""
_ENTRY_BYTES = 100
"""Approximate size in bytes of an entry of the constant table, without its constants."""
_ONE_BOUND = pack_bounds([(0, 0)])
"""The pane bounds of a store of aggregates over a table's rows. Such aggregates have a single pane, since each digest
covers all present rows."""


class OrderDesk:
    """Makes the orders of a tick, some thousand destinations each, and afterwards arms the destinations again."""

    def __init__(
        self,
        settings: Settings,
        working: WorkingCopy,
        state: TimerState,
        intake: Intake,
        probes: ProgressProbes,
        retention: Retention,
        firing: TickRun,
        clock: Callable[[], int],
    ) -> None:
        self._settings = settings
        self._working = working
        self._state = state
        self._intake = intake
        self._probes = probes
        self._retention = retention
        self._firing = firing
        self._clock = clock
        self.begin(StreamId(""), 0)

    def begin(self, stream_id: StreamId, due_ms: int) -> None:
        """Begin to order a stream's digests that are due up to an instant.

        The destinations stay on the event list until their orders are `carried_out`, so a crash loses no digest.
        """
        self._stream_id, self._due_ms = stream_id, due_ms
        self._passed = 0
        self._names: set[str] = set()

    def order(self) -> Order | None:
        """Return an order of due digests; None if no destination is due any more.

        The gateway itself serves two kinds of destinations: destinations that need only a look, and destinations of
        aggregate queries over pending matches. Digests of such aggregate queries have few rows, so the gateway makes
        them as fast as Spark would. Between two orders, new matches may move destinations on the event list. A
        destination that is found twice is then skipped, and a destination that is missed is still due after the job.
        """
        stream_id = self._stream_id
        due = self._state.due(stream_id, self._due_ms, CHUNK, self._passed)
        if not due:
            return None
        new = [one for one in due if one[0] not in self._names]
        served, idle = self._firing.choose(stream_id, new, self._due_ms)
        here = [each for each in served if each.tick is None or not _made_by_spark(each.membership.destination)]
        if here or idle:
            self._firing.serve(stream_id, here, idle, self._due_ms)
        digests: list[DigestOrder] = []
        size = 0
        rows: list[Destination] = []
        plans: dict[GroupId, bytes] = {}
        selects: dict[SelectId, bytes] = {}
        for each in served:
            destination = each.membership.destination
            if each.tick is not None and _made_by_spark(destination) and size < _ORDER_BYTES:
                digests.append(self._ordered(each, each.tick))
                size += len(msgspec.msgpack.encode(digests[-1]))
                if destination.of_rows:
                    rows.append(destination)
                    size += len(destination.constants) + _ENTRY_BYTES + self._define(destination, plans, selects)
        self._names.update(each.destination_id for each in digests)
        self._passed += len(due) - len(new) + len(digests)
        progress, table = self._probes.progress(stream_id), None
        if rows:
            # These are the topic's ends at the tick or shortly after it, so they include each change of the table that
            # was acknowledged before the tick.
            ends, stream = highest(progress.covered, progress.probed), self._working.inventory.streams[stream_id]
            table = table_cut(stream, ends, rows, plans.values(), selects.values())
        source, covered = source_of(self._working, stream_id), dict(progress.covered)
        return Order(stream_id, source, covered, self._clock(), tuple(digests), table)

    def is_live(self, stream_id: StreamId) -> bool:
        """Tell whether a stream exists, that is, was not dropped."""
        return stream_id in self._working.inventory.streams

    def _define(self, destination: Destination, plans: dict[GroupId, bytes], selects: dict[SelectId, bytes]) -> int:
        """Add a destination's plan and SELECT list as JSON, unless `plans` and `selects` have them already.

        Returns:
            The number of bytes that were added.
        """
        stream_id, group_id, select_id = destination.stream_id, destination.group_id, destination.select_id
        size = 0
        if group_id not in plans:
            plans[group_id] = msgspec.json.encode(self._working.plan(stream_id, group_id))
            size += len(plans[group_id])
        if select_id not in selects:
            selects[select_id] = msgspec.json.encode(self._working.select(stream_id, select_id))
            size += len(selects[select_id])
        return size

    def _ordered(self, each: DueDestination, tick_ms: int) -> DigestOrder:
        destination, timed = each.membership.destination, each.membership.timed
        clause, store = destination.clause, store_key(timed.store)
        select = self._working.select(destination.stream_id, destination.select_id) if clause.kind == "top" else None
        return DigestOrder(
            destination.destination_id,
            timed.born_ms,
            topic_of(self._settings, destination),
            destination.partition,
            destination.digest,
            str(column_type(clause, select)),
            tick_ms,
            each.from_ms,
            each.cursor,
            timed.visibility,
            store,
            places_after(self._intake.index.get(store), each.cursor),
            self._intake.reached[timed.partition],
            (destination.group_id, destination.select_id, destination.constants) if destination.of_rows else None,
        )

    def carried_out(self, answer: OrderOutcome, cursors: Mapping[str, Cursor]) -> None:
        """Arm the destinations of an order for their next ticks, after their digests and cursors are on Kafka.

        Args:
            answer: The answer to the order.
            cursors: Incarnation of a destination → its new cursor.
        """
        idle: list[DestinationId] = []
        ticks: dict[DestinationId, int] = {}
        done: list[tuple[DestinationId, Membership]] = []
        names = [each.destination_id for each in answer.digests]
        for each, membership in zip(answer.digests, self._state.memberships(names), strict=True):
            name = each.destination_id
            if membership is None or membership.timed.born_ms != each.born_ms:
                continue  # the destination ended; a new incarnation, if any, is armed already
            if each.failure:
                idle.append(name)  # once the digest is written, the destination gets a look
                continue
            stored = self._intake.index.get(store_key(membership.timed.store))
            if stored is not None and stored.reaches(each.reached):
                ticks[name] = 0  # matches came in since the order, so a look finds the next tick
            else:
                progress = self._probes.progress(answer.stream_id)
                following = following_tick(membership, each.tick_ms, each.left_ms, progress.fired_ms, progress.runs)
                if following is None:
                    idle.append(name)
                else:
                    ticks[name] = following
                self._firing.shorten(name, membership, each.oldest)
            done.append((name, membership))
        sent = [each.tick_ms for each in answer.digests if each.sent]
        if sent:
            self._firing.fired += sent
            TICK_SECONDS.observe((self._clock() - min(sent)) / 1000)
        self._state.settle(answer.stream_id, ticks, idle, cursors)
        self._retention.release(done, cursors)


def table_cut(
    stream: Stream,
    ends: SourceOffsets,
    destinations: Iterable[Destination],
    plans: Iterable[bytes],
    selects: Iterable[bytes],
) -> TableCut:
    """Return the positions up to which a table is read for digests of its rows, with the queries of these digests.

    Args:
        stream: The stream of the table's changes.
        ends: By source partition, the position up to which the table is read.
        destinations: The destinations of the digests.
        plans: The plans of the digests' groups as JSON, without duplicates.
        selects: The SELECT lists of the digests as JSON, without duplicates.
    """
    stores = {store.destination_id: store for store in map(feed_of, destinations)}
    entries: list[Entry] = []
    for number, store in enumerate(stores.values()):
        entries += rows_of(store, TableEntries(number, [((), [(None, None)])]), _ONE_BOUND)
    definitions = (b"[" + b",".join(parts) + b"]" for parts in (plans, selects))
    return TableCut(msgspec.json.encode(stream), ends, Segment.of((), entries).encode(), *definitions)


def _made_by_spark(destination: Destination) -> bool:
    """Tell whether an order may have a destination's digest. Orders have no aggregates of pending matches."""
    return destination.slots is None or destination.of_rows
