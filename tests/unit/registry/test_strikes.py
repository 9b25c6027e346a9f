"""Strikes: who made too much that was quarantined makes nothing new, and what only that one uses is withheld."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.model.inventory import Inventory
from gateway.model.quota import Quota
from gateway.model.records import Cq, Destination, instant
from gateway.model.unit import CqKey, Unit
from gateway.registry.strikes import Strikes
from gateway.state.working_copy import WorkingCopy
from grouping.model.catalog import Stream
from grouping.model.errors import InputError
from grouping.model.group import GroupPlan, SelectList
from grouping.model.ids import CqName, GroupId, SelectId, StreamId, Subscriber
from grouping.settings.limit_settings import LimitSettings
from grouping.settings.settings import Settings
from grouping.statements.cq_text import CqText
from grouping.store.founders import Founder
from grouping.store.quarantine import SLOW, WITHHELD, Quarantine, share_of

_STREAM = StreamId("s_1")
_MALLORY = Subscriber("mallory")
_HOUR = 3_600_000
_MINUTE = 60_000


def _destination(group: str, select: str) -> Destination:
    return Destination(f"d_{group}_{select}", _STREAM, GroupId(group), SelectId(select), "[]", "shared", 0)  # type: ignore[arg-type]


def _put(inventory: Inventory, subscriber: str, group: str, select: str = "s_a") -> Unit:
    """Have a subscriber create a CQ; return the unit that did it."""
    unit, destination = Unit(inventory), _destination(group, select)
    if _STREAM not in inventory.streams:
        unit.sources.add_stream(Stream(_STREAM, "s", (), "t", "json", {"0": 0}, ""))
    key = CqKey(Subscriber(subscriber), CqName(f"{group} {select}"))
    unit.cqs[key] = None
    unit.memberships[destination.destination_id] = None
    cq = Cq(key.name, CqText.cut(""), destination.destination_id, 0, 0)
    unit.put(key, cq, destination, GroupPlan(GroupId(group), _STREAM, "", ()), SelectList(SelectId(select), ()))
    return unit


@pytest.fixture
def working() -> WorkingCopy:
    """A stream on which mallory has five groups of its own, one of them with a list of its own, and alice one."""
    working = WorkingCopy(Settings(limits=LimitSettings(quarantined_per_subscriber=2)))
    _put(working.inventory, "alice", "g_alice")
    for number in range(4):
        _put(working.inventory, _MALLORY, f"g_{number}")
    _put(working.inventory, _MALLORY, "g_alice", "s_mallory")
    return working


def _strikes(working: WorkingCopy, *shares: str, now_ms: int = 0) -> Strikes:
    strikes = Strikes(Settings(limits=LimitSettings(quarantined_per_subscriber=2)), working)
    strikes.count({_STREAM: _convicted(*shares)}, now_ms)
    return strikes


def _convicted(*shares: str) -> dict[str, Quarantine]:
    return {share: Quarantine.of_conviction(0, None, founder=_MALLORY) for share in shares}


def test_who_made_what() -> None:
    """The first subscriber that needs a group or a SELECT list founds it; it is noted once, and when another joins."""
    inventory = Inventory()
    assert {(_STREAM, "g_1"): Founder(_MALLORY), (_STREAM, "s_a"): Founder(_MALLORY)} == _put(
        inventory, "mallory", "g_1"
    ).dependencies.founders
    assert {(_STREAM, "s_b"): Founder(_MALLORY)} == _put(inventory, "mallory", "g_1", "s_b").dependencies.founders
    joined = _put(inventory, "alice", "g_1", "s_c").dependencies.founders
    alice = Subscriber("alice")
    assert {(_STREAM, "g_1"): Founder(_MALLORY, False, alice), (_STREAM, "s_c"): Founder(alice)} == joined
    among_others = _put(inventory, "bob", "g_1", "s_c").dependencies.founders
    assert Founder(_MALLORY, alone=False) == among_others[_STREAM, "g_1"]


def test_nobody_is_barred_below_the_limit(working: WorkingCopy) -> None:
    """One share of two makes no difference to anybody."""
    strikes = _strikes(working, "g_0")
    strikes.check(_MALLORY, _destination("g_new", "s_new"))
    assert {} == strikes.withheld(_STREAM)


@pytest.mark.parametrize("shares", [("g_0", "g_1"), ("g_gone", share_of(GroupId("g_alice"), SelectId("s_mallory")))])
def test_at_the_limit_all_that_is_one_subscribers_own_is_withheld(
    working: WorkingCopy, shares: tuple[str, ...]
) -> None:
    """Groups and SELECT lists of shares that are gone count as well; what another one uses is evaluated."""
    strikes = _strikes(working, *shares)
    held = strikes.withheld(_STREAM)
    assert {"g_0", "g_1", "g_2", "g_3", "s_mallory"} == held.keys()
    assert {Quarantine(0, _MINUTE + _HOUR, WITHHELD)} == set(held.values())
    _put(working.inventory, "bob", "g_2")
    assert "g_2" not in strikes.withheld(_STREAM)


def test_two_who_share_all_of_theirs_count_as_one(working: WorkingCopy) -> None:
    """Once as many as the limit were quarantined that they share: also when these are dropped, or a third one joins."""
    for number in range(4):
        _put(working.inventory, "trudy", f"g_{number}")
    strikes = _strikes(working, "g_0", "g_1")
    theirs = {"g_0", "g_1", "g_2", "g_3", "s_mallory"}
    assert theirs == strikes.withheld(_STREAM).keys()
    _put(working.inventory, "bob", "g_2")
    assert theirs - {"g_2"} == strikes.withheld(_STREAM).keys()
    for gone in ("g_0", "g_1"):
        del working.inventory.founders[_STREAM][gone]
    strikes.count({_STREAM: _convicted("g_0", "g_1")}, 0)
    assert {"g_3", "s_mallory"} == strikes.withheld(_STREAM).keys()


def test_who_shares_one_query_with_a_barred_subscriber_keeps_it(working: WorkingCopy) -> None:
    """Even if that one was quarantined: it takes as many as the limit, or a bar of its own."""
    for group in ("g_0", "g_2"):
        _put(working.inventory, "alice", group)
    strikes = _strikes(working, "g_0", "g_1")
    assert {"g_1", "g_3", "s_mallory"} == strikes.withheld(_STREAM).keys()
    by_alice = {share: Quarantine.of_conviction(0, None, founder=Subscriber("alice")) for share in ("g_4", "g_5")}
    strikes.count({_STREAM: _convicted("g_0", "g_1") | by_alice}, 0)
    assert {"g_0", "g_2"} <= strikes.withheld(_STREAM).keys()


@pytest.mark.parametrize(
    ("group", "select", "refused"),
    [("g_new", "s_a", True), ("g_alice", "s_new", True), ("g_alice", "s_a", False), ("g_2", "s_a", False)],
)
def test_what_is_new_is_refused(working: WorkingCopy, group: str, select: str, refused: bool) -> None:
    """To that subscriber alone; a CQ of a group and a SELECT list that there are brings nothing new."""
    strikes = _strikes(working, "g_0", "g_1")
    strikes.check(Subscriber("alice"), _destination(group, select))
    if not refused:
        strikes.check(_MALLORY, _destination(group, select))
        return
    with pytest.raises(InputError) as caught:
        strikes.check(_MALLORY, _destination(group, select))
    assert ("quota-exceeded", True) == (caught.value.code, instant(_MINUTE + _HOUR) in (caught.value.detail or ""))


def test_nothing_is_withheld_where_nobody_else_would_wait() -> None:
    """On a stream that the subscriber has to itself."""
    alone = WorkingCopy(Settings(limits=LimitSettings(quarantined_per_subscriber=2)))
    for number in range(4):
        _put(alone.inventory, _MALLORY, f"g_{number}")
    strikes = _strikes(alone, "g_0", "g_1")
    assert ({_MALLORY}, {}) == (strikes.barred.keys(), strikes.withheld(_STREAM))


@given(st.lists(st.integers(0, 3 * _HOUR), max_size=8), st.integers(1, 4), st.integers(0, 3 * _HOUR))
def test_strikes_end_by_time(since: list[int], limit: int, now_ms: int) -> None:
    """A subscriber is barred exactly while as many strikes as the limit are younger than an hour and their time."""
    working = WorkingCopy(Settings())
    working.inventory.quotas["mallory"] = Quota(quarantined=limit)
    strikes = Strikes(Settings(), working)
    states = {f"g_{number}": Quarantine.of_conviction(at, None, SLOW, _MALLORY) for number, at in enumerate(since)}
    strikes.count({_STREAM: states}, now_ms)
    ends = sorted((at + _MINUTE + _HOUR for at in since if at + _MINUTE + _HOUR > now_ms), reverse=True)
    assert ([ends[limit - 1]] if len(ends) >= limit else []) == [stay.until_ms for stay in strikes.barred.values()]


def test_an_operator_lifts_the_limit(working: WorkingCopy) -> None:
    """A quota of 0 bars nobody; what raises is no strike, nor is what nobody is known to have made."""
    working.inventory.quotas["mallory"] = Quota(quarantined=0)
    assert {} == _strikes(working, "g_0", "g_1").barred
    strikes = Strikes(Settings(limits=LimitSettings(quarantined_per_subscriber=1)), working)
    states = {"g_0": Quarantine.of_fault("it failed", 0, None), "g_1": Quarantine.of_conviction(0, None)}
    strikes.count({_STREAM: states}, 0)
    assert {} == strikes.barred
