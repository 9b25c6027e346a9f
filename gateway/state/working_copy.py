"""The gateway's side of Redis: one unit of work at a time, written as one transaction.

`load` reads the CQs and destinations that a unit needs. The unit changes them in memory (unit.py), and `commit` writes
all changes at once: CQs, destinations and definitions; for each stream with changed constant tables, a segment and a
new version; and the journal. The gateway is the only writer.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import merge

import msgspec

from gateway.model.departures import Departures
from gateway.model.dependencies import Dependency, DependencyCounts, DependencyKind
from gateway.model.group_pause import GroupPause
from gateway.model.inventory import Inventory
from gateway.model.loaded import Loaded
from gateway.model.names import Names
from gateway.model.quota import Quota
from gateway.model.records import Destination, feed_of, joined_with
from gateway.model.stored_form import StoredCq, decode_cq, raw_id, template_id, unpack_cq, unpack_key, unpack_membership
from gateway.model.unit import CqKey, Unit
from gateway.state.connection import Connection
from gateway.state.definitions import Definitions
from gateway.state.evaluator_notes import EvaluatorNotes
from gateway.state.unit_writing import write_unit
from grouping.model.catalog import Stream
from grouping.model.ids import DestinationId, GroupId, SelectId, StreamId, Subscriber
from grouping.model.table import DroppedTable, Table, View
from grouping.plan.group import GroupPlan, SelectList
from grouping.settings.settings import Settings
from grouping.statements.cq_text import WHOLE
from grouping.store.connection import StoreLost, check_primary, mapped
from grouping.store.lease import Lease
from grouping.store.notes import EpochNote
from grouping.store.quarantine import sole_user
from grouping.store.table_store import VERSIONS_MARK

__all__ = ["WorkingCopy"]

_decode_leaving = msgspec.msgpack.Decoder(Departures).decode

_LISTED_NAMES = 2_000_000
"""The largest number of names of CQs in memory; beyond it, the least recently used subscribers' names are forgotten."""
_AT_ONCE = 500
"""The number of names of timer-based CQs that one request to Redis reads."""
_WIPED_AT_ONCE = 1000
_KNOWN_GONE = 50_000
"""The largest number of ended destinations in memory. For these, Redis need not be asked."""


