"""Names refused by the gateway today, and keys of earlier versions: none of them stops the gateway."""

from __future__ import annotations

import json

from gateway.model.trigger_spec import TriggerSpec
from tests.ground import Ground
from tests.stack.digests.desk import HOUR, NOW, let_pass
from tests.timer_desk import Desk

_EXPIRE = NOW + HOUR


def test_a_name_with_a_nul_expires(ground: Ground) -> None:
    """A CQ that an earlier version took under a name with a NUL goes at its EXPIRE, as its neighbours do."""
    desk = Desk(ground.settings, NOW)
    desk.put([("a\0b", 0, TriggerSpec()), ("plain", 1, TriggerSpec())], _EXPIRE)
    desk.now_ms = _EXPIRE
    let_pass(desk, 1000)
    assert 0 == desk.working.connection.redis.hlen(desk.working.connection.keys.cqs("bench"))


def test_an_earlier_versions_expiries_are_made_anew(ground: Ground) -> None:
    """Members that joined both names with a NUL are replaced on the first start, and their CQs expire."""
    desk = Desk(ground.settings, NOW)
    desk.put([("a\0b", 0, TriggerSpec()), ("plain", 1, TriggerSpec())], _EXPIRE)
    while desk.look_after():
        pass  # until all of it is on Kafka, and how far is noted
    redis, keys = desk.working.connection.redis, desk.working.connection.keys
    position = json.loads(redis.get(keys.position))
    redis.set(keys.position, json.dumps(position | {"format": 2}))
    redis.delete(keys.expiries)
    redis.zadd(keys.expiries, {"bench\0a\0b": _EXPIRE, "bench\0plain": _EXPIRE})
    desk.recover()
    desk.now_ms = _EXPIRE
    let_pass(desk, 1000)
    assert [0, 0] == [redis.hlen(keys.cqs("bench")), redis.zcard(keys.expiries)]
