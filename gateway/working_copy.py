"""The gateway's side of Redis: one unit of work at a time, written as one transaction.

A unit reads the records that its commands need (`load`), changes them in memory (`put`, `remove`) and writes all that
it changed at once (`commit`): CQs, destinations, plans, a constant-table segment and a new version for each stream
whose tables it touched, and whatever the caller wants written with them. There is one gateway, hence one writer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

import msgspec

from gateway.records import Cq, Destination, Holder, Sight, TimedNote, Window, feed_of
from grouping.catalog import Stream
from grouping.constant_table import Block, Entry, Segment
from grouping.group import GroupPlan, SelectList
from grouping.redis_store import connect, mapped
from grouping.settings import Settings

__all__ = ["CqKey", "WorkingCopy"]

_Part = TypeVar("_Part", GroupPlan, SelectList)

_KNOWN_PARTS = 10_000
"""So many plans and SELECT lists are kept in memory between units; they never change."""

_OF_STREAM = (
    "segments",
    "groups",
    "selects",
    "parts",
    "unused",
    "free",
    "matches",
    "match-counts",
    "pins",
    "committed",
    "statistics",
)
"""Keys that go with their stream."""

_encode = msgspec.msgpack.encode
_decode_cq = msgspec.msgpack.Decoder(Cq).decode
_decode_holder = msgspec.msgpack.Decoder(Holder).decode
_decode_destination = msgspec.msgpack.Decoder(Destination).decode


class CqKey(NamedTuple):
    """A CQ's identity."""

    subscriber: str
    name: str
    """Folded, since names are not case-sensitive."""

    @classmethod
    def of(cls, subscriber: str, name: str) -> CqKey:
        """Make the key of a name as it was written."""
        return cls(subscriber, name.casefold())