class WorkingCopy:
    """CQs, destinations and streams in Redis: read into a unit of work, and written from it."""

    def __init__(self, settings: Settings, lease: Lease | None = None) -> None:
        """Begin without state; call `open` first.

        Args:
            settings: The settings.
            lease: The lease that writing needs; None if no other process can write.
        """
        self.connection = Connection(settings, lease)
        """The connection to Redis; only the room `state` may use it."""
        self._keys = self.connection.keys
        self.evaluator = EvaluatorNotes(self.connection)
        """The evaluator's notes."""
        self.inventory = Inventory()
        """The live streams, tables, views and counts, with the changes of the unit."""
        self.unit = Unit(self.inventory)
        """The unit of work under way; a new object after each commit."""
        self.joined: list[tuple[DestinationId, DestinationId]] = []
        """Pairs of a store and a timer-based destination that has begun to read it. The timers take and clear them."""
        self._definitions = Definitions(self.connection)
        self._known_gone: set[DestinationId] = set()
        self.secret = b""
        """The secret key for members' tokens; recovery makes the key if there is none."""

    def begin(self) -> None:
        """Start a unit of work, and forget the CQs and destinations of the last unit."""
        self.unit = Unit(self.inventory)

    def open(self) -> None:
        """Read the inventory, which stays in memory, from Redis."""
        redis, keys, inventory = self.connection.redis, self._keys, self.inventory
        inventory.clear()
        self._known_gone.clear()
        with mapped():
            bodies = redis.hgetall(keys.streams)
            versions = redis.hgetall(keys.version)
            numbers = redis.hgetall(keys.numbers)
            inventory.dedicated = {name.decode() for name in redis.smembers(keys.dedicated)}
            for name, body in redis.hgetall(keys.topic_founders).items():
                inventory.found_topic(name.decode(), _text(body))
            leaving = redis.hgetall(keys.leaving)
            inventory.leaving = {name.decode(): _decode_leaving(body) for name, body in leaving.items()}
            inventory.streams = {name.decode(): msgspec.json.decode(body, type=Stream) for name, body in bodies.items()}
            tables, views = redis.hgetall(keys.tables), redis.hgetall(keys.views)
            inventory.tables = {name.decode(): msgspec.json.decode(body, type=Table) for name, body in tables.items()}
            inventory.views = {name.decode(): msgspec.json.decode(body, type=View) for name, body in views.items()}
            for name, body in redis.hgetall(keys.dropped_tables).items():
                inventory.dropped_tables[name.decode()] = msgspec.json.decode(body, type=DroppedTable)
            quotas = redis.hgetall(keys.quotas)
            inventory.quotas = {_text(name): msgspec.json.decode(body, type=Quota) for name, body in quotas.items()}
            for field, body in redis.hgetall(keys.pauses).items():
                stream_id, group_id = field.decode().split("/")
                pauses = inventory.pauses.setdefault(StreamId(stream_id), {})
                pauses[GroupId(group_id)] = msgspec.json.decode(body, type=GroupPause)
            inventory.vacant = self._count_vacant()
            inventory.versions = {name.decode(): int(body) for name, body in versions.items() if name != VERSIONS_MARK}
            inventory.next_numbers = {name.decode(): int(number) for name, number in numbers.items()}
            for name in inventory.streams:
                counts = redis.hgetall(keys.dependencies(name))
                inventory.dependencies[name] = DependencyCounts.read(counts)
                users = redis.hgetall(keys.sole_users(name))
                inventory.sole_users[name] = {item.decode(): sole_user(text) for item, text in users.items()}
                inventory.live_cqs[name] = sum(inventory.groups(name).values())
                inventory.free_numbers[name] = list(map(int, redis.smembers(keys.free(name))))
        self.begin()

    def _count_vacant(self) -> Counter[StreamId]:
        streams = {name: each.destination.stream_id for name, each in self.inventory.leaving.items()}
        raw_ids = list(map(raw_id, streams))
        found = self.connection.redis.hmget(self._keys.destinations, raw_ids) if streams else ()
        pairs = zip(streams.values(), found, strict=True)
        return Counter(stream_id for stream_id, body in pairs if body is None and stream_id in self.inventory.streams)

    def confirm(self, epoch: int, run_id: str) -> None:
        """Confirm the constant tables for this run of the Redis server, so that evaluators read them."""
        self.inventory.epoch = epoch
        with self.connection.writing() as pipeline:
            pipeline.hset(self._keys.version, VERSIONS_MARK, epoch)
            pipeline.set(self._keys.epoch, EpochNote(epoch, run_id).pack())

    def wipe(self) -> None:
        """Delete all keys of Redis except `RedisKeys.kept_by_wipe`: leases and notes that the catalog does not have."""
        kept = self._keys.kept_by_wipe
        with self.connection.writing() as pipeline:
            pipeline.unlink(self._keys.epoch)  # the epoch goes first: no micro-batch may read tables with missing parts
        with mapped():
            names = list(self.connection.redis.scan_iter(match=self._keys.everything, count=_WIPED_AT_ONCE))
        for doomed in _chunks([name for name in names if not name.startswith(kept)]):
            with self.connection.writing() as pipeline:
                pipeline.unlink(*doomed)
        self.inventory.clear()
        self._known_gone.clear()
        self.begin()

    def load(self, cqs: Iterable[CqKey], destinations: Collection[Destination] = ()) -> Loaded:
        """Read CQs with their destinations, the number of each subscriber's CQs, and further destinations."""
        by_subscriber: dict[Subscriber, list[CqKey]] = {}
        for key in dict.fromkeys(cqs):
            if key not in self.unit.cqs:
                by_subscriber.setdefault(key.subscriber, []).append(key)
        with mapped():
            pipeline = self.connection.redis.pipeline(transaction=False)
            for subscriber, keys in by_subscriber.items():
                pipeline.hmget(self._keys.cqs(subscriber), [key.name for key in keys])
                pipeline.hlen(self._keys.cqs(subscriber))
            answers = pipeline.execute() if by_subscriber else []
        found: dict[CqKey, StoredCq] = {}
        for (subscriber, keys), bodies, count in zip(by_subscriber.items(), answers[::2], answers[1::2], strict=True):
            self.unit.count_subscribed(subscriber, count)
            for key, body in zip(keys, bodies, strict=True):
                self.unit.cqs[key] = None
                if body is not None:
                    found[key] = decode_cq(body)
        wanted = [each.destination_id for destination in destinations for each in joined_with(destination)]
        homes = [stored.destination_id for stored in found.values()]
        self.load_memberships([*homes, *wanted])
        self._unpack(found, homes)
        self.unit.requested.update((destination.destination_id, destination) for destination in destinations)
        return Loaded(self.unit)

    def _unpack(self, found: Mapping[CqKey, StoredCq], homes: Sequence[DestinationId]) -> None:
        """Add CQs of loaded destinations to the unit, with the stores that the destinations read."""
        stores: list[DestinationId] = []
        texts: dict[StreamId, set[bytes]] = defaultdict(set)
        for home, stored in zip(homes, found.values(), strict=True):
            membership = self.unit.memberships[home]
            if membership is None:
                raise StoreLost("redis has lost a destination", detail=f'Destination "{home}" of a CQ is missing.')
            destination = membership.destination
            if destination.trigger.timed:
                stores.append(feed_of(destination).destination_id)
            texts[destination.stream_id].add(stored.template)
        self.load_memberships(stores)
        templates = {b"": WHOLE}
        for stream_id, some in texts.items():
            names = {template_id(template): template for template in some if template}
            read = self._definitions.templates(stream_id, names)
            templates |= {names[name]: template for name, template in read.items()}
        for home, (key, stored) in zip(homes, found.items(), strict=True):
            self.unit.cqs[key] = unpack_cq(key.name, stored, templates[stored.template], home)
        self.unit.stored_cqs.update(found)

    def load_memberships(self, names: Iterable[DestinationId]) -> Loaded:
        """Read destinations into the unit."""
        memberships = self.unit.memberships
        new = [name for name in dict.fromkeys(names) if name not in memberships]
        memberships.update(dict.fromkeys(self._known_gone.intersection(new)))
        if new := [name for name in new if name not in self._known_gone]:
            with mapped():
                bodies = self.connection.redis.hmget(self._keys.destinations, [raw_id(name) for name in new])
            for name, body in zip(new, bodies, strict=True):
                memberships[name] = unpack_membership(name, body) if body is not None else None
        return Loaded(self.unit)

    def expiring(self, until_ms: int, start: int, most: int) -> list[CqKey]:
        """Return up to `most` CQs in Redis that expire up to an instant, the earliest first; skip the first `start`."""
        with mapped():
            found = self.connection.redis.zrangebyscore(self._keys.expiries, "-inf", until_ms, start=start, num=most)
        return [unpack_key(member) for member in found]

    def kept_plans(self, stream_id: StreamId, group_ids: Sequence[GroupId]) -> set[GroupId]:
        """Return the groups whose plans Redis still has, because CQs or micro-batches under way may need them."""
        return self._definitions.kept_plans(stream_id, group_ids)

    def idle_groups(self, table_id: str) -> list[tuple[StreamId, GroupId]]:
        """Return the groups, each with its stream, that join a table and have no CQ, but have a plan in Redis."""
        inventory, made, kind = self.inventory, self.unit.dependencies.definitions, DependencyKind.GROUP
        streams = list(inventory.streams)
        with mapped():
            pipeline = self.connection.redis.pipeline(transaction=False)
            for stream_id in streams:
                pipeline.zrange(self._keys.unused(stream_id), 0, -1)
            stored: list[list[bytes]] = pipeline.execute() if streams else []
        unused = self.unit.dependencies.unused()
        for stream_id, names in zip(streams, stored, strict=True):
            unused += [(stream_id, name.decode()) for name in names]
        idle = defaultdict[StreamId, set[GroupId]](set)
        for stream_id, name in unused:
            if Dependency.read(name).kind is kind and name not in inventory.groups(stream_id):
                idle[stream_id].add(GroupId(name))
        joining: list[tuple[StreamId, GroupId]] = []
        for stream_id, group_ids in idle.items():
            there = self.kept_plans(stream_id, list(group_ids))
            there |= {each for each in group_ids if (stream_id, Dependency(kind, each)) in made}
            plans = self.plans(stream_id, there)
            joining += [(stream_id, each) for each, plan in plans.items() if table_id in plan.table_ids]
        return joining

    def plan(self, stream_id: StreamId, group_id: GroupId) -> GroupPlan:
        """Return the plan of a live group."""
        return self.plans(stream_id, [group_id])[group_id]

    def plans(self, stream_id: StreamId, group_ids: Iterable[GroupId]) -> dict[GroupId, GroupPlan]:
        """Return the plans of live groups; one request to Redis reads all plans that are not in memory."""
        made = self.unit.dependencies.definitions
        new = {each: made.get((stream_id, Dependency(DependencyKind.GROUP, each))) for each in group_ids}
        found = {each: plan for each, plan in new.items() if isinstance(plan, GroupPlan)}
        return found | self._definitions.plans(stream_id, [each for each in new if each not in found])

    def select(self, stream_id: StreamId, select_id: SelectId) -> SelectList:
        """Return a SELECT list that is in use."""
        new = self.unit.dependencies.definitions.get((stream_id, Dependency(DependencyKind.SELECT, select_id)))
        return new if isinstance(new, SelectList) else self._definitions.select(stream_id, select_id)

    def subscribers(self) -> list[Subscriber]:
        """Return the sorted subscribers that have or had CQs, including changes of this unit."""
        with mapped():
            found = self.connection.redis.hkeys(self._keys.subscribers)
        stored = {Subscriber(_text(name)) for name in found}
        return sorted(stored | {key.subscriber for key in self.unit.changed_cqs})

    def subscribed(self, subscriber: Subscriber) -> int:
        """Return how many CQs a subscriber has, including changes of this unit."""
        counts = self.unit.subscribed_counts
        if subscriber not in counts:
            with mapped():
                self.unit.count_subscribed(subscriber, int(self.connection.redis.hlen(self._keys.cqs(subscriber))))
        return counts[subscriber]

    def names(self, subscriber: Subscriber) -> Names:
        """Return the names of a subscriber's CQs, including changes of this unit."""
        listed = self.inventory.listed
        names = listed.pop(subscriber, None)
        if names is None:
            with mapped():
                fields = self.connection.redis.hkeys(self._keys.cqs(subscriber))
            found = set(map(_text, fields))
            for key in self.unit.changed_cqs:
                if key.subscriber == subscriber:
                    (found.discard if self.unit.cqs[key] is None else found.add)(key.name)
            names = Names(found)
            room = _LISTED_NAMES - len(names)
            while listed and sum(map(len, listed.values())) > room:
                del listed[next(iter(listed))]
        listed[subscriber] = names
        return names

    def timed_names(self, subscriber: Subscriber, after: str) -> Iterator[str]:
        """Yield the names of a subscriber's timer-based CQs after a name, in order, including changes of this unit."""
        changed = {key.name: timed for key, timed in self.unit.timed.items() if key.subscriber == subscriber}
        stored = (name for name in self._stored_timed(subscriber, after) if name not in changed)
        yield from merge(stored, sorted(name for name, timed in changed.items() if timed and name > after))

    def _stored_timed(self, subscriber: Subscriber, after: str) -> Iterator[str]:
        """Yield the names of a sorted set in Redis, in its order, several hundred with each request."""
        place = b"(" + after.encode("utf-8", "surrogatepass") if after else b"-"
        key = self._keys.timed(subscriber)
        while True:
            with mapped():
                some = self.connection.redis.zrangebylex(key, place, "+", start=0, num=_AT_ONCE)
            yield from (name.decode("utf-8", "surrogatepass") for name in some)
            if len(some) < _AT_ONCE:
                return
            place = b"(" + some[-1]

    def commit(self, journal: bytes = b"") -> str:
        """Write the unit, with its journal if there is one, in one transaction, and begin the next unit.

        Returns:
            The run id of the server that took the unit. If the run id has changed, the server was restarted, and may
            have lost the state on which the unit was based.

        Raises:
            LeaseLost: Another gateway has taken over; nothing was written.
            StoreUnavailable: Redis did not answer, or the server that took the unit is no longer the primary.
        """
        pipeline = self.connection.transaction()
        write_unit(self.unit, pipeline, self._keys)
        if journal:
            pipeline.set(self._keys.journal, journal)
        pipeline.info("server")
        with mapped():
            run_id = pipeline.execute()[-1]["run_id"]
        check_primary(self.connection.redis)
        self.joined += self.unit.joined
        self._note_gone()
        self.begin()
        return str(run_id)

    def _note_gone(self) -> None:
        if len(self._known_gone) > _KNOWN_GONE:
            self._known_gone.clear()
        gone = {name for name in self.unit.touched if self.unit.memberships[name] is None}
        self._known_gone.difference_update(self.unit.touched)
        self._known_gone |= gone


def _chunks(names: list[bytes]) -> Iterator[list[bytes]]:
    return (names[first : first + _WIPED_AT_ONCE] for first in range(0, len(names), _WIPED_AT_ONCE))


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogatepass")
