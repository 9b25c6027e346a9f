"""Ends of destinations, when Redis is lost around the units of work that carry them out."""

from __future__ import annotations

from gateway.records import TriggerSpec
from tests.benchmarks.ground import Ground
from tests.benchmarks.timer_desk import Desk
from tests.stack.desk import HOUR, NOW, let_pass, written

_CQS = 20
_EXPIRE = NOW + HOUR


def test_redis_is_wiped_between_expire_and_the_ends(ground: Ground) -> None:
    """No CQ comes back, and each destination gets its end once."""
    desk = Desk(ground.settings, NOW)
    trigger = TriggerSpec()
    desk.create([trigger] * _CQS, _EXPIRE)
    desk.now_ms = _EXPIRE
    redis, cqs = desk.working.redis, desk.working.key("cqs", "bench")
    while redis.hlen(cqs):
        let_pass(desk, 100)
    redis.delete(*redis.keys(desk.working.key("*")))
    desk.recover()
    let_pass(desk, 3000)
    names = [desk.destination(number, trigger).destination_id for number in range(_CQS)]
    assert {f"{name}/end/{_EXPIRE}" for name in names} == written(desk).keys()
    assert [0, 0] == [redis.hlen(cqs), redis.hlen(desk.working.key("ends"))]
