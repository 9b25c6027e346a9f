"""Waiting groups are merged on the log, without any change to the digests."""

from __future__ import annotations

import pytest

from gateway.model.trigger_spec import TriggerSpec
from gateway.timers import rolling
from tests.aggregate_desk import VENUES, GroupDesk
from tests.ground import Ground
from tests.stack.digests.desk import HOUR, NOW, digests, let_pass, take_in

_SYMBOLS = 3
_VOLUME = 7
_HOURLY, _TWO_HOURLY = (TriggerSpec(every, NOW % HOUR) for every in (HOUR, 2 * HOUR))


class _Desk(GroupDesk):
    symbols = _SYMBOLS
    half = _VOLUME
    pane = (HOUR, NOW % HOUR)


def _have_rolled(desk: _Desk) -> None:
    """Let the gateway look at its log often enough that records are put together, and the log cut."""
    for _ in range(3):
        desk.now_ms += 30_000
        let_pass(desk, 1000)


def _rolled(desk: _Desk) -> int:
    """Return how many records of the log are gone, since others stand for them."""
    topic = desk.settings.topics.pending
    return sum(desk.topics.offsets.beginnings([(topic, number) for number in desk.timers.reached]).values())


def test_waiting_groups_are_put_together(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is cut while no tick has come; all that was counted is in each digest once, also by another Redis."""
    monkeypatch.setattr(rolling, "LEAST_BYTES", 1)
    monkeypatch.setattr(rolling, "REST", 0)
    desk = _Desk(ground.settings, NOW)
    triggers = [_HOURLY] * _SYMBOLS + [_TWO_HOURLY] * _SYMBOLS
    desk.create(triggers)
    stores = desk.stores(range(_SYMBOLS), _HOURLY)
    for _ in range(3):
        for _ in range(4):
            take_in(desk, stores, NOW + 1)
        _have_rolled(desk)
    assert _rolled(desk) > 0
    connection = desk.working.connection
    connection.redis.delete(*connection.redis.keys(connection.keys.everything))
    desk.recover()
    let_pass(desk, 2000)
    take_in(desk, stores, NOW + HOUR)
    desk.now_ms = NOW + HOUR
    let_pass(desk, 2000)
    first = {name: digest["rows"] for name, digest in digests(desk).items()}
    assert len(first) == _SYMBOLS
    assert list(first.values()) == [[{"venue": f"V{at}", "total": 12 * _VOLUME} for at in range(VENUES)]] * _SYMBOLS
    desk.now_ms = NOW + 2 * HOUR
    let_pass(desk, 10_000)
    then = {name: digest["rows"] for name, digest in digests(desk).items() if name not in first}
    totals = sorted(row["total"] for rows in then.values() for row in rows)
    assert totals == [_VOLUME] * _SYMBOLS * VENUES + [13 * _VOLUME] * _SYMBOLS * VENUES
