"""A cut left open by a crash, missed ticks, and positions restored from their checkpoints."""

from __future__ import annotations

import tempfile

import pytest
from prometheus_client import REGISTRY

from gateway.kafka import Topics
from gateway.model.trigger_spec import TriggerSpec
from gateway.timers import checkpoints
from gateway.timers.deliver import Delivery
from gateway.topics.source_watch import SourceWatch
from grouping.digests.rows import DigestRows
from grouping.model.errors import OperationalError
from tests.ground import Ground
from tests.kafka_client import wait_until
from tests.stack.digests.desk import HOUR, NOW, digests, let_pass, take_in, written
from tests.timer_desk import Desk

_CQS = 10
_HOURLY = TriggerSpec(HOUR, NOW % HOUR)
_STEP_MS = 100


def _crash(*_: object) -> None:
    raise OperationalError("the gateway dies here")


def test_the_same_digests_after_a_crash_behind_the_cut(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """Matches that came in after the cut are not in its digests, though their times are before the tick."""
    desk = Desk(ground.settings, NOW)
    desk.create([_HOURLY] * _CQS)
    stores = desk.stores(range(_CQS), _HOURLY)
    take_in(desk, stores, NOW + 1)
    desk.now_ms = NOW + HOUR
    with monkeypatch.context() as patched:
        patched.setattr(Delivery, "deliver", _crash)
        with pytest.raises(OperationalError, match="dies here"):
            let_pass(desk, 60_000)
    desk.match(stores, [NOW + 2] * _CQS)
    desk.now_ms += 5000
    desk.recover()
    let_pass(desk, 10_000)
    first = digests(desk)
    assert {int(name.split("/")[1]) for name in first} == {NOW + HOUR}
    assert [digest["count"] for digest in first.values()] == [1] * _CQS
    desk.now_ms = NOW + 2 * HOUR
    let_pass(desk, 10_000)
    both = digests(desk)
    assert len(both) == 2 * _CQS
    assert {name: both[name] for name in first} == first
    assert sum(digest["count"] for digest in both.values()) == 2 * _CQS


def test_missed_ticks_become_one_digest(ground: Ground) -> None:
    """After hours without a gateway, a single digest comes: the last missed tick's, from the last tick before."""
    desk = Desk(ground.settings, NOW)
    desk.create([_HOURLY] * _CQS)
    stores = desk.stores(range(_CQS), _HOURLY)
    take_in(desk, stores, NOW + 1)
    desk.now_ms = NOW + HOUR
    let_pass(desk, 5000)
    take_in(desk, stores, desk.now_ms)
    desk.now_ms = NOW + 5 * HOUR + 60_000
    take_in(desk, stores, desk.now_ms - 1)
    let_pass(desk, 10_000)
    found = {name.split("/")[1]: digest for name, digest in digests(desk).items()}
    assert sorted(found) == [str(NOW + HOUR), str(NOW + 5 * HOUR)]
    last = found[str(NOW + 5 * HOUR)]
    assert (last["from"], last["count"]) == (found[str(NOW + HOUR)]["to"], 1)
    desk.now_ms = NOW + 6 * HOUR
    let_pass(desk, 5000)
    assert len(digests(desk)) == 3 * _CQS


def test_digests_without_room_come_out_of_their_cut(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are tried again, also by the next gateway, and hold the same as they would have held at once."""
    desk = Desk(ground.settings, NOW)
    desk.create([_HOURLY] * _CQS)
    stores = desk.stores(range(_CQS), _HOURLY)
    take_in(desk, stores, NOW + 1)
    desk.now_ms = NOW + HOUR
    with monkeypatch.context() as patched:
        patched.setattr(DigestRows.__init__, "__kwdefaults__", {"in_memory": 1})
        patched.setattr(tempfile, "tempdir", "/no/such/folder")
        let_pass(desk, 5000)
        assert desk.timers.waiting == {"s_bench": _CQS}
        take_in(desk, stores, NOW + 2)
        desk.recover()
        let_pass(desk, 5000)
        assert desk.timers.waiting == {"s_bench": _CQS}
        assert not digests(desk)
    let_pass(desk, 20_000)
    first = digests(desk)
    assert {int(name.split("/")[1]) for name in first} == {NOW + HOUR}
    assert [digest["count"] for digest in first.values()] == [1] * _CQS
    assert not desk.timers.waiting
    desk.now_ms = NOW + 2 * HOUR
    let_pass(desk, 10_000)
    both = digests(desk)
    assert {name: both[name] for name in first} == first
    assert sum(digest["count"] for digest in both.values()) == 2 * _CQS


def test_an_expire_waits_for_a_partition_that_was_added(ground: Ground) -> None:
    """Events published there earlier may not be evaluated yet, though the partition is not known here."""
    desk = Desk(ground.settings, NOW)
    desk.create([_HOURLY], expire_ms=NOW + 30_000)
    let_pass(desk, 2000)
    topics, source = Topics(ground.settings), f"{ground.settings.prefix}t"
    topics.grow(source, 3)
    wait_until(lambda: topics.partitions(source) == 3, "partition that events can be published to")
    desk.publish(partition=2)
    desk.now_ms = NOW + 31_000
    let_pass(desk, 3000)
    assert not written(desk)
    SourceWatch(ground.settings, desk.working, topics).step(desk.now_ms)
    assert len(desk.working.inventory.streams["s_bench"].start_offsets) == 3
    let_pass(desk, 3000)
    assert not written(desk)
    desk.evaluate(0, {"2": 1})
    let_pass(desk, 3000)
    assert [name.split("/")[1] for name in written(desk)] == ["end"]


@pytest.mark.parametrize("restarted", [False, True])
def test_a_clock_that_is_set_ahead_and_turned_back(ground: Ground, restarted: bool) -> None:
    """Ticks fire by the present clock; a tick that fired ahead of its time does not fire again, and nothing is lost."""
    desk = Desk(ground.settings, NOW)
    desk.create([_HOURLY] * _CQS)
    stores = desk.stores(range(_CQS), _HOURLY)
    take_in(desk, stores, NOW + 1)
    desk.now_ms = NOW + HOUR
    let_pass(desk, 5000)
    take_in(desk, stores, desk.now_ms)
    desk.now_ms = NOW + 4 * HOUR + 60_000
    let_pass(desk, 10_000)
    desk.now_ms = NOW + HOUR + 60_000
    if restarted:
        desk.recover()
    take_in(desk, stores, desk.now_ms)
    for hours in (2, 3, 4, 5):
        desk.now_ms = NOW + hours * HOUR
        let_pass(desk, 5000)
        take_in(desk, stores, desk.now_ms)
    found = digests(desk)
    assert {int(name.split("/")[1]) for name in found} == {NOW + hours * HOUR for hours in (1, 2, 3, 4, 5)}
    assert sum(digest["count"] for digest in found.values()) == 6 * _CQS
    assert all(digest["from"] < digest["to"] for digest in found.values())


def test_a_clock_that_is_turned_back_between_a_digest_and_the_end_of_its_tick(ground: Ground) -> None:
    """The tick has fired, whatever fires before the clock is there again: its digest is not written twice."""
    desk = Desk(ground.settings, NOW)
    each_second = TriggerSpec(1000, NOW % 1000)
    desk.create([each_second])
    stores = desk.stores([0], each_second)
    take_in(desk, stores, NOW + 1)
    let_pass(desk, 2000)
    desk.now_ms = NOW + 22_000
    take_in(desk, stores, NOW + 2)
    let_pass(desk, 500)
    desk.match(stores, [desk.now_ms])
    while not desk.timers.fired:
        desk.now_ms += _STEP_MS
        desk.timers.step()
    (ahead,) = desk.timers.fired
    desk.now_ms = NOW + 3_000
    let_pass(desk, 1500)
    desk.now_ms = ahead + 5_000
    take_in(desk, stores, desk.now_ms)
    let_pass(desk, 1500)
    desk.now_ms = NOW + 6_000
    while desk.now_ms < ahead + 8_000:
        take_in(desk, stores, desk.now_ms)
        let_pass(desk, 500)
    found = [name for name in digests(desk) if name.split("/")[1] == str(ahead)]
    assert len(found) == 1


@pytest.mark.parametrize("wiped", [False, True])
def test_a_start_reads_the_log_behind_the_checkpoints_only(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, wiped: bool
) -> None:
    """Waiting matches come back from the checkpoints and the log's tail, each once; Redis is not needed."""
    monkeypatch.setattr(checkpoints, "TAIL_BYTES", 1)
    desk = Desk(ground.settings, NOW)
    desk.create([_HOURLY] * _CQS)
    stores = desk.stores(range(_CQS), _HOURLY)
    for _ in range(40):
        take_in(desk, stores[:5], NOW + 1)
    monkeypatch.setattr(checkpoints, "TAIL_BYTES", 1 << 30)
    take_in(desk, stores, NOW + 2)
    if wiped:
        desk.working.connection.redis.delete(
            *desk.working.connection.redis.keys(desk.working.connection.keys.everything)
        )
    desk.recover()
    topic = desk.settings.topics.pending
    ends = desk.topics.offsets.ends([(topic, number) for number in desk.timers.reached])
    left = sum(ends[topic, number] - reached for number, reached in desk.timers.reached.items())
    assert 0 < left < sum(ends.values()) / 2
    let_pass(desk, 2000)
    desk.now_ms = NOW + HOUR
    let_pass(desk, 2000)
    assert sorted(digest["count"] for digest in digests(desk).values()) == [1] * 5 + [41] * 5


def test_a_destination_with_nothing_new_is_not_looked_at(ground: Ground) -> None:
    """Only destinations with waiting matches are armed; ticks of the others cost nothing, whatever their number."""
    desk = Desk(ground.settings, NOW)
    desk.create([_HOURLY] * _CQS)
    armed = desk.working.connection.keys.timers("s_bench")
    take_in(desk, desk.stores([3], _HOURLY), NOW + 1)
    assert desk.working.connection.redis.zcard(armed) == 1
    desk.now_ms = NOW + HOUR
    let_pass(desk, 2000)
    assert len(digests(desk)) == 1
    assert desk.working.connection.redis.zcard(armed) == 0


def test_a_tick_waits_for_the_evaluator_so_long_and_no_longer(ground: Ground) -> None:
    """Matches published before a tick are in its digest if evaluated in time; late ones count in metrics."""

    def late() -> tuple[float, float]:
        ticks, matches = (REGISTRY.get_sample_value(f"cq_late_{what}_total") for what in ("ticks", "matches"))
        assert ticks is not None
        assert matches is not None
        return ticks, matches

    desk = Desk(ground.settings, NOW)
    desk.create([_HOURLY])
    stores = desk.stores([0], _HOURLY)
    desk.publish()
    take_in(desk, stores, NOW + 1)
    desk.publish()
    desk.now_ms = NOW + HOUR
    ticks, matches = late()
    wait_ms = round(desk.settings.timers.wait_seconds * 1000)
    let_pass(desk, wait_ms - 2000)
    assert not digests(desk)
    let_pass(desk, 4000)
    assert [digest["count"] for digest in digests(desk).values()] == [1]
    assert late()[0] > ticks
    assert late()[1] == matches
    take_in(desk, stores, NOW + 2)
    desk.now_ms = NOW + 2 * HOUR
    let_pass(desk, 2000)
    assert [digest["count"] for digest in digests(desk).values()] == [1, 1]
    assert late()[1] == matches + 1


@pytest.mark.parametrize(
    "moves",
    [
        [(20, 8), (0, 3), (3, 3), (20, 3), (0, 24)],
        [(20, 4), (-3, 4), (20, 2), (0, 24)],
        [(-20, 6), (3, 4), (0, 2), (20, 4), (-20, 4), (0, 24)],
        [(20, 3), (0, 3), (20, 8), (0, 1), (-20, 8), (0, 30)],
        [(20, 3), (0, 3), (20, 8), (0, 1), (-20, 3), (0, 30)],
    ],
)
def test_a_clock_that_jumps_again_and_again(ground: Ground, moves: list[tuple[int, int]]) -> None:
    """For all moves of the clock, no digest is written twice, and each match is in exactly one.

    Each move is by how many seconds the clock is off, and for how many.
    """
    desk = Desk(ground.settings, NOW)
    each_second = TriggerSpec(1000, NOW % 1000)
    desk.create([each_second] * 2)
    stores, found, off_ms = desk.stores(range(2), each_second), 0, 0
    for seconds, lasting in moves:
        desk.now_ms += seconds * 1000 - off_ms
        off_ms = seconds * 1000
        until_ms = desk.now_ms + lasting * 1000
        while desk.now_ms < until_ms:
            take_in(desk, stores, desk.now_ms - off_ms)
            found += len(stores)
            let_pass(desk, 500)
    let_pass(desk, 3_000)
    assert found == sum(digest["count"] for digest in digests(desk).values())
