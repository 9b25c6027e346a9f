"""Pending matches when destinations end, are taken up again, or are left to paused CQs."""

from __future__ import annotations

from gateway.model.trigger_spec import TriggerSpec
from tests.ground import Ground
from tests.stack.digests.desk import HOUR, NOW, digests, let_pass, take_in, written
from tests.timer_desk import Desk

_HOURLY = TriggerSpec(HOUR, NOW % HOUR)
_DAILY = TriggerSpec(24 * HOUR, NOW % (24 * HOUR))
_EXPIRE = NOW + HOUR // 2


def _counts(found: dict[str, dict[str, int]]) -> dict[tuple[str, int], int]:
    """Return the matches of digests by destination and minutes from the beginning."""
    return {
        (name.split("/")[0], (int(name.split("/")[1]) - NOW) // 60_000): body["count"] for name, body in found.items()
    }


def test_timer_classes_that_end_together_each_get_their_last_digest(ground: Ground) -> None:
    """Several destinations read the same store: matches delivered to one are still there for the others."""
    desk = Desk(ground.settings, NOW)
    desk.put([("hourly", 1, _HOURLY), ("daily", 1, _DAILY)], _EXPIRE)
    take_in(desk, desk.stores([1], _HOURLY), NOW + 1)
    desk.now_ms = _EXPIRE
    let_pass(desk, 3000)
    ids = [desk.destination(1, trigger).destination_id for trigger in (_HOURLY, _DAILY)]
    assert _counts(digests(desk)) == {(name, 30): 1 for name in ids}
    assert {f"{name}/end/{_EXPIRE}" for name in ids} <= written(desk).keys()
    assert desk.working.connection.redis.hlen(desk.working.connection.keys.ends) == 0


def test_a_life_begun_before_the_last_digest_of_the_one_before(ground: Ground) -> None:
    """Each incarnation of a destination gets its own matches: the one before at EXPIRE, the new one at its ticks."""
    desk = Desk(ground.settings, NOW)
    desk.put([("first", 1, _HOURLY)], _EXPIRE)
    stores = desk.stores([1], _HOURLY)
    take_in(desk, stores, NOW + 1)
    pins = desk.working.connection.keys.pins("s_bench")
    desk.working.connection.redis.hset(pins, "7", f"{desk.epoch}:{desk.working.inventory.versions['s_bench']}")
    desk.now_ms = _EXPIRE
    let_pass(desk, 2000)
    assert not written(desk)
    desk.put([("second", 1, _HOURLY)])
    take_in(desk, stores, desk.now_ms)
    desk.now_ms = NOW + HOUR
    let_pass(desk, 2000)
    desk.working.connection.redis.delete(pins)
    let_pass(desk, 2000)
    desk.now_ms = NOW + 2 * HOUR
    let_pass(desk, 2000)
    name = desk.destination(1, _HOURLY).destination_id
    assert list(_counts(digests(desk)).items()) == [((name, 30), 1), ((name, 120), 1)]
    assert list(written(desk))[1] == f"{name}/end/{_EXPIRE}"


def test_lives_that_end_before_the_last_digest_of_the_first(ground: Ground) -> None:
    """Each of them gets its own matches in a last digest, then its end, in the order of the lives."""
    desk = Desk(ground.settings, NOW)
    stores, pins = desk.stores([1], _HOURLY), desk.working.connection.keys.pins("s_bench")
    ended = []
    for incarnation in range(3):
        ended.append(desk.now_ms + 60_000)
        desk.put([(f"life{incarnation}", 1, _HOURLY)], ended[-1])
        take_in(desk, stores * (incarnation + 1), desk.now_ms)
        if not incarnation:
            desk.working.connection.redis.hset(pins, "7", f"{desk.epoch}:{desk.working.inventory.versions['s_bench']}")
        desk.now_ms = ended[-1]
        let_pass(desk, 2000)
    assert not written(desk)
    desk.working.connection.redis.delete(pins)
    let_pass(desk, 5000)
    name, found = desk.destination(1, _HOURLY).destination_id, written(desk)
    assert [one for at in ended for one in (f"{name}/{at}/1", f"{name}/end/{at}")] == list(found)
    assert [1, 2, 3] == [found[f"{name}/{at}/1"]["count"] for at in ended]
    assert desk.working.connection.redis.hlen(desk.working.connection.keys.ends) == 0


def test_who_leaves_to_others_is_told_after_what_was_pending(ground: Ground) -> None:
    """With a sharer left, pending matches come at the tick after EXPIRE, then `cq.leave`; at DROP it is at once."""
    desk = Desk(ground.settings, NOW)
    desk.put([("brief", 1, _HOURLY)], _EXPIRE)
    desk.put([("dropped", 1, _HOURLY), ("lasting", 1, _HOURLY)])
    take_in(desk, desk.stores([1], _HOURLY), NOW + 1)
    desk.drop("dropped")
    let_pass(desk, 2000)
    assert ["dropped"] == [body["reason"] for body in written(desk).values()]
    desk.now_ms = _EXPIRE
    let_pass(desk, 2000)
    assert 1 == len(written(desk)), "what is pending is still to come"
    desk.now_ms = NOW + HOUR
    let_pass(desk, 2000)
    name, [_, digest, leave] = desk.destination(1, _HOURLY).destination_id, written(desk)
    assert f"{name}/{NOW + HOUR}/1" == digest
    assert {"ended_at", "reason", "member"} == set(written(desk)[leave])
    assert leave == f"{name}/leave/{written(desk)[leave]['member']}"
    assert "expired" == written(desk)[leave]["reason"]


def test_what_an_expired_sharer_saw_is_not_held_up_by_a_pause(ground: Ground) -> None:
    """When EXPIRE leaves paused CQs only, pending matches come at the next tick; later ones wait for RESUME again."""
    desk = Desk(ground.settings, NOW)
    desk.put([("brief", 1, _HOURLY)], _EXPIRE)
    desk.put([("paused", 1, _HOURLY)])
    desk.pause("paused", paused=True)
    stores = desk.stores([1], _HOURLY)
    take_in(desk, stores, NOW + 1)
    desk.now_ms = _EXPIRE
    let_pass(desk, 2000)
    assert not written(desk), "the destination lives, so that its last digest is not due"
    desk.now_ms = NOW + HOUR
    let_pass(desk, 2000)
    name = desk.destination(1, _HOURLY).destination_id
    assert _counts(digests(desk)) == {(name, 60): 1}
    desk.pause("paused", paused=False)
    take_in(desk, stores, desk.now_ms)
    desk.pause("paused", paused=True)
    desk.now_ms = NOW + 2 * HOUR
    let_pass(desk, 2000)
    assert _counts(digests(desk)) == {(name, 60): 1}
    desk.pause("paused", paused=False)
    desk.now_ms = NOW + 3 * HOUR
    let_pass(desk, 2000)
    assert _counts(digests(desk)) == {(name, 60): 1, (name, 180): 1}


def test_a_history_is_no_longer_than_what_is_pending(ground: Ground) -> None:
    """PAUSE and RESUME lengthen the history of a destination until a tick has passed, and no further."""
    desk = Desk(ground.settings, NOW)
    desk.put([("often", 1, _HOURLY)])
    stores = desk.stores([1], _HOURLY)
    take_in(desk, stores, NOW + 1)
    for _ in range(20):
        desk.pause("often", paused=True)
        take_in(desk, stores, NOW + 2)
        desk.pause("often", paused=False)
    take_in(desk, stores, NOW + 3)
    name = desk.destination(1, _HOURLY).destination_id
    assert len(desk.visibility(name)) == 41
    desk.now_ms = NOW + HOUR
    let_pass(desk, 2000)
    assert _counts(digests(desk)) == {(name, 60): 2}
    assert len(desk.visibility(name)) == 1
    desk.working.connection.redis.delete(*desk.working.connection.redis.keys(desk.working.connection.keys.everything))
    desk.recover()
    assert len(desk.visibility(name)) == 1
