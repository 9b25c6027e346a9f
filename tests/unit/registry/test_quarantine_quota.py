"""The quota of quarantines: a subscriber of whom too many work units were quarantined makes no new ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.model.inventory import Inventory
from gateway.model.quota import Quota
from gateway.model.records import Cq, Destination, instant
from gateway.model.unit import CqKey, Unit
from gateway.registry.quarantine_quota import QuarantineQuota
from gateway.state.working_copy import WorkingCopy
from grouping.model.catalog import Stream
from grouping.model.errors import InputError
from grouping.model.ids import CqName, GroupId, SelectId, StreamId, Subscriber
from grouping.plan.group import GroupPlan, SelectList
from grouping.settings.limit_settings import LimitSettings
from grouping.settings.settings import Settings
from grouping.statements.cq_text import CqText
from grouping.store.quarantine import Quarantine
from grouping.store.work_units import SLOW

_STREAM = StreamId("s_1")
_MALLORY = Subscriber("mallory")
_HOUR = 3_600_000
_MINUTE = 60_000
_NEW = ("g_new", "s_new")


def _destination(group: str, select: str) -> Destination:
    return Destination(f"d_{group}_{select}", _STREAM, GroupId(group), SelectId(select), "[]", "shared", 0)  # type: ignore[arg-type]


def _put(inventory: Inventory, subscriber: str, group: str, select: str = "s_a") -> Unit:
    """Have a subscriber create a CQ; return the unit of work."""
    unit, destination = Unit(inventory), _destination(group, select)
    if _STREAM not in inventory.streams:
        unit.sources.add_stream(Stream(_STREAM, "s", (), "t", "json", {"0": 0}, ""))
    key = CqKey(Subscriber(subscriber), CqName(f"{group} {select}"))
    unit.cqs[key] = None
    unit.memberships[destination.destination_id] = None
    cq = Cq(key.name, CqText.cut(""), destination.destination_id, 0, 0)
    unit.put(key, cq, destination, GroupPlan(GroupId(group), _STREAM, "", ()), SelectList(SelectId(select), ()))
    return unit


def _quota(count: int, now_ms: int = 0) -> tuple[QuarantineQuota, WorkingCopy]:
    """Return the quota of two, with a stream on which alice has a group, and mallory `count` quarantines."""
    settings = Settings(limits=LimitSettings(quarantined_per_subscriber=2))
    working = WorkingCopy(settings)
    _put(working.inventory, "alice", "g_alice")
    quota = QuarantineQuota(settings, working)
    quota.count([Quarantine.begun(0, None, SLOW, _MALLORY)] * count, now_ms)
    return quota, working


def test_the_sole_user_of_a_unit() -> None:
    """The first subscriber of a group or a SELECT list is its sole user, until a second subscriber comes."""
    inventory = Inventory()
    first = _put(inventory, "mallory", "g_1")
    assert {(_STREAM, "g_1"): _MALLORY, (_STREAM, "s_a"): _MALLORY} == first.dependencies.sole_users
    assert {(_STREAM, "s_b"): _MALLORY} == _put(inventory, "mallory", "g_1", "s_b").dependencies.sole_users
    joined = _put(inventory, "alice", "g_1", "s_c").dependencies.sole_users
    assert {(_STREAM, "g_1"): "", (_STREAM, "s_c"): "alice"} == joined
    assert {} == _put(inventory, "mallory", "g_1", "s_b").dependencies.sole_users


def test_below_the_quota_nothing_is_refused() -> None:
    """A single quarantine below a quota of two makes no difference."""
    quota, _ = _quota(1)
    quota.check(_MALLORY, _destination(*_NEW))


@pytest.mark.parametrize(
    ("group", "select", "refused"),
    [("g_new", "s_a", True), ("g_alice", "s_new", True), ("g_alice", "s_a", False)],
)
def test_at_the_quota_new_units_are_refused(group: str, select: str, refused: bool) -> None:
    """New units are refused to this subscriber alone; a CQ of an existing group and SELECT list makes no new unit."""
    quota, _ = _quota(2)
    quota.check(Subscriber("alice"), _destination(group, select))
    if not refused:
        quota.check(_MALLORY, _destination(group, select))
        return
    with pytest.raises(InputError) as caught:
        quota.check(_MALLORY, _destination(group, select))
    assert ("quota-exceeded", True) == (caught.value.code, instant(_MINUTE + _HOUR) in (caught.value.detail or ""))


@given(st.lists(st.integers(0, 3 * _HOUR), max_size=8), st.integers(0, 4), st.integers(0, 3 * _HOUR))
def test_a_quarantine_counts_for_an_hour_after_its_end(begins: list[int], limit: int, now_ms: int) -> None:
    """A subscriber is refused exactly while as many quarantines as the limit count; at no limit it never is."""
    quota, working = _quota(0)
    working.inventory.quotas[_MALLORY] = Quota(quarantined=limit)
    quota.count([Quarantine.begun(begin, None, SLOW, _MALLORY) for begin in begins], now_ms)
    counted = [begin for begin in begins if now_ms < begin + _MINUTE + _HOUR]
    try:
        quota.check(_MALLORY, _destination(*_NEW))
    except InputError:
        assert limit and len(counted) >= limit
    else:
        assert not limit or len(counted) < limit


def test_quarantines_of_shared_units_and_faults_count_for_nobody() -> None:
    """A unit with several users is no subscriber's own, and a unit that only raises delays nobody."""
    quota, _ = _quota(0)
    quota.count([Quarantine.begun(0, None), Quarantine.of_fault("it failed", 0, None)] * 5, 0)
    quota.check(_MALLORY, _destination(*_NEW))
