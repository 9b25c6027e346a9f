"""A unit of work as Redis commands, queued on the pipeline that becomes one transaction."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from gateway.model.dependencies import definition_hash
from gateway.model.records import feed_of
from gateway.model.stored_form import pack_cq, pack_key, pack_membership, raw_id
from gateway.model.table_entries import snapshot_note
from gateway.model.unit import Unit
from gateway.model.unit_outcome import segments
from grouping.model.ids import DestinationId, StreamId, Subscriber
from grouping.store.keys import FieldHash, RedisKeys
from grouping.store.quarantine import sole_user_text
from grouping.store.segment_log import VersionSpan, segment_fields

__all__ = ["write_unit"]

_LET_GO_SECONDS = 60
"""How long the note of a stream's owner stays after the stream was dropped, in seconds. Tasks of the owner may still
write for the stream; the owner ends these tasks after about a second."""


def write_unit(unit: Unit, pipeline: Any, keys: RedisKeys) -> None:
    """Queue all changes of a unit; the versions of its touched streams grow by one."""
    _write_cqs(unit, pipeline, keys)
    _write_memberships(unit, pipeline, keys)
    _write_snapshots(unit, pipeline, keys)
    _write_timed(unit, pipeline, keys)
    _write_listed(unit, pipeline, keys)
    _write_dependencies(unit, pipeline, keys)
    _write_tables(unit, pipeline, keys)
    _write_streams(unit, pipeline, keys)
    _write_fields(unit, pipeline, keys)


def _write_tables(unit: Unit, pipeline: Any, keys: RedisKeys) -> None:
    for stream_id, segment in segments(unit).items():
        version = unit.inventory.versions[stream_id]
        unit.inventory.versions[stream_id] = version + 1
        log = keys.segments(stream_id)
        for field, body in segment_fields(VersionSpan(version, version + 1), [segment]):
            pipeline.hset(log, field, body)
        pipeline.hset(keys.version, stream_id, version + 1)


def _write_streams(unit: Unit, pipeline: Any, keys: RedisKeys) -> None:
    for stream_id, live in unit.sources.streams.items():
        if live:
            pipeline.hset(keys.streams, stream_id, msgspec.json.encode(unit.inventory.streams[stream_id]))
            pipeline.hset(keys.version, stream_id, unit.inventory.versions[stream_id])
            if stream_id in unit.sources.redeclared:  # dead letters among the next records are counted from zero
                pipeline.unlink(keys.first_records(stream_id))
        else:
            for name in (keys.streams, keys.version, keys.numbers):
                pipeline.hdel(name, stream_id)
            pipeline.unlink(*keys.of_stream(stream_id))
            pipeline.expire(keys.owner(stream_id), _LET_GO_SECONDS)


def _write_fields(unit: Unit, pipeline: Any, keys: RedisKeys) -> None:
    kept: dict[FieldHash, dict[str, bytes]] = {}
    gone: dict[FieldHash, list[str]] = {}
    for (name, field), body in unit.fields.items():
        if body is None:
            gone.setdefault(name, []).append(field)
        else:
            kept.setdefault(name, {})[field] = body
    for name, mapping in kept.items():
        pipeline.hset(keys.field_hash(name), mapping=mapping)
    for name, fields in gone.items():
        pipeline.hdel(keys.field_hash(name), *fields)
    if dropped := gone.get("tables"):
        pipeline.unlink(*map(keys.table_letters, dropped))


def _write_cqs(unit: Unit, pipeline: Any, keys: RedisKeys) -> None:
    kept: dict[Subscriber, dict[str, bytes]] = {}
    gone: dict[Subscriber, list[str]] = {}
    expiries: dict[bytes, int] = {}
    over: list[bytes] = []
    change: Counter[Subscriber] = Counter()
    for one in unit.changed_cqs:
        cq = unit.cqs[one]
        if cq is None:
            gone.setdefault(one.subscriber, []).append(one.name)
        else:
            kept.setdefault(one.subscriber, {})[one.name] = pack_cq(one.name, cq)
            if cq.expire_ms is not None:
                expiries[pack_key(one)] = cq.expire_ms
        change[one.subscriber] += (cq is not None) - (one in unit.stored_cqs)
        if one in unit.stored_cqs and (cq is None or cq.expire_ms is None):
            over.append(pack_key(one))
    if expiries:
        pipeline.zadd(keys.expiries, expiries)
    if over:
        pipeline.zrem(keys.expiries, *over)
    for subscriber, mapping in kept.items():
        pipeline.hset(keys.cqs(subscriber), mapping=mapping)
    for subscriber, more in change.items():
        if more:  # `Audit` compares this total with the CQs that Redis has
            pipeline.hincrby(keys.subscribers, subscriber, more)
    for subscriber, names in gone.items():
        pipeline.hdel(keys.cqs(subscriber), *names)


def _write_memberships(unit: Unit, pipeline: Any, keys: RedisKeys) -> None:
    memberships = {name: membership for name in unit.touched if (membership := unit.memberships[name]) is not None}
    gone = [name for name in unit.touched if unit.memberships[name] is None]
    if memberships:
        pipeline.hset(
            keys.destinations, mapping={raw_id(name): pack_membership(each) for name, each in memberships.items()}
        )
    if gone:
        pipeline.hdel(keys.destinations, *map(raw_id, gone))
        if ended := [name for name in gone if unit.touched[name][0].mode == "dedicated"]:
            pipeline.srem(keys.dedicated, *ended)
    if new := [name for name, membership in memberships.items() if membership.destination.mode == "dedicated"]:
        pipeline.sadd(keys.dedicated, *new)
    taken: dict[StreamId, list[int]] = {}
    for stream_id, number in unit.taken_numbers:
        taken.setdefault(stream_id, []).append(number)
    for stream_id, some in taken.items():
        pipeline.srem(keys.free(stream_id), *some)
    freed: dict[StreamId, list[int]] = {}
    for stream_id, number in unit.freed_numbers:
        freed.setdefault(stream_id, []).append(number)
    for stream_id, some in freed.items():
        if stream_id in unit.inventory.streams:
            unit.inventory.free_numbers.setdefault(stream_id, []).extend(some)
            pipeline.sadd(keys.free(stream_id), *some)
    touched = {destination.stream_id for destination, _ in unit.touched.values()}
    numbers = {name: unit.inventory.next_numbers[name] for name in touched if name in unit.inventory.next_numbers}
    if numbers:
        pipeline.hset(keys.numbers, mapping=numbers)


def _write_snapshots(unit: Unit, pipeline: Any, keys: RedisKeys) -> None:
    """Write notes of the snapshots that destinations wait for; the evaluator finds them and writes the snapshots."""
    for name, (destination, _) in unit.touched.items():
        if destination.edges is None or destination.edges.edge != "changes":
            continue
        membership = unit.memberships[name]
        note = None if membership is None else snapshot_note(membership)
        if note is not None:
            pipeline.hset(keys.snapshots, name, note.pack())
            pipeline.delete(keys.held(note.stream_id))
        else:
            pipeline.hdel(keys.snapshots, name)
            pipeline.hdel(keys.snapshots_made, name)


def _write_timed(unit: Unit, pipeline: Any, keys: RedisKeys) -> None:
    """Write the readers of each store, and arm destinations.

    A destination whose visible windows changed is armed for a look if matches may already wait for it. A new
    destination is armed when its first match arrives. A destination with digests of a table's rows is also armed for
    the EXPIRE of its last CQ, unless it is armed for an earlier tick.
    """
    looks: dict[StreamId, dict[DestinationId, int]] = {}
    last: dict[StreamId, dict[DestinationId, int]] = {}
    gone: dict[StreamId, list[DestinationId]] = {}
    unread: set[DestinationId] = set()
    for name in unit.touched_timed:
        destination, before = unit.touched[name]
        membership, store = unit.memberships[name], feed_of(destination).destination_id
        if membership is None:
            gone.setdefault(destination.stream_id, []).append(name)
            if unit.memberships[store] is None:
                unread.add(store)
            else:
                pipeline.srem(keys.readers(store), name)
            continue
        if name in unit.new_readers:
            pipeline.sadd(keys.readers(store), name)
            unit.joined.append((store, name))
        may_wait = before or destination.at_each_tick or membership.timed.visibility[1:]
        if membership.seen and membership.seen != before and may_wait:
            looks.setdefault(destination.stream_id, {})[name] = 0
        if destination.of_rows and (last_ms := membership.last_ms) is not None:
            last.setdefault(destination.stream_id, {})[name] = last_ms
    if unread:
        pipeline.unlink(*(keys.readers(store) for store in unread))
    for stream_id, names in gone.items():
        pipeline.zrem(keys.timers(stream_id), *names)
    for stream_id, scores in looks.items():
        pipeline.zadd(keys.timers(stream_id), scores, nx=True)
    for stream_id, scores in last.items():
        pipeline.zadd(keys.timers(stream_id), scores, lt=True)


def _write_listed(unit: Unit, pipeline: Any, keys: RedisKeys) -> None:
    """Keep the names of timer-based CQs in sorted sets. All scores are equal, so Redis orders the set by name."""
    listed: dict[Subscriber, dict[str, int]] = {}
    unlisted: dict[Subscriber, list[str]] = {}
    for one, timed in unit.timed.items():
        if timed:
            listed.setdefault(one.subscriber, {})[one.name] = 0
        else:
            unlisted.setdefault(one.subscriber, []).append(one.name)
    for subscriber, scores in listed.items():
        pipeline.zadd(keys.timed(subscriber), scores)
    for subscriber, names in unlisted.items():
        pipeline.zrem(keys.timed(subscriber), *names)


def _write_dependencies(unit: Unit, pipeline: Any, keys: RedisKeys) -> None:
    for (stream_id, key), definition in unit.dependencies.definitions.items():
        pipeline.hset(definition_hash(keys, stream_id, key.kind), key.name, msgspec.json.encode(definition))
        pipeline.zrem(keys.unused(stream_id), key.name)
    for (stream_id, item_id), user in unit.dependencies.sole_users.items():
        pipeline.hset(keys.sole_users(stream_id), item_id, sole_user_text(user))
    for stream_id, key in unit.dependencies.changed:
        if stream_id not in unit.inventory.streams:
            continue
        if count := unit.inventory.dependencies[stream_id][key.kind].get(key.item_id):
            pipeline.hset(keys.dependencies(stream_id), key.name, count)
        else:
            pipeline.hdel(keys.dependencies(stream_id), key.name)
            if definition_hash(keys, stream_id, key.kind):
                # A replayed micro-batch may still ask for the plan, so `TableUpkeep` removes it later.
                pipeline.zadd(keys.unused(stream_id), {key.name: unit.inventory.versions[stream_id] + 1})
