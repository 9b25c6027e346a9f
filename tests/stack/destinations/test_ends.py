"""Ends of destinations: when Redis is lost around them, when the evaluator lags, when very many leave at once."""

from __future__ import annotations

import msgspec

from gateway.model.records import Destination
from gateway.model.trigger_spec import TriggerSpec
from gateway.state.recovery.audit import Audit
from gateway.topics.positions import dedicated_topic
from grouping.store.table_store import TableStore
from tests.ground import Ground
from tests.kafka_client import wait_until
from tests.stack.digests.desk import HOUR, NOW, let_pass, written
from tests.timer_desk import Desk

_CQS = 20
_EXPIRE = NOW + HOUR
_LINGER = HOUR
"""The setting's default."""


def test_redis_is_wiped_between_expire_and_the_ends(ground: Ground) -> None:
    """No CQ comes back, and each destination gets its end once."""
    desk = Desk(ground.settings, NOW)
    trigger = TriggerSpec()
    desk.create([trigger] * _CQS, _EXPIRE)
    desk.now_ms = _EXPIRE
    redis, cqs = desk.working.connection.redis, desk.working.connection.keys.cqs("bench")
    while redis.hlen(cqs):
        let_pass(desk, 100)
    redis.delete(*redis.keys(desk.working.connection.keys.everything))
    desk.recover()
    let_pass(desk, 3000)
    names = [desk.destination(number, trigger).destination_id for number in range(_CQS)]
    assert {f"{name}/end/{_EXPIRE}" for name in names} == written(desk).keys()
    assert [0, 0] == [redis.hlen(cqs), redis.hlen(desk.working.connection.keys.ends)]


def test_each_life_ends_however_far_the_evaluator_is_behind(ground: Ground) -> None:
    """Dropped and taken up again before its last events are evaluated: they stay, and each incarnation has its end."""
    desk, trigger = Desk(ground.settings, NOW), TriggerSpec()
    destination = desk.destination(0, trigger)
    ended = []
    for _ in range(2):
        desk.create([trigger])
        desk.publish()
        let_pass(desk, 200)
        ended.append(desk.now_ms)
        desk.drop("c0")
        let_pass(desk, 200)
        assert Audit(desk.working).whole()
    desk.create([trigger])
    desk.pause("c0", paused=True)
    let_pass(desk, 1000)
    assert not written(desk)
    assert [(2, 0)] == _bounds(desk), "the first life's events are below the second one's bound"
    for count in (1, 2):
        desk.evaluate(1)
        let_pass(desk, 1000)
        assert [f"{destination.destination_id}/end/{at}" for at in ended[:count]] == list(written(desk))
    assert [] == _bounds(desk)
    assert Audit(desk.working).whole()
    assert 0 == desk.working.connection.redis.hlen(desk.working.connection.keys.leaving)
    assert 0 == desk.working.connection.redis.hlen(desk.working.connection.keys.ends)


def _bounds(desk: Desk) -> list[tuple[int, ...]]:
    """Return the offsets that bound entries of the constant table."""
    version = desk.working.inventory.versions["s_bench"]
    pieces = TableStore(desk.settings).changes("s_bench", desk.epoch, 0, version)
    return [block.until for piece in pieces or () for block in piece.added]


def test_who_shared_and_expires_together_is_told_by_the_end(ground: Ground) -> None:
    """A single `cq.end` tells all; members who leave others behind, even paused ones, get a `cq.leave` each, once."""
    desk, trigger = Desk(ground.settings, NOW), TriggerSpec()
    alone, shared = (desk.destination(number, trigger).destination_id for number in (1, 2))
    desk.put([(f"alone{n}", 1, trigger) for n in range(_CQS)], _EXPIRE)
    desk.put([(f"shared{n}", 2, trigger) for n in range(_CQS)], _EXPIRE)
    desk.put([("paused", 2, trigger)])
    desk.pause("paused", paused=True)
    desk.now_ms = _EXPIRE
    let_pass(desk, 1000)
    desk.recover()
    let_pass(desk, 1000)
    found = written(desk)
    assert [f"{alone}/end/{_EXPIRE}"] == [name for name in found if name.startswith(alone)]
    leaves = [name for name in found if name.startswith(shared)]
    assert {f"{shared}/leave/{found[name]['member']}" for name in leaves} == set(leaves)
    assert _CQS == len(leaves)
    assert 0 == desk.working.connection.redis.hlen(desk.working.connection.keys.ends)


class _DedicatedDesk(Desk):
    """A desk on which each destination has a topic of its own."""

    def destination(self, number: int, trigger: TriggerSpec) -> Destination:
        shared = super().destination(number, trigger)
        return msgspec.structs.replace(shared, mode="dedicated", partition=0)


def test_a_topic_stays_for_its_end(ground: Ground) -> None:
    """However late the evaluator lets a destination end, its topic has `cq.end`, and lingers from then on."""
    desk, trigger = _DedicatedDesk(ground.settings, NOW), TriggerSpec()
    topic = dedicated_topic(desk.settings, desk.destination(0, trigger).destination_id)
    desk.topics.create({topic: 1})
    desk.create([trigger])
    desk.publish()
    let_pass(desk, 200)
    desk.drop("c0")
    desk.now_ms += 2 * _LINGER
    let_pass(desk, 300)
    desk.evaluate(1)
    let_pass(desk, 500)
    wait_until(lambda: 1 < desk.topics.offsets.ends([(topic, 0)])[topic, 0], "record, and its transaction's mark")
    desk.now_ms += _LINGER
    let_pass(desk, 300)
    wait_until(lambda: topic not in desk.topics.names(), "the deletion of the topic")
