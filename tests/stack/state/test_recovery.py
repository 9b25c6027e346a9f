"""Redis falls back to any earlier moment, and Kafka forgets as much as it may: every accepted CQ is there, once."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka.admin import AdminClient

from gateway.commands.statements import Statements
from gateway.kafka import LogReader
from gateway.state.commit import Commits
from gateway.state.commit_mark import CatalogUnreadable
from gateway.state.journal import Journal
from grouping.store.table_store import TableStore
from tests.ground import Ground
from tests.kafka_client import wait_until
from tests.stack.state.office import Office
from tests.stack.state.redis_copy import RedisCopy

_DAY = 24 * 3_600_000


@contextmanager
def _copies(office: Office, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[RedisCopy]]:
    """Give the copies of Redis that are taken as units are committed: between its half and Kafka's, and behind both."""
    copies: list[RedisCopy] = []
    publish = Commits.publish

    def copying(commits: Commits, journal: Journal, now_ms: int) -> None:
        copies.append(RedisCopy.of(office.settings))
        publish(commits, journal, now_ms)
        copies.append(RedisCopy.of(office.settings))

    with monkeypatch.context() as patch:
        patch.setattr(Commits, "publish", copying)
        yield copies


@pytest.mark.parametrize("seed", range(2))
def test_redis_falls_back_to_any_moment(ground: Ground, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Whatever moment Redis is set back to, all accepted CQs are there, and no dropped one."""
    rng, office = random.Random(seed), Office(ground)
    with _copies(office, monkeypatch) as copies:
        for _ in range(8):
            for _ in range(rng.randint(1, 4)):
                _change(office, rng)
            rng.choice(copies[-8:]).put_back(office.settings, other_run=rng.random() < 0.7)
            office.recover()
            assert office.live == set(office.state()["cqs"])
    office.check()


def _change(office: Office, rng: random.Random) -> None:
    name = f"q{rng.randint(0, 5)}"
    if name in office.live:
        office.drop(name, by_command=rng.random() < 0.4)
    else:
        office.create(name, rng.randint(0, 3))


def test_an_old_journal_takes_nothing_back(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit without commands, found again in a Redis set back, is not written behind later changes."""
    office = Office(ground)
    office.create("a", 1)
    with _copies(office, monkeypatch) as copies:
        office.drop("a", by_command=False)
    office.create("a", 1)
    office.create("b", 2)
    copies[0].put_back(office.settings, other_run=True)
    office.recover()
    office.check()


def test_a_redis_of_some_days_ago(ground: Ground) -> None:
    """A Redis from a backup does not bring back dropped CQs, though the catalog has lost their tombstones."""
    office = Office(ground)
    office.create("dropped", 1)
    office.create("kept", 2)
    backup = RedisCopy.of(office.settings)
    office.desk.now_ms += 2 * _DAY
    office.create("new", 3)
    office.desk.commits.refresh(office.desk.now_ms)
    _hide(office, "dropped")
    office.live.discard("dropped")
    backup.put_back(office.settings, other_run=True)
    office.recover()
    office.check()


def _hide(office: Office, name: str) -> None:
    """Remove all records of a CQ from the catalog, as compaction finally does: the topic is created anew."""
    topic = office.settings.topics.catalog
    reader = LogReader(office.settings)
    records = [(m.key, m.value) for m in reader.since(topic, {0: 0}) if name.encode() not in (m.key or b"")]
    office.desk.topics.delete([topic])
    wait_until(lambda: topic not in office.desk.topics.names(), "end of the catalog")
    office.desk.topics.create({topic: 1}, {"cleanup.policy": "compact"})
    for key, value in [(b"nothing", None)] * len(records) + records:
        office.producer.produce(topic, value, key, 0)
    office.producer.flush()
    reader.close()


def test_a_redis_of_an_earlier_life(ground: Ground) -> None:
    """A Redis replaced by another in the meantime is filled anew: its data may exist nowhere else."""
    office = Office(ground)
    office.create("kept", 1)
    first = RedisCopy.of(office.settings)
    RedisCopy.of(office.settings).put_back(office.settings, other_run=True)
    office.recover()
    office.create("new", 2)
    first.put_back(office.settings, other_run=True)
    own, key = office.desk.working.connection.redis, office.desk.working.connection.keys.cqs("bench")
    own.hset(key, "nobody", own.hget(key, "kept"))
    office.recover()
    office.check()


def test_kafka_forgets_how_far_commands_were_read(ground: Ground) -> None:
    """Without the offsets of the consumer group no command is answered again; from Redis, and without it."""
    office = Office(ground)
    for number in range(3):
        office.create(f"q{number}", number)
    for lost in (False, True):
        office.desk.commits.refresh(office.desk.now_ms)  # as it is each hour
        group = office.settings.clients.gateway
        admin = AdminClient({"bootstrap.servers": office.settings.kafka.bootstrap})
        admin.delete_consumer_groups([group])[group].result()
        if lost:
            office.desk.working.connection.redis.delete(
                *office.desk.working.connection.redis.keys(office.desk.working.connection.keys.everything)
            )
        office.recover()
        assert [] == office.desk.consumer.read(100, 1.0)
        office.send("DESCRIBE CQ q0")
    office.check()


def test_what_is_not_remembered_stays_so(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """With Redis lost an id has its counted first reply, and after `unavailable` the command is tried anew."""
    office = Office(ground)
    office.create("a", 1)
    with monkeypatch.context() as patch:
        patch.setattr(Statements, "carry_out", _failing)
        office.send("DESCRIBE CQ a", "tried anew")
    office.send("DESCRIBE CQ a", "refused", subscriber="mallory")
    office.send("DESCRIBE CQ none", "first")
    office.create("none", 2)
    office.desk.working.connection.redis.delete(
        *office.desk.working.connection.redis.keys(office.desk.working.connection.keys.everything)
    )
    office.recover()
    for command_id in ("tried anew", "refused"):
        office.send("DESCRIBE CQ a", command_id)
    office.send("DESCRIBE CQ none", "first")
    codes: dict[str, list[str]] = {}
    for reply in office.replies():
        codes.setdefault(reply.command_id or "", []).append(reply.code)
    assert ["unavailable", "ok"] == codes["tried anew"]
    assert ["not-allowed", "ok"] == codes["refused"]
    assert ["unknown-cq", "unknown-cq"] == codes["first"]


def _failing(*_: object) -> dict[str, object]:
    raise RuntimeError("a fault")


def test_a_command_at_which_the_gateway_ends(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command is refused after three ends, and so is its copy, even with a new Redis; others run once."""
    office = Office(ground)
    office.create("a", 1)
    prepare, ends = Statements.prepare, 0

    def ending(statements: Statements, subscriber: str, text: str, now_ms: int) -> object:
        if "deadly" in text:
            raise _GatewayEnds
        return prepare(statements, subscriber, text, now_ms)

    monkeypatch.setattr(Statements, "prepare", ending)
    for command_id, name in (("d0", "a"), ("d1", "deadly"), ("d2", "a"), ("d1", "deadly")):
        fields = {"command_id": command_id, "subscriber": "bench", "text": f"DESCRIBE CQ {name}"}
        office.producer.produce(office.settings.topics.commands, json.dumps(fields), b"bench")
    office.producer.flush()
    while len(office.replies()) < 5:
        try:
            office.desk.carry_out(office.desk.consumer.read(100, 10.0))
        except _GatewayEnds:
            ends += 1
            office.desk.recovery.doubt()
            office.recover()
    assert 3 == ends
    codes = [(reply.command_id, reply.code) for reply in office.replies()[1:]]
    assert [("d0", "ok"), ("d1", "unsupported-query"), ("d2", "ok"), ("d1", "unsupported-query")] == codes


class _GatewayEnds(BaseException):
    """The gateway is killed."""


def test_what_cannot_be_read(ground: Ground) -> None:
    """Data damaged by a fault of ours in Redis is filled anew; data of a later version is refused, and kept."""
    office = Office(ground)
    office.create("a", 1)
    working = office.desk.working
    working.connection.redis.hset(working.connection.keys.cqs("bench"), "a", b"of another form")
    office.desk.recovery.doubt()
    office.recover()
    office.check()
    working.connection.redis.set(working.connection.keys.epoch, b"of another form")
    office.recover()
    office.check()
    position = json.loads(working.connection.redis.get(working.connection.keys.position))
    working.connection.redis.set(working.connection.keys.position, json.dumps({**position, "format": 99}))
    with pytest.raises(CatalogUnreadable, match="format 99"):
        office.recover()
    working.connection.redis.set(working.connection.keys.position, json.dumps({**position, "catalog": 99}))
    with pytest.raises(CatalogUnreadable, match="the catalog has format 99"):
        office.recover()
    assert 1 == working.connection.redis.exists(working.connection.keys.cqs("bench"))
    office.producer.produce(office.settings.topics.catalog, b'{"number": 1}', b"commit", 0)
    office.producer.flush()
    working.connection.redis.set(working.connection.keys.position, json.dumps(position))
    with pytest.raises(CatalogUnreadable, match="cannot read"):
        office.recover()


def test_no_batch_meets_tables_that_are_wiped(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the first of the tables goes, no epoch is confirmed any more."""
    office = Office(ground)
    working, store, seen = office.desk.working, TableStore(office.settings), []
    transaction = working.connection.transaction

    def noting(*client: object) -> object:
        seen.append(store.epoch())
        return transaction(*client)

    monkeypatch.setattr(working.connection, "transaction", noting)
    working.wipe()
    assert seen[0] is not None
    assert {None} == set(seen[1:])


def test_a_recovery_tells_how_far_it_is(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """While Redis is filled anew, the gateway's status has how much of the catalog is read; afterwards no more."""
    office = Office(ground)
    for number in range(3):
        office.create(f"q{number}", number)
    working, progress = office.desk.working, office.desk.recovery.progress
    reports, commit = [], working.commit

    def noting(*journal: bytes) -> str:
        reports.append(progress.fields())
        return commit(*journal)

    working.wipe()
    monkeypatch.setattr(working, "commit", noting)
    monkeypatch.setattr("gateway.state.recovery.catalog_replay.REPLAYED_AT_ONCE", 1)
    office.recover()
    recovery = reports[0]["recovery"]
    assert (office.settings.topics.catalog, 0) == (recovery["topic"], recovery["read"])
    assert recovery["records"] > 3
    assert {} == progress.fields()
