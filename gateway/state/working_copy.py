"""The gateway's side of Redis: one unit of work at a time, written as one transaction.

The records that a unit needs are read (`load`), changed in memory (unit.py), and all that it changed is written at once
(`commit`): CQs, destinations, plans, a constant-table segment and a new version for each stream whose tables it
touched, and whatever the caller wants written with them. There is one gateway, hence one writer.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from typing import TypeVar

import msgspec

from gateway.state.connection import Connection
from gateway.state.departures import Departures
from gateway.state.evaluator_notes import EvaluatorNotes
from gateway.state.names import Names
from gateway.state.records import Destination, feed_of
from gateway.state.stored_form import StoredCq, decode_cq, raw_id, unpack_cq, unpack_key, unpack_membership
from gateway.state.unit import CqKey, Part, Unit
from gateway.state.unit_writing import shelf_of, write_unit
from grouping.model.catalog import Stream
from grouping.model.group import GroupPlan, SelectList
from grouping.model.table import Table
from grouping.model.view import View
from grouping.settings import Settings
from grouping.statements.cq_text import WHOLE, TextTemplate
from grouping.store.lease import Lease
from grouping.store.notes import EpochNote
from grouping.store.redis_store import VERSIONS_MARK, StoreLost, mapped

__all__ = ["WorkingCopy"]

_Part = TypeVar("_Part", GroupPlan, SelectList, TextTemplate)

_KNOWN_PARTS = 10_000
"""So many parts are kept in memory between units; they never change."""

_decode_leaving = msgspec.msgpack.Decoder(Departures).decode


_LISTED_NAMES = 2_000_000
"""So many names are kept in memory, of the subscribers that asked for theirs last."""
_AT_ONCE = 500
"""So many names of timer-based CQs are read at once."""
_WIPED_AT_ONCE = 1000
_KNOWN_GONE = 50_000
"""So many destinations that are gone are known without asking, since their ends ask for them soon."""


class WorkingCopy(Unit):
    """Records of CQs, destinations and streams, read and written through one unit of work."""

    def __init__(self, settings: Settings, lease: Lease | None = None) -> None:
        """Begin with nothing; `open` comes first.

        Args:
            settings: The settings.
            lease: What is written only while it is held; none where nobody else could write.
        """
        super().__init__()
        self.connection = Connection(settings, lease)
        """To Redis; for the room `state` alone."""
        self._keys = self.connection.keys
        self.evaluator = EvaluatorNotes(self.connection)
        """What the evaluator tells."""
        self._known_parts: dict[tuple[str, str], Part] = {}
        self._known_gone: set[str] = set()
        self.secret = b""
        """What the tokens of members are keyed with; recovery sees to it that there is one."""

    def open(self) -> None:
        """Read what is kept in memory: streams, versions, how often plans are used."""
        self.listed.clear()
        self._known_gone.clear()
        redis, keys = self.connection.redis, self._keys
        with mapped():
            bodies = redis.hgetall(keys.streams)
            versions = redis.hgetall(keys.version)
            numbers = redis.hgetall(keys.numbers)
            self.dedicated = {name.decode() for name in redis.smembers(keys.dedicated)}
            leaving = redis.hgetall(keys.leaving)
            self.leaving = {name.decode(): _decode_leaving(body) for name, body in leaving.items()}
            self.streams = {name.decode(): msgspec.json.decode(body, type=Stream) for name, body in bodies.items()}
            tables, views = redis.hgetall(keys.tables), redis.hgetall(keys.views)
            self.tables = {name.decode(): msgspec.json.decode(body, type=Table) for name, body in tables.items()}
            self.views = {name.decode(): msgspec.json.decode(body, type=View) for name, body in views.items()}
            self.vacant = self._count_vacant()
            self.versions = {name.decode(): int(version) for name, version in versions.items() if name != VERSIONS_MARK}
            self.next_numbers = {name.decode(): int(number) for name, number in numbers.items()}
            for name in self.streams:
                parts = redis.hgetall(keys.parts(name))
                self.parts[name] = {part.decode(): int(count) for part, count in parts.items()}
                self.live_cqs[name] = sum(self.groups(name).values())
                self.free_numbers[name] = list(map(int, redis.smembers(keys.free(name))))
        self.begin()

    def _count_vacant(self) -> Counter[str]:
        streams = {name: each.destination.stream_id for name, each in self.leaving.items()}
        raw_ids = list(map(raw_id, streams))
        found = self.connection.redis.hmget(self._keys.destinations, raw_ids) if streams else ()
        pairs = zip(streams.values(), found, strict=True)
        return Counter(stream_id for stream_id, body in pairs if body is None and stream_id in self.streams)

    def confirm(self, epoch: int, run_id: str) -> None:
        """Let evaluators read the tables, on this run of the server."""
        self.epoch = epoch
        with self.connection.writing() as pipeline:
            pipeline.hset(self._keys.version, VERSIONS_MARK, epoch)
            pipeline.set(self._keys.epoch, EpochNote(epoch, run_id).pack())

    def wipe(self) -> None:
        """Forget everything but leases and the evaluator's own notes, to be filled anew from the catalog."""
        kept = self._keys.kept_by_wipe
        with self.connection.writing() as pipeline:
            pipeline.unlink(self._keys.epoch)  # first: no batch may meet tables of which some are gone
        with mapped():
            names = list(self.connection.redis.scan_iter(match=self._keys.everything, count=_WIPED_AT_ONCE))
        for doomed in _chunks([name for name in names if not name.startswith(kept)]):
            with self.connection.writing() as pipeline:
                pipeline.unlink(*doomed)
        self.streams, self.versions, self.parts, self.dedicated, self.leaving = {}, {}, {}, set(), {}
        self.tables, self.views = {}, {}
        self.next_numbers, self.free_numbers, self.vacant, self.live_cqs = {}, {}, Counter(), Counter()
        self.listed.clear()
        self._known_gone.clear()
        self.begin()

    def load(self, cqs: Iterable[CqKey], destinations: Collection[Destination] = ()) -> None:
        """Read those CQs with their destinations, and those destinations, into the unit."""
        by_subscriber: dict[str, list[CqKey]] = {}
        for key in dict.fromkeys(cqs):
            if key not in self.cqs:
                by_subscriber.setdefault(key.subscriber, []).append(key)
        with mapped():
            pipeline = self.connection.redis.pipeline(transaction=False)
            for subscriber, keys in by_subscriber.items():
                pipeline.hmget(self._keys.cqs(subscriber), [key.name for key in keys])
            answers = pipeline.execute() if by_subscriber else []
        found: dict[CqKey, StoredCq] = {}
        for keys, bodies in zip(by_subscriber.values(), answers, strict=True):
            self.cqs |= dict.fromkeys(keys)
            found |= {key: decode_cq(body) for key, body in zip(keys, bodies, strict=True) if body is not None}
        wanted = [destination.destination_id for destination in destinations]
        wanted += [feed_of(destination).destination_id for destination in destinations if destination.trigger.timed]
        homes = [stored.destination_id for stored in found.values()]
        self.load_memberships([*homes, *wanted])
        self._unpack(found, homes)
        self.asked.update((destination.destination_id, destination) for destination in destinations)

    def _unpack(self, found: Mapping[CqKey, StoredCq], homes: Sequence[str]) -> None:
        """Take in CQs whose destinations are loaded, with the stores of matches that these read."""
        stores: list[str] = []
        texts: dict[str, set[bytes]] = defaultdict(set)
        for home, stored in zip(homes, found.values(), strict=True):
            membership = self.memberships[home]
            if membership is None:
                raise StoreLost("redis has lost a destination", detail=f'It is "{home}", which has CQs.')
            destination = membership.destination
            if destination.trigger.timed:
                stores.append(feed_of(destination).destination_id)
            texts[destination.stream_id].add(stored.template)
        self.load_memberships(stores)
        templates = {b"": WHOLE}
        for stream_id, some in texts.items():
            names = {f"t_{template.hex()}": template for template in some if template}
            templates |= {names[name]: part for name, part in self._templates(stream_id, names).items()}
        for home, (key, stored) in zip(homes, found.items(), strict=True):
            self.cqs[key] = unpack_cq(key.name, stored, templates[stored.template], home)
        self.stored_cqs.update(found)

    def _templates(self, stream_id: str, names: Iterable[str]) -> dict[str, TextTemplate]:
        found: dict[str, TextTemplate] = {}
        new = []
        for name in names:
            part = self._known_parts.get((stream_id, name))
            if isinstance(part, TextTemplate):
                found[name] = part
            else:
                new.append(name)
        if new:
            with mapped():
                bodies = self.connection.redis.hmget(self._keys.texts(stream_id), new)
            for name, body in zip(new, bodies, strict=True):
                found[name] = self._keep_part(stream_id, name, body, TextTemplate)
        return found

    def load_memberships(self, names: Iterable[str]) -> None:
        """Read those destinations into the unit."""
        new = [name for name in dict.fromkeys(names) if name not in self.memberships]
        if self._known_gone:
            self.memberships.update(dict.fromkeys(self._known_gone.intersection(new)))
            new = [name for name in new if name not in self._known_gone]
        if not new:
            return
        with mapped():
            bodies = self.connection.redis.hmget(self._keys.destinations, [raw_id(name) for name in new])
        for name, body in zip(new, bodies, strict=True):
            self.memberships[name] = unpack_membership(name, body) if body is not None else None

    def expiring(self, until_ms: int, start: int, most: int) -> list[CqKey]:
        """Return CQs whose EXPIRE comes up to an instant, as Redis has them: the earliest first, from a place on."""
        with mapped():
            found = self.connection.redis.zrangebyscore(self._keys.expiries, "-inf", until_ms, start=start, num=most)
        return [unpack_key(member) for member in found]

    def kept_plans(self, stream_id: str, group_ids: Sequence[str]) -> set[str]:
        """Return which of those groups' plans Redis has: it keeps them while a batch under way may ask for them."""
        if not group_ids:
            return set()
        with mapped():
            plans = self.connection.redis.hmget(self._keys.groups(stream_id), group_ids)
        return {group_id for group_id, plan in zip(group_ids, plans, strict=True) if plan is not None}

    def plan(self, stream_id: str, group_id: str) -> GroupPlan:
        """Return the plan of a live group."""
        return self._part(stream_id, group_id, GroupPlan)

    def select(self, stream_id: str, select_id: str) -> SelectList:
        """Return a SELECT list that is in use."""
        return self._part(stream_id, select_id, SelectList)

    def _part(self, stream_id: str, part_id: str, kind: type[_Part]) -> _Part:
        part = self.new_parts.get((stream_id, part_id))
        if part is not None:
            assert isinstance(part, kind)
            return part
        part = self._known_parts.get((stream_id, part_id))
        if part is None:
            with mapped():
                body = self.connection.redis.hget(shelf_of(self._keys, stream_id, part_id), part_id)
            part = self._keep_part(stream_id, part_id, body, kind)
        assert isinstance(part, kind)
        return part

    def _keep_part(self, stream_id: str, part_id: str, body: bytes | None, kind: type[_Part]) -> _Part:
        if body is None:
            raise StoreLost("redis has lost what CQs have in common", detail=f'It is "{part_id}" of "{stream_id}".')
        part: _Part = msgspec.json.decode(body, type=kind)
        if len(self._known_parts) > _KNOWN_PARTS:
            self._known_parts.clear()
        self._known_parts[stream_id, part_id] = part
        return part

    def subscribed(self, subscriber: str) -> int:
        """Return how many CQs a subscriber has, changes of this unit included."""
        if subscriber not in self.subscribed_counts:
            with mapped():
                self.subscribed_counts[subscriber] = int(self.connection.redis.hlen(self._keys.cqs(subscriber)))
            for key in self.changed_cqs:
                if key.subscriber == subscriber:
                    self.subscribed_counts[subscriber] += (self.cqs[key] is not None) - (key in self.stored_cqs)
        return self.subscribed_counts[subscriber]

    def names(self, subscriber: str) -> Names:
        """Return the names of a subscriber's CQs, changes of this unit included."""
        names = self.listed.pop(subscriber, None)
        if names is None:
            with mapped():
                fields = self.connection.redis.hkeys(self._keys.cqs(subscriber))
            found = {name.decode("utf-8", "surrogatepass") for name in fields}
            for key in self.changed_cqs:
                if key.subscriber == subscriber:
                    (found.discard if self.cqs[key] is None else found.add)(key.name)
            names = Names(found)
            room = _LISTED_NAMES - len(names)
            while self.listed and sum(map(len, self.listed.values())) > room:
                del self.listed[next(iter(self.listed))]
        self.listed[subscriber] = names
        return names

    def timed_names(self, subscriber: str, after: str) -> Iterator[str]:
        """Yield the names behind one of a subscriber's timer-based CQs in order, changes of this unit included."""
        changed = {key.name: timed for key, timed in self.timed.items() if key.subscriber == subscriber}
        stored = (name for name in self._stored_timed(subscriber, after) if name not in changed)
        yield from merge(stored, sorted(name for name, timed in changed.items() if timed and name > after))

    def _stored_timed(self, subscriber: str, after: str) -> Iterator[str]:
        """Yield what Redis lists, in its order, some hundred being read at a time."""
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
        """Write the unit, and its journal if it has one, in one transaction, and begin the next unit.

        Returns:
            The run id of the server that took it, for the caller to compare: one that was restarted since the unit was
            read may have lost what the unit stands on.

        Raises:
            LeaseLost: Another gateway has taken over; nothing was written.
            StoreUnavailable: Redis did not answer.
        """
        pipeline = self.connection.transaction()
        write_unit(self, pipeline, self._keys)
        if journal:
            pipeline.set(self._keys.journal, journal)
        pipeline.info("server")
        with mapped():
            run_id = pipeline.execute()[-1]["run_id"]
        self._note_gone()
        self.begin()
        return str(run_id)

    def _note_gone(self) -> None:
        if len(self._known_gone) > _KNOWN_GONE:
            self._known_gone.clear()
        gone = {name for name in self.touched if self.memberships[name] is None}
        self._known_gone.difference_update(self.touched)
        self._known_gone |= gone


def _chunks(names: list[bytes]) -> Iterator[list[bytes]]:
    return (names[first : first + _WIPED_AT_ONCE] for first in range(0, len(names), _WIPED_AT_ONCE))
