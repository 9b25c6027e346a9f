"""A store of matches with many readers: they are armed some at a time, and each gets all its matches."""

from __future__ import annotations

import pytest

from gateway.model.trigger_spec import TriggerSpec
from gateway.timers import intake
from tests.ground import Ground
from tests.stack.digests.desk import HOUR, NOW, digests, let_pass, take_in
from tests.timer_desk import Desk

_READERS = 9


def test_readers_of_one_store_are_armed_some_at_a_time(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """No tick fires while some are still to be armed; each match is in one digest of each reader, also over a start."""
    monkeypatch.setattr(intake, "READERS_AT_ONCE", 2)
    desk = Desk(ground.settings, NOW)
    triggers = [TriggerSpec(HOUR, (NOW + 1000 * number) % HOUR) for number in range(_READERS)]
    desk.put([(f"c{number}", 1, trigger) for number, trigger in enumerate(triggers)])
    stores = desk.stores([1], triggers[0])
    take_in(desk, stores, NOW + 1)
    desk.now_ms = NOW + HOUR - 1000
    let_pass(desk, 15_000)
    assert _READERS == len(digests(desk))
    assert {1} == {body["count"] for body in digests(desk).values()}
    take_in(desk, stores, desk.now_ms)
    desk.recover()
    desk.now_ms = NOW + 2 * HOUR - 1000
    let_pass(desk, 15_000)
    assert 2 * _READERS == len(digests(desk))
    assert {1} == {body["count"] for body in digests(desk).values()}