class WorkingCopy:
    """Records of CQs, destinations and streams, read and written through one unit of work."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.redis = connect(settings)
        self.streams: dict[str, Stream] = {}
        """Live streams by id."""
        self.versions: dict[str, int] = {}
        """Current version of each stream's constant tables."""
        self.parts: dict[str, dict[str, int]] = {}
        """By stream: how many CQs use a group (`g_…`) or a SELECT list (`s…`)."""
        self.dedicated: set[str] = set()
        """Live dedicated destinations."""
        self.leaving: dict[str, Destination] = {}
        """Destinations without members whose last events are not evaluated yet."""
        self._known_parts: dict[tuple[str, str], GroupPlan | SelectList] = {}
        self.epoch = 0
        """The confirmed epoch of the tables."""
        self.joined: list[tuple[str, str]] = []
        """Stores of matches and timer-based destinations that began to read them, for the timers to take up."""
        self._next_numbers: dict[str, int] = {}
        self._free_numbers: dict[str, list[int]] = {}
        self.begin()

    def key(self, *parts: str) -> str:
        """Return a Redis key under the prefix."""
        return self._settings.key(*parts)

    def open(self) -> None:
        """Read what is kept in memory: streams, versions, how often plans are used."""
        with mapped():
            bodies = self.redis.hgetall(self.key("streams"))
            versions = self.redis.hgetall(self.key("version"))
            numbers = self.redis.hgetall(self.key("numbers"))
            self.dedicated = {name.decode() for name in self.redis.smembers(self.key("dedicated"))}
            leaving = self.redis.hgetall(self.key("leaving"))
            self.leaving = {name.decode(): _decode_destination(body) for name, body in leaving.items()}
            self.streams = {name.decode(): msgspec.json.decode(body, type=Stream) for name, body in bodies.items()}
            self.versions = {name.decode(): int(version) for name, version in versions.items()}
            self._next_numbers = {name.decode(): int(number) for name, number in numbers.items()}
            for name in self.streams:
                parts = self.redis.hgetall(self.key("parts", name))
                self.parts[name] = {part.decode(): int(count) for part, count in parts.items()}
                self._free_numbers[name] = [int(number) for number in self.redis.smembers(self.key("free", name))]
        self.begin()

    def wipe(self) -> None:
        """Forget everything but leases and the evaluator's own notes, to be filled anew from the catalog."""
        kept = tuple(self.key(name).encode() for name in ("lease", "pins", "committed", "evaluator"))
        with mapped():
            for name in self.redis.scan_iter(match=self.key("*"), count=1000):
                if not name.startswith(kept):
                    self.redis.unlink(name)
        self.streams, self.versions, self.parts, self.dedicated = {}, {}, {}, set()
        self._next_numbers, self._free_numbers = {}, {}
        self.begin()

    # -- the unit of work ----------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start a unit of work, forgetting what was loaded for the one before."""
        self._cqs: dict[CqKey, Cq | None] = {}
        self._stored_cqs: set[CqKey] = set()
        self._subscribed: dict[str, int] = {}
        self._changed_cqs: set[CqKey] = set()
        self._holders: dict[str, Holder | None] = {}
        self._touched: dict[str, tuple[Destination, list[Window]]] = {}
        self._stream_changes: dict[str, bool] = {}
        self._fields: dict[tuple[str, str], bytes | None] = {}
        self._new_parts: dict[tuple[str, str], GroupPlan | SelectList] = {}
        self._changed_parts: set[tuple[str, str]] = set()
        self._numbers_before: dict[str, int | None] = {}
        self._last_entries: dict[str, list[Entry]] = {}
        self._retired: dict[str, str] = {}
        self._taken_numbers: list[tuple[str, int]] = []
        self._freed_numbers: list[tuple[str, int]] = []
        self._ended_notes: dict[str, TimedNote] = {}
        self._bumped: set[str] = set()
        self._new_readers: set[str] = set()

    def load(self, cqs: Iterable[CqKey], destinations: Iterable[Destination] = ()) -> None:
        """Read those CQs with their destinations, and those destinations, into the unit."""
        by_subscriber: dict[str, list[CqKey]] = {}
        for key in dict.fromkeys(cqs):
            if key not in self._cqs:
                by_subscriber.setdefault(key.subscriber, []).append(key)
        with mapped():
            pipeline = self.redis.pipeline(transaction=False)
            for subscriber, keys in by_subscriber.items():
                pipeline.hmget(self.key("cqs", subscriber), [key.name for key in keys])
            answers = pipeline.execute() if by_subscriber else []
        found: list[str] = []
        for keys, bodies in zip(by_subscriber.values(), answers, strict=True):
            for key, body in zip(keys, bodies, strict=True):
                cq = _decode_cq(body) if body is not None else None
                self._cqs[key] = cq
                if cq is not None:
                    self._stored_cqs.add(key)
                    found.append(cq.destination_id)
        wanted = [destination.destination_id for destination in destinations]
        wanted += [feed_of(destination).destination_id for destination in destinations if destination.trigger.timed]
        self._load_holders([*found, *wanted])
        holders = (self._holders[name] for name in found)
        timed = (holder.destination for holder in holders if holder is not None and holder.destination.trigger.timed)
        self._load_holders([feed_of(destination).destination_id for destination in timed])

    def load_holders(self, names: Iterable[str]) -> None:
        """Read those destinations into the unit."""
        self._load_holders(names)

    def _load_holders(self, names: Iterable[str]) -> None:
        new = [name for name in dict.fromkeys(names) if name not in self._holders]
        if not new:
            return
        with mapped():
            bodies = self.redis.hmget(self.key("destinations"), new)
        for name, body in zip(new, bodies, strict=True):
            self._holders[name] = _decode_holder(body) if body is not None else None

    def cq(self, key: CqKey) -> Cq | None:
        """Return a CQ; it must have been loaded."""
        return self._cqs[key]

    def holder(self, destination_id: str) -> Holder | None:
        """Return a destination with its members; it must have been loaded."""
        return self._holders[destination_id]

    def plan(self, stream_id: str, group_id: str) -> GroupPlan:
        """Return the plan of a live group."""
        return self._part(stream_id, group_id, GroupPlan)

    def select(self, stream_id: str, select_id: str) -> SelectList:
        """Return a SELECT list that is in use."""
        return self._part(stream_id, select_id, SelectList)

    def _part(self, stream_id: str, part_id: str, kind: type[_Part]) -> _Part:
        part = self._new_parts.get((stream_id, part_id))
        if part is not None:
            assert isinstance(part, kind)
            return part
        part = self._known_parts.get((stream_id, part_id))
        if part is None:
            with mapped():
                body = self.redis.hget(self.key(_shelf(part_id), stream_id), part_id)
            part = msgspec.json.decode(body, type=kind)
            if len(self._known_parts) > _KNOWN_PARTS:
                self._known_parts.clear()
            self._known_parts[stream_id, part_id] = part
        assert isinstance(part, kind)
        return part

    def subscribed(self, subscriber: str) -> int:
        """Return how many CQs a subscriber has, changes of this unit included."""
        if subscriber not in self._subscribed:
            with mapped():
                self._subscribed[subscriber] = int(self.redis.hlen(self.key("cqs", subscriber)))
            for key in self._changed_cqs:
                if key.subscriber == subscriber:
                    self._subscribed[subscriber] += (self._cqs[key] is not None) - (key in self._stored_cqs)
        return self._subscribed[subscriber]

    def names(self, subscriber: str) -> list[str]:
        """Return the folded names of a subscriber's CQs in order, changes of this unit included."""
        with mapped():
            names = {name.decode("utf-8", "surrogatepass") for name in self.redis.hkeys(self.key("cqs", subscriber))}
        for key in self._changed_cqs:
            if key.subscriber == subscriber:
                (names.discard if self._cqs[key] is None else names.add)(key.name)
        return sorted(names)

    def put(self, key: CqKey, cq: Cq, destination: Destination, *parts: GroupPlan | SelectList) -> Destination | None:
        """Let a CQ join its destination, which is made when it is the first; one of the same name leaves its own.

        Args:
            key: The CQ's identity; it must have been loaded, and its destination too.
            cq: The CQ.
            destination: Where its results go.
            parts: Its group's plan and its SELECT list; not needed when another CQ has them already.

        Returns:
            The destination of the one that was replaced, when nobody is left there.
        """
        stream_id = destination.stream_id
        for joined in {destination, feed_of(destination)}:
            holder = self._touch(joined)
            if holder is None:
                self._take_over(joined)
                holder = self._holders[joined.destination_id] = Holder(joined, self._take_number(stream_id))
                if joined.trigger.timed:
                    self._new_readers.add(joined.destination_id)
                    begin = cq.created_ms if cq.start_ms is None else cq.start_ms
                    store = feed_of(joined)
                    holder.timed = TimedNote(
                        born_ms=cq.created_ms, from_ms=begin, store=store.destination_id, partition=store.partition
                    )
                if joined.mode == "dedicated":
                    self.dedicated.add(joined.destination_id)
            holder.count(cq, 1)
        counts = self.parts.setdefault(stream_id, {})
        for part in parts:
            if (part_id := _part_id(part)) not in counts:
                self._new_parts[stream_id, part_id] = part
        for part_id in (destination.group_id, destination.select_id):
            counts[part_id] = counts.get(part_id, 0) + 1
            self._changed_parts.add((stream_id, part_id))
        old = self._cqs[key]
        ended = self._leave(old) if old is not None else None
        self._set(key, cq)
        return ended

    def remove(self, key: CqKey, until: tuple[int, ...] = ()) -> Destination | None:
        """Let a CQ go.

        Args:
            key: The CQ's identity.
            until: By source partition, the offset up to which events still count for it, where it is the last member;
                none when it goes at once.

        Returns:
            Its destination, when nobody is left there.
        """
        cq = self._cqs[key]
        assert cq is not None, "the caller has looked"
        ended = self._leave(cq, until)
        self._set(key, None)
        return ended

    def retire(self, destination: Destination) -> int:
        """Take a leaving destination from the constant table, and return the version that is without it."""
        name = destination.destination_id
        self.leaving.pop(name, None)
        self.set_field("leaving", name, None)
        self._retired[name] = destination.stream_id
        return self.versions.get(destination.stream_id, 0) + 1

    def _take_over(self, destination: Destination) -> None:
        """Let a destination have members again that was about to leave."""
        name = destination.destination_id
        if self.leaving.pop(name, None) is not None:
            self.set_field("leaving", name, None)
            if self._last_entries.pop(name, None) is None:
                self._retired[name] = destination.stream_id

    def _set(self, key: CqKey, cq: Cq | None) -> None:
        if key.subscriber in self._subscribed:
            self._subscribed[key.subscriber] += (cq is not None) - (self._cqs[key] is not None)
        self._cqs[key] = cq
        self._changed_cqs.add(key)

    def _leave(self, cq: Cq, until: tuple[int, ...] = ()) -> Destination | None:
        own = self._holders[cq.destination_id]
        assert own is not None, "a CQ has a destination"
        destination = own.destination
        for left in {destination, feed_of(destination)}:
            holder = self._touch(left)
            assert holder is not None, "a destination stays as long as it has members"
            seen = holder.seen
            holder.count(cq, -1)
            if not holder.members:
                if until and self._touched[left.destination_id][1]:
                    self.leaving[left.destination_id] = left
                    self.set_field("leaving", left.destination_id, _encode(left))
                    self._last_entries[left.destination_id] = _entries(holder, seen, until)
                self._ended_notes[left.destination_id] = holder.timed
                self._holders[left.destination_id] = None
                self._freed_numbers.append((left.stream_id, holder.number))
                self.dedicated.discard(left.destination_id)
        counts = self.parts[destination.stream_id]
        for part_id in (destination.group_id, destination.select_id):
            counts[part_id] -= 1
            if not counts[part_id]:
                del counts[part_id]
            self._changed_parts.add((destination.stream_id, part_id))
        return None if own.members else destination

    def _touch(self, destination: Destination) -> Holder | None:
        """Return the holder, and remember what it saw before the unit."""
        name = destination.destination_id
        holder = self._holders[name]
        if name not in self._touched:
            self._touched[name] = (destination, holder.seen if holder is not None else [])
            self._numbers_before[name] = holder.number if holder is not None else None
        return holder

    def _take_number(self, stream_id: str) -> int:
        if free := self._free_numbers.get(stream_id):
            self._taken_numbers.append((stream_id, free[-1]))
            return free.pop()
        number = self._next_numbers.get(stream_id, 0)
        self._next_numbers[stream_id] = number + 1
        return number

    def add_stream(self, stream: Stream) -> None:
        """Make a stream live."""
        self.streams[stream.stream_id] = stream
        self.versions[stream.stream_id] = 0
        self.parts[stream.stream_id] = {}
        self._stream_changes[stream.stream_id] = True

    def remove_stream(self, stream_id: str) -> None:
        """Let a stream go, that no CQ uses."""
        by_stream: tuple[dict[str, Any], ...] = (
            self.streams,
            self.versions,
            self.parts,
            self._next_numbers,
            self._free_numbers,
        )
        for each in by_stream:
            each.pop(stream_id, None)
        self._stream_changes[stream_id] = False

    def set_field(self, name: str, field: str, value: bytes | None) -> None:
        """Write (or with None remove) a field of a plain hash with the unit."""
        self._fields[name, field] = value

    # -- writing it ----------------------------------------------------------------------------------------------------

    def segments(self) -> dict[str, Segment]:
        """Return what the unit changes in the constant tables, by stream."""
        removed: dict[str, list[str]] = {}
        added: dict[str, list[Entry]] = {}
        for name, (destination, before) in self._touched.items():
            holder = self._holders[name]
            after = holder.seen if holder is not None else []
            same = holder is None or holder.number == self._numbers_before[name]
            if (before == after and same) or feed_of(destination) is not destination:
                continue
            if before:
                removed.setdefault(destination.stream_id, []).append(name)
            entries = _entries(holder, after) if holder is not None else self._last_entries.get(name, [])
            added.setdefault(destination.stream_id, []).extend(entries)
        for name, stream_id in self._retired.items():
            removed.setdefault(stream_id, []).append(name)
        touched = (removed.keys() | added.keys() | self._bumped) & self.streams.keys()
        return {name: Segment.of(removed.get(name, ()), added.get(name, ())) for name in touched}

    def ended_version(self, destination: Destination) -> int:
        """Return the first version whose batches cannot write to a destination that this unit ends."""
        names = (destination.destination_id, feed_of(destination).destination_id)
        return self.versions[destination.stream_id] + any(self._touched[name][1] for name in names)

    def ended_note(self, destination: Destination) -> TimedNote:
        """Return what a timer-based destination that this unit ends has seen, up to its end."""
        note = self._ended_notes[destination.destination_id]
        if not note.history:
            return note
        last: Sight = (self.epoch, self.ended_version(destination), [])
        return msgspec.structs.replace(note, history=(*note.history, last))

    def note_sights(self, now_ms: int) -> dict[str, TimedNote | None]:
        """Bring what timer-based destinations see up to the unit's version, and return what changed (None: ended).

        A stored match is shared by all ticks that read it; which of them saw it follows from the version that met the
        event. So a change of that makes a version even where the store of matches itself stays as it is.

        Args:
            now_ms: The present, epoch milliseconds.
        """
        changed: dict[str, TimedNote | None] = {}
        for name, (destination, before) in self._touched.items():
            if not destination.trigger.timed:
                continue
            holder = self._holders[name]
            after = holder.seen if holder is not None else []
            if before == after and (holder is None or holder.timed.history or not after):
                continue
            self._bumped.add(destination.stream_id)
            changed[name] = None
            if holder is not None:
                sight = (self.epoch, self.versions[destination.stream_id] + 1, after)
                history = (*holder.timed.history, sight)
                holder.timed = msgspec.structs.replace(holder.timed, history=history, changed_ms=now_ms)
                changed[name] = holder.timed
        return changed

    def set_timed(self, name: str, note: TimedNote) -> None:
        """Give a destination back what the catalog says that it has seen; it must have been loaded."""
        holder = self._holders[name]
        if holder is not None and holder.timed != note:
            self._touch(holder.destination)
            holder.timed = note

    def commit(self, also: Mapping[str, bytes | str | int]) -> str:
        """Write the unit and further keys (under the prefix) in one transaction, and begin the next unit.

        Returns:
            The run id of the server that took it, for the caller to compare: one that was restarted since the unit was
            read may have lost what the unit stands on.
        """
        pipeline = self.redis.pipeline(transaction=True)
        self._write_cqs(pipeline)
        self._write_holders(pipeline)
        self._write_timed(pipeline)
        self._write_parts(pipeline)
        for stream_id, segment in self.segments().items():
            version = self.versions[stream_id]
            self.versions[stream_id] = version + 1
            pipeline.hset(self.key("segments", stream_id), f"{version}-{version + 1}", segment.encode())
            pipeline.hset(self.key("version"), stream_id, version + 1)
        for stream_id, live in self._stream_changes.items():
            if live:
                pipeline.hset(self.key("streams"), stream_id, msgspec.json.encode(self.streams[stream_id]))
                pipeline.hset(self.key("version"), stream_id, self.versions[stream_id])
            else:
                pipeline.hdel(self.key("streams"), stream_id)
                for name in ("version", "numbers"):
                    pipeline.hdel(self.key(name), stream_id)
                for name in _OF_STREAM:
                    pipeline.unlink(self.key(name, stream_id))
        self._write_fields(pipeline)
        for name, value in also.items():
            pipeline.set(self.key(name), value)
        pipeline.info("server")
        with mapped():
            run_id = pipeline.execute()[-1]["run_id"]
        self.begin()
        return str(run_id)

    def _write_fields(self, pipeline: Any) -> None:
        kept: dict[str, dict[str, bytes]] = {}
        gone: dict[str, list[str]] = {}
        for (name, field), body in self._fields.items():
            if body is None:
                gone.setdefault(name, []).append(field)
            else:
                kept.setdefault(name, {})[field] = body
        for name, mapping in kept.items():
            pipeline.hset(self.key(name), mapping=mapping)
        for name, fields in gone.items():
            pipeline.hdel(self.key(name), *fields)

    def _write_cqs(self, pipeline: Any) -> None:
        kept: dict[str, dict[str, bytes]] = {}
        gone: dict[str, list[str]] = {}
        for key in self._changed_cqs:
            cq = self._cqs[key]
            if cq is None:
                gone.setdefault(key.subscriber, []).append(key.name)
            else:
                kept.setdefault(key.subscriber, {})[key.name] = _encode(cq)
        expiries = {_member(key): cq.expire_ms for key in self._changed_cqs if (cq := self._cqs[key]) and cq.expire_ms}
        over = [_member(key) for key in self._changed_cqs if _member(key) not in expiries]
        if expiries:
            pipeline.zadd(self.key("expiries"), expiries)
        if over:
            pipeline.zrem(self.key("expiries"), *over)
        for subscriber, mapping in kept.items():
            pipeline.hset(self.key("cqs", subscriber), mapping=mapping)
        for subscriber, names in gone.items():
            pipeline.hdel(self.key("cqs", subscriber), *names)

    def _write_holders(self, pipeline: Any) -> None:
        holders = {name: holder for name in self._touched if (holder := self._holders[name]) is not None}
        gone = [name for name in self._touched if self._holders[name] is None]
        if holders:
            pipeline.hset(self.key("destinations"), mapping={name: _encode(holder) for name, holder in holders.items()})
        if gone:
            pipeline.hdel(self.key("destinations"), *gone)
            pipeline.srem(self.key("dedicated"), *gone)
        if new := [name for name, holder in holders.items() if holder.destination.mode == "dedicated"]:
            pipeline.sadd(self.key("dedicated"), *new)
        taken: dict[str, list[int]] = {}
        for stream_id, number in self._taken_numbers:
            taken.setdefault(stream_id, []).append(number)
        for stream_id, some in taken.items():
            pipeline.srem(self.key("free", stream_id), *some)
        freed: dict[str, list[int]] = {}
        for stream_id, number in self._freed_numbers:
            if stream_id in self.streams:
                freed.setdefault(stream_id, []).append(number)
        for stream_id, some in freed.items():
            self._free_numbers.setdefault(stream_id, []).extend(some)
            pipeline.sadd(self.key("free", stream_id), *some)
        numbers = {
            destination.stream_id: self._next_numbers[destination.stream_id]
            for destination, _ in self._touched.values()
            if destination.stream_id in self._next_numbers
        }
        if numbers:
            pipeline.hset(self.key("numbers"), mapping=numbers)

    @property
    def freed_numbers(self) -> list[tuple[str, int]]:
        """Where matches were counted of destinations that this unit ends, with their streams."""
        return self._freed_numbers

    def _write_timed(self, pipeline: Any) -> None:
        """Keep who reads which store of matches, and have the timers look at those whose sight changed."""
        looks: dict[str, dict[str, int]] = {}
        for name, (destination, before) in self._touched.items():
            if not destination.trigger.timed:
                continue
            holder, store = self._holders[name], feed_of(destination).destination_id
            if holder is None:
                pipeline.srem(self.key("readers", store), name)
                pipeline.zrem(self.key("timers", destination.stream_id), name)
                continue
            if name in self._new_readers:
                pipeline.sadd(self.key("readers", store), name)
                self.joined.append((store, name))
            worth = before or destination.clause.even_if_empty or holder.timed.history[1:]
            if holder.seen and holder.seen != before and worth:
                looks.setdefault(destination.stream_id, {})[name] = 0
        for stream_id, scores in looks.items():
            pipeline.zadd(self.key("timers", stream_id), scores, nx=True)

    def unused_parts(self) -> list[tuple[str, str]]:
        """Return the plans and SELECT lists, with their streams, that this unit leaves without a CQ."""
        return [
            (stream_id, name) for stream_id, name in self._changed_parts if name not in self.parts.get(stream_id, {})
        ]

    def _write_parts(self, pipeline: Any) -> None:
        for (stream_id, part_id), part in self._new_parts.items():
            pipeline.hset(self.key(_shelf(part_id), stream_id), part_id, msgspec.json.encode(part))
            pipeline.zrem(self.key("unused", stream_id), part_id)
        for stream_id, part_id in self._changed_parts:
            if stream_id not in self.streams:
                continue
            if count := self.parts[stream_id].get(part_id):
                pipeline.hset(self.key("parts", stream_id), part_id, count)
            else:
                # A batch that is replayed may still ask for the plan: `Compactor` removes it later.
                pipeline.hdel(self.key("parts", stream_id), part_id)
                pipeline.zadd(self.key("unused", stream_id), {part_id: self.versions[stream_id] + 1})


def _member(key: CqKey) -> str:
    return "\x00".join(key)


def _part_id(part: GroupPlan | SelectList) -> str:
    return part.group_id if isinstance(part, GroupPlan) else part.select_id


def _shelf(part_id: str) -> str:
    return "groups" if part_id.startswith("g_") else "selects"


def _entries(holder: Holder, windows: list[Window], until: tuple[int, ...] = ()) -> list[Entry]:
    destination = holder.destination
    row = destination.row
    block = Block(destination.group_id, row.types, destination.select_id, destination.mode, until)
    name, number, partition = destination.destination_id, holder.number, destination.partition
    return [Entry(block, name, row, number, partition, start, expire) for start, expire in windows]
