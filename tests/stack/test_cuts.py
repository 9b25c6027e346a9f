"""A cut that a crash left open: the same digests are written once more, whatever has come in since."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.kafka import LogReader
from gateway.records import TriggerSpec
from gateway.timers.deliver import Delivery
from grouping.errors import OperationalError
from tests.benchmarks.ground import open_ground
from tests.benchmarks.timer_desk import Desk

_HOUR = 3_600_000
_NOW = 1_800_000_000_000
_CQS = 10


def _let_pass(desk: Desk, milliseconds: int) -> None:
    for _ in range(0, milliseconds, 100):
        desk.timers.step()
        desk.now_ms += 100


def _match(desk: Desk, stores: list[tuple[bytes, int]], time_ms: int) -> None:
    """Have one event for each store, and let time go on until the gateway has taken them in."""
    desk.match(stores, [time_ms] * len(stores))
    awaited = desk.timers.taken_in + 3
    while desk.timers.taken_in < awaited:
        _let_pass(desk, 100)


def _digests(desk: Desk) -> dict[str, Any]:
    reader = LogReader(desk.settings)
    partitions = dict.fromkeys(range(desk.settings.results.partitions), 0)
    found: dict[str, Any] = {}
    for message in reader.since(desk.settings.topic("results"), partitions):
        name = dict(message.headers() or [])["ce_id"].decode()
        assert name not in found, f"{name} was written twice"
        found[name] = json.loads(message.value() or b"")
    reader.close()
    return found


def _crash(*_: object) -> None:
    raise OperationalError("the gateway dies here")


def test_the_same_digests_after_a_crash_behind_the_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matches that came in after the cut are not in its digests, though their times are before the tick."""
    with open_ground() as ground:
        desk = Desk(ground.settings, _NOW)
        trigger = TriggerSpec(_HOUR, _NOW % _HOUR)
        desk.create([trigger] * _CQS)
        stores = desk.stores(range(_CQS), trigger)
        _match(desk, stores, _NOW + 1)
        desk.now_ms = _NOW + _HOUR
        with monkeypatch.context() as patched:
            patched.setattr(Delivery, "deliver", _crash)
            with pytest.raises(OperationalError, match="dies here"):
                _let_pass(desk, 60_000)
        desk.match(stores, [_NOW + 2] * _CQS)
        desk.now_ms += 5000
        desk.timers.recover()
        _let_pass(desk, 10_000)
        first = _digests(desk)
        assert {int(name.split("/")[1]) for name in first} == {_NOW + _HOUR}
        assert [digest["count"] for digest in first.values()] == [1] * _CQS
        desk.now_ms = _NOW + 2 * _HOUR
        _let_pass(desk, 10_000)
        both = _digests(desk)
        assert len(both) == 2 * _CQS
        assert {name: both[name] for name in first} == first
        assert sum(digest["count"] for digest in both.values()) == 2 * _CQS


def test_missed_ticks_become_one_digest() -> None:
    """After hours in which nobody fired, one digest comes: that of the last missed tick, from the last one before."""
    with open_ground() as ground:
        desk = Desk(ground.settings, _NOW)
        trigger = TriggerSpec(_HOUR, _NOW % _HOUR)
        desk.create([trigger] * _CQS)
        stores = desk.stores(range(_CQS), trigger)
        _match(desk, stores, _NOW + 1)
        desk.now_ms = _NOW + _HOUR
        _let_pass(desk, 5000)
        _match(desk, stores, desk.now_ms)
        desk.now_ms = _NOW + 5 * _HOUR + 60_000
        _match(desk, stores, desk.now_ms - 1)
        _let_pass(desk, 10_000)
        found = {name.split("/")[1]: digest for name, digest in _digests(desk).items()}
        assert sorted(found) == [str(_NOW + _HOUR), str(_NOW + 5 * _HOUR)]
        last = found[str(_NOW + 5 * _HOUR)]
        assert (last["from"], last["count"]) == (found[str(_NOW + _HOUR)]["to"], 1)
        desk.now_ms = _NOW + 6 * _HOUR
        _let_pass(desk, 5000)
        assert len(_digests(desk)) == 3 * _CQS
