"""Walks of a clock that jumps at random, while matches come and the gateway dies at any of its writes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from gateway.model.trigger_spec import TriggerSpec
from gateway.timers.deliver import Delivery
from grouping.model.errors import OperationalError
from tests.ground import Ground
from tests.stack.digests.desk import NOW, digests, let_pass
from tests.timer_desk import Desk

_JUMPS_MS = (1_500, 3_000, 9_000, 15_000, 40_000)
_PERIODS_MS = (500, 1_000, 3_000, 7_000)
_AGES_MS = (0, 0, -5_000, -300, 400, 2_500)
"""Record times of matches, from the present."""


class _Deaths:
    """The gateway's writes of cuts and digests; it may die before or behind each."""

    def __init__(self, patched: pytest.MonkeyPatch) -> None:
        self._left = 0
        for name in ("cut", "deliver"):
            patched.setattr(Delivery, name, self._deadly(getattr(Delivery, name)))

    def arm(self, left: int) -> None:
        """Have the gateway die at one of its next moments; 0 for never."""
        self._left = left

    def _deadly(self, write: Any) -> Any:
        def deadly(*args: object) -> object:
            self._pass()
            written = write(*args)
            self._pass()
            return written

        return deadly

    def _pass(self) -> None:
        self._left -= 1
        if self._left == 0:
            raise OperationalError("the gateway dies here")


def _go(desk: Desk, steps: Iterator[int]) -> None:
    """Take steps of these milliseconds; a gateway that dies is succeeded at once."""
    for milliseconds in steps:
        try:
            desk.timers.step()
            desk.look_after()
        except OperationalError:
            desk.recover()
        desk.now_ms += milliseconds


def _until_taken_in(desk: Desk) -> Iterator[int]:
    awaited = desk.timers.taken_in + 3
    while desk.timers.taken_in < awaited:
        yield 100


def test_a_successor_knows_which_ticks_have_fired_ahead(ground: Ground) -> None:
    """The clock goes ahead and back, the gateway dies, and Redis is lost: no tick fires twice."""
    desk, trigger = Desk(ground.settings, NOW), TriggerSpec(1_000, NOW % 1_000)
    desk.create([trigger])
    stores = desk.stores([0], trigger)

    def have_matches(seconds: int) -> None:
        for _ in range(seconds):
            desk.match(stores, [desk.now_ms])
            let_pass(desk, 1_000)

    have_matches(3)
    desk.now_ms = NOW + 40_000
    have_matches(5)
    desk.now_ms = NOW + 25_000  # between the past ticks and the future ones that have fired
    have_matches(2)
    keys = desk.working.connection.keys
    desk.working.connection.redis.delete(keys.progress, keys.ticks_read)
    desk.recover()
    have_matches(20)
    let_pass(desk, 3_000)
    assert sum(digest["count"] for digest in digests(desk).values()) == 30


@pytest.mark.parametrize("seed", range(3))
def test_each_match_is_in_one_digest(ground: Ground, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """No id is used twice, no match is lost or told twice, and each digest begins before its tick."""
    chance, deaths = random.Random(seed), _Deaths(monkeypatch)
    desk = Desk(ground.settings, NOW)
    triggers = [TriggerSpec(period, (NOW + chance.randrange(period)) % period) for period in _PERIODS_MS]
    desk.create(triggers)
    stores = [desk.stores([number], trigger)[0] for number, trigger in enumerate(triggers)]
    reported = 0
    for _ in range(chance.randrange(12, 24)):
        deaths.arm(chance.choice((0, 0, *range(1, 6))))
        if chance.random() < 0.4:
            desk.now_ms += chance.choice((-1, 1)) * chance.choice(_JUMPS_MS)
        elif chance.random() < 0.2:
            desk.recover()
        some = [store for store in stores if chance.random() < 0.6]
        desk.match(some, [desk.now_ms + chance.choice(_AGES_MS) for _ in some])
        reported += len(some)
        _go(desk, (chance.choice((20, 100, 400)) for _ in range(chance.randrange(1, 25))))
        if chance.random() < 0.3:  # the clock jumps right after a tick has fired
            _go(desk, (50 for _ in range(40) if not desk.timers.fired))
    deaths.arm(0)
    desk.now_ms = max(desk.now_ms, NOW) + 2 * max(_JUMPS_MS)
    _go(desk, _until_taken_in(desk))
    desk.now_ms += 2 * max(_PERIODS_MS)
    _go(desk, _until_taken_in(desk))
    _go(desk, iter([500] * 40))
    found = digests(desk).values()
    assert sum(digest["count"] for digest in found) == reported
    assert all(digest["from"] < digest["to"] for digest in found)
