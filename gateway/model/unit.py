"""A unit of work in memory; `WorkingCopy` reads the data that a unit needs, and then writes the unit's changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from gateway.model.cq_dependencies import DependencyChanges, dependencies, dependencies_of
from gateway.model.departures import Departures
from gateway.model.group_pause import GroupPause
from gateway.model.inventory import Inventory
from gateway.model.membership import Membership
from gateway.model.quota import Quota
from gateway.model.records import Cq, Destination, TimedNote, feed_of, joined_with
from gateway.model.source_changes import SourceChanges
from gateway.model.table_entries import TableEntries, table_entries
from grouping.digests.cursor import Window
from grouping.model.ids import CqName, DestinationId, GroupId, StreamId, Subscriber
from grouping.plan.group import GroupPlan, SelectList
from grouping.store.keys import FieldHash

__all__ = ["CqKey", "Unit"]


class CqKey(NamedTuple):
    """A CQ's identity."""

    subscriber: Subscriber
    name: CqName
    """The folded name, since names are not case-sensitive."""

    @classmethod
    def of(cls, subscriber: str, name: str) -> CqKey:
        """Return the key of a name as it was written."""
        return cls(Subscriber(subscriber), CqName(name.casefold()))


class Unit:
    """A unit of work: its loaded state, and its changes. The next unit is another object."""

    def __init__(self, inventory: Inventory) -> None:
        self.inventory = inventory
        self.cqs: dict[CqKey, Cq | None] = {}
        self.stored_cqs: set[CqKey] = set()
        """Loaded CQs that Redis has."""
        self.subscribed_counts: dict[Subscriber, int] = {}
        """Subscriber → number of its CQs, with the changes of this unit; only for subscribers that were looked up."""
        self.changed_cqs: set[CqKey] = set()
        self.timed: dict[CqKey, bool] = {}
        """CQ → True if it becomes timer-based, False if it is no longer timer-based; for SHOW TIMERS."""
        self.memberships: dict[DestinationId, Membership | None] = {}
        self.touched: dict[DestinationId, tuple[Destination, list[Window]]] = {}
        """Id of a changed destination → the destination, and the windows that its members saw before the unit."""
        self.touched_timed: list[DestinationId] = []
        """The timer-based destinations of `touched`."""
        self.fields: dict[tuple[FieldHash, str], bytes | None] = {}
        self.sources = SourceChanges(inventory, self.fields)
        self.dependencies = DependencyChanges(inventory)
        self.entries_before: dict[DestinationId, TableEntries] = {}
        """Changed destination → the entries that it had in the constant table before the unit."""
        self.taken_numbers: list[tuple[StreamId, int]] = []
        self.cleared_numbers: list[tuple[StreamId, int]] = []
        """Streams and numbers whose match counts are reset, because the destinations have ended."""
        self.freed_numbers: list[tuple[StreamId, int]] = []
        """The numbers among `cleared_numbers` that may be reused."""
        self.ended_notes: dict[DestinationId, TimedNote] = {}
        """Timer-based destination that this unit ends → its last note."""
        self.last_expiries: dict[DestinationId, int] = {}
        """Timer-based destination → the latest EXPIRE of its CQs that this unit removes because they have expired."""
        self.bumped: set[StreamId] = set()
        """Streams whose constant tables get a new version in this unit, even if no row changes."""
        self.begun_edges: set[DestinationId] = set()
        """New destinations with edges that begin with this unit, including those of commands that were then refused."""
        self.moved_edges: set[DestinationId] = set()
        """Destinations and stores with changed `edges`: another beginning, or a snapshot that is now written."""
        self.new_readers: set[DestinationId] = set()
        self.joined: list[tuple[DestinationId, DestinationId]] = []
        """Stores, each with a timer-based destination that begins to read it."""
        self.requested: dict[DestinationId, Destination] = {}
        """Id → requested destination, with the fields that it gets if it is created now."""
        self.left: dict[CqKey | DestinationId, int] = {}
        """CQ that left its destination, or ended destination → when, epoch milliseconds. A next stay begins later."""
        self.left_until: dict[CqKey, tuple[int, ...]] = {}
        """CQ that left its destination → by source partition, the offset up to which events still count there."""

    def put(
        self, key: CqKey, cq: Cq, destination: Destination, *definitions: GroupPlan | SelectList
    ) -> Destination | None:
        """Let a CQ join its destination, which is created if needed. A CQ that is replaced leaves its own destination.

        Args:
            key: The CQ's identity; the CQ and its destination must have been loaded.
            cq: The CQ.
            destination: The destination of the CQ's results.
            definitions: The plan of the CQ's group, and its SELECT list; not needed if another CQ uses them already.

        Returns:
            The destination of the replaced CQ, if no CQ is left in it.
        """
        stream_id, timed = destination.stream_id, destination.trigger.timed
        for joined in joined_with(destination):
            membership = self._touch(joined)
            if membership is None:
                leaving = self.inventory.leaving.get(joined.destination_id)
                if leaving is None:
                    number = self._take_number(stream_id)
                else:
                    number = leaving.number
                    self.inventory.vacant[stream_id] -= 1
                membership = self.memberships[joined.destination_id] = Membership(joined, number)
                if timed and joined is destination:
                    self.new_readers.add(joined.destination_id)
                    begin = cq.since_ms if cq.start_ms is None else cq.start_ms
                    store = feed_of(joined)
                    membership.timed = TimedNote(
                        born_ms=cq.since_ms, from_ms=begin, store=store.destination_id, partition=store.partition
                    )
                if joined.mode == "dedicated":
                    self.inventory.dedicated.add(joined.destination_id)
                    self._found_topic(joined.destination_id, key.subscriber)
                elif joined.mode == "virtual":
                    self._found_topic(joined.group_id, key.subscriber)
            membership.count(cq, 1, destination.trigger)
        self.inventory.live_cqs[stream_id] += 1
        used = dependencies_of(cq, destination)
        self.dependencies.add(stream_id, key.subscriber, used, (*definitions, cq.text.template))
        old = self.cqs[key]
        ended = self._leave(key, old, self._edges_begin(old, destination)) if old is not None else None
        if timed:
            self.timed[key] = True
        self._set(key, cq)
        return ended

    def remove(self, key: CqKey, until: tuple[int, ...] = ()) -> Destination | None:
        """Remove a CQ.

        Args:
            key: The CQ's identity.
            until: By source partition, the offset up to which events still count for the CQ; empty if no further events
                count.

        Returns:
            The destination of the CQ, if no CQ is left in it.
        """
        cq = self.cqs[key]
        assert cq is not None, "the caller has looked"
        ended = self._leave(key, cq, until)
        self._set(key, None)
        return ended

    def _found_topic(self, owner_id: str, subscriber: Subscriber) -> None:
        """Count a topic of results against a subscriber's quota, unless the topic counts against a quota already."""
        if owner_id not in self.inventory.topic_founders:
            self.inventory.found_topic(owner_id, subscriber)
            self.set_field("topic-founders", owner_id, subscriber.encode("utf-8", "surrogatepass"))

    def forget_topics(self, owner_ids: Iterable[str]) -> None:
        """Subtract deleted topics from the quotas that they count against."""
        for owner_id in owner_ids:
            self.inventory.forget_topic(owner_id)
            self.set_field("topic-founders", owner_id, None)

    def note_last_expiry(self, destination_id: DestinationId, expire_ms: int) -> None:
        """Note EXPIRE of a removed CQ, so that a destination with only paused CQs sends the matches before EXPIRE."""
        self.last_expiries[destination_id] = expire_ms

    def retire(self, destination: Destination, until: tuple[int, ...]) -> int:
        """Forget departures after all events that count for them are evaluated.

        Args:
            destination: The destination that the members left; it must be loaded.
            until: By source partition, the offset up to which events are evaluated.

        Returns:
            The first version of the constant tables without the departed members.
        """
        name, stream_id = destination.destination_id, destination.stream_id
        self._touch(destination)
        inventory = self.inventory
        if (leaving := inventory.leaving.get(name)) is not None:
            self._keep_leaving(name, leaving.passed(until))
            vacant = name not in inventory.leaving and self.memberships[name] is None
            if vacant and stream_id in inventory.streams:
                self._free(stream_id, leaving.number)
                inventory.vacant[stream_id] -= 1
            # Until now, micro-batches needed the plan even of a dropped group; from now on the plan may be removed.
            needed = dependencies(destination.group_id, destination.select_id, None, None, ())
            self.dependencies.changed |= {(stream_id, key) for key in needed}
        changed = self.entries(name) != self.entries_before[name]
        return self.inventory.versions.get(stream_id, 0) + changed

    def awaited(self, destination_id: DestinationId) -> tuple[int, ...]:
        """Return, by source partition, the offset up to which events must be evaluated before a destination can end."""
        leaving = self.inventory.leaving.get(destination_id)
        return () if leaving is None else leaving.departures[-1].until

    def _keep_leaving(self, name: DestinationId, leaving: Departures | None) -> None:
        if leaving is None:
            self.inventory.leaving.pop(name, None)
        else:
            self.inventory.leaving[name] = leaving
        self.set_field("leaving", name, None if leaving is None else msgspec.msgpack.encode(leaving))

    def _free(self, stream_id: StreamId, number: int) -> None:
        self.cleared_numbers.append((stream_id, number))
        self.freed_numbers.append((stream_id, number))

    def _set(self, key: CqKey, cq: Cq | None) -> None:
        if self.subscribed_counts or self.inventory.listed:
            change = (cq is not None) - (self.cqs[key] is not None)
            if change and key.subscriber in self.subscribed_counts:
                self.subscribed_counts[key.subscriber] += change
            if change and (names := self.inventory.listed.get(key.subscriber)) is not None:
                (names.add if change > 0 else names.discard)(key.name)
        self.cqs[key] = cq
        self.changed_cqs.add(key)

    def _leave(self, key: CqKey, cq: Cq, until: tuple[int, ...] = ()) -> Destination | None:
        own = self.memberships[cq.destination_id]
        assert own is not None, "a CQ has a destination"
        destination = own.destination
        if destination.trigger.timed:
            self.timed[key] = False
        for left in joined_with(destination):
            membership, name = self._touch(left), left.destination_id
            assert membership is not None, "a destination stays as long as it has members"
            membership.count(cq, -1, destination.trigger)
            if until:
                self.left_until[key] = until
            if until and not cq.paused:
                leaving = self.inventory.leaving.get(name) or Departures(left, membership.number)
                self._keep_leaving(name, leaving.joined(cq.window, until))
            if not (membership.windows or membership.paused):
                self.ended_notes[name] = membership.timed
                self.memberships[name] = None
                if name in self.inventory.leaving:
                    self.cleared_numbers.append((left.stream_id, membership.number))
                    self.inventory.vacant[left.stream_id] += 1
                else:
                    self._free(left.stream_id, membership.number)
                self.inventory.dedicated.discard(name)
        stream_id = destination.stream_id
        self.inventory.live_cqs[stream_id] -= 1
        self.dependencies.remove(stream_id, dependencies_of(cq, destination))
        return None if self.memberships[cq.destination_id] is not None else destination

    def _edges_begin(self, old: Cq, destination: Destination) -> tuple[int, ...]:
        """Return, by source partition, the offset at which a new CQ's edges begin; earlier events count for the old CQ.

        The result is empty if no further events count for the old CQ. This is so in two cases: if the new CQ has no
        edges, since it then gets all events that are not evaluated yet; and if the old CQ is timer-based or virtual.
        """
        edges, membership = destination.edges, self.memberships[old.destination_id]
        if edges is None or destination.destination_id not in self.begun_edges or membership is None:
            return ()
        home = membership.destination
        return () if home.trigger.timed or home.mode == "virtual" else edges.since

    def _touch(self, destination: Destination) -> Membership | None:
        """Return a loaded membership, and note its windows and entries as they were before the unit."""
        name = destination.destination_id
        membership = self.memberships[name]
        if name not in self.touched:
            self.touched[name] = (destination, membership.seen if membership is not None else [])
            if destination.trigger.timed:
                self.touched_timed.append(name)
            self.entries_before[name] = self.entries(name)
            if membership is not None:
                membership.moved_bounds = set()
        return membership

    def entries(self, name: DestinationId) -> TableEntries:
        """Return the entries that the constant table must have for a loaded destination after the unit."""
        return table_entries(self.memberships[name], self.inventory.leaving.get(name))

    def _take_number(self, stream_id: StreamId) -> int:
        if free := self.inventory.free_numbers.get(stream_id):
            self.taken_numbers.append((stream_id, free[-1]))
            return free.pop()
        number = self.inventory.next_numbers.get(stream_id, 0)
        self.inventory.next_numbers[stream_id] = number + 1
        return number

    def set_field(self, name: FieldHash, field: str, value: bytes | None) -> None:
        """Write a field of a Redis hash with the unit, or remove the field with None."""
        self.fields[name, field] = value

    def set_quota(self, subscriber: str, quota: Quota | None) -> None:
        """Give a subscriber limits of its own, or remove them with None."""
        if quota is None:
            self.inventory.quotas.pop(subscriber, None)
        else:
            self.inventory.quotas[subscriber] = quota
        self.set_field("quotas", subscriber, None if quota is None else msgspec.json.encode(quota))

    def set_pause(self, stream_id: StreamId, group_id: GroupId, pause: GroupPause | None) -> None:
        """Pause the evaluation of a group, or resume it with None."""
        pauses = self.inventory.pauses.setdefault(stream_id, {})
        if pause is None:
            pauses.pop(group_id, None)
        else:
            pauses[group_id] = pause
        field = f"{stream_id}/{group_id}"
        self.set_field("pauses", field, None if pause is None else msgspec.json.encode(pause))

    def end_pauses(self, stream_id: StreamId) -> list[GroupId]:
        """Forget the pauses of a dropped stream; return its paused groups."""
        groups = list(self.inventory.pauses.get(stream_id, ()))
        for group_id in groups:
            self.set_pause(stream_id, group_id, None)
        return groups

    def move_edges(
        self, name: DestinationId, since: tuple[int, ...] | None = None, *, settled: bool = False
    ) -> Destination | None:
        """Move the beginning of a loaded destination's edges, or (`settled`) note that its snapshot is written.

        Returns the changed destination; None if nothing changes.
        """
        membership = self.memberships[name]
        if membership is None or (old := membership.destination.edges) is None:
            return None
        name_of_cq = old.due_snapshot.own if settled and old.due_snapshot is not None else old.own
        edges = msgspec.structs.replace(old, since=old.since if since is None else since, own=name_of_cq)
        if edges == old:
            return None
        moved = msgspec.structs.replace(membership.destination, edges=edges)
        for joined in joined_with(moved):
            own = self._touch(joined)
            assert own is not None, "a destination has its store"
            own.destination = joined
            self.touched[joined.destination_id] = (joined, own.seen)
            self.moved_edges.add(joined.destination_id)
        return moved

    def set_timed(self, name: DestinationId, note: TimedNote) -> None:
        """Replace the note of a loaded timer-based destination: its beginning and its visibility."""
        membership = self.memberships[name]
        if membership is not None and membership.timed != note:
            self._touch(membership.destination)
            membership.timed = note

    def count_subscribed(self, subscriber: Subscriber, stored: int) -> None:
        """Note how many CQs a subscriber has in Redis; the unit adds its own changes to this number."""
        if subscriber not in self.subscribed_counts:
            changed = [key for key in self.changed_cqs if key.subscriber == subscriber]
            growth = sum((self.cqs[key] is not None) - (key in self.stored_cqs) for key in changed)
            self.subscribed_counts[subscriber] = stored + growth
