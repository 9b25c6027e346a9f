"""Ticks of EVERY without START: their anchors lie on hundredths of the interval, shortly behind the acceptance."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from gateway.model.membership import Membership
from gateway.model.records import Cq, Destination, TimedNote
from gateway.model.trigger_spec import TriggerSpec
from gateway.registry.grid import next_tick_of
from gateway.timers.schedule import digest_from, may_fire, tick_after, tick_behind
from grouping.model.trigger import TimerBased
from grouping.statements.cq_text import CqText


@given(every_s=st.integers(1, 10**7), born_ms=st.integers(0, 4 * 10**12), asked=st.integers(0, 60_000))
def test_ticks_count_from_shortly_behind_the_acceptance(every_s: int, born_ms: int, asked: int) -> None:
    """The first tick comes an interval, and up to a hundredth, after the first try; its digest has all from before."""
    every_ms = every_s * 1000
    trigger = TriggerSpec.of(TimerBased(timedelta(seconds=every_s)), None, born_ms - asked)
    destination = Destination("d_1", "s", "g_1", "s1", "[]", "shared", 0, trigger)
    membership = Membership(destination, 0, {",": 1}, 0, TimedNote(born_ms=born_ms, from_ms=born_ms))
    tick = tick_after(membership, born_ms)
    assert tick is not None
    assert (tick - (born_ms - asked)) % every_ms <= every_ms // 100
    assert born_ms < tick <= born_ms + every_ms + every_ms // 100
    assert asked or tick >= born_ms + every_ms
    assert born_ms == digest_from(membership, tick, None, 0)
    assert tick == digest_from(membership, tick + every_ms, None, tick)
    assert born_ms == digest_from(membership, born_ms + 1, None, 0), "a last digest may come before the anchor"
    cq = Cq("c", CqText.cut(""), "d_1", born_ms, 0)  # type: ignore[arg-type]
    assert tick == next_tick_of(cq, trigger, born_ms)


def test_what_is_owed_before_the_anchor_comes_with_the_first_tick() -> None:
    """An EXPIRE shortly after the acceptance, which leaves only paused CQs, waits for a regular tick."""
    trigger = TriggerSpec.of(TimerBased(timedelta(seconds=10)), None, 23_040)
    destination = Destination("d_1", "s", "g_1", "s1", "[]", "shared", 0, trigger)
    note = TimedNote(born_ms=23_040, from_ms=23_040, changed_ms=23_045, last_expire_ms=23_050)
    membership = Membership(destination, 0, {}, 1, note)
    assert 33_100 == tick_behind(membership, 23_050)
    assert may_fire(membership, 33_100) and not may_fire(membership, 43_100)


@given(every_s=st.integers(1, 10**7), at_ms=st.lists(st.integers(0, 4 * 10**12), min_size=200, max_size=200))
def test_many_cqs_share_ticks(every_s: int, at_ms: list[int]) -> None:
    """However many CQs without START are created, one interval has hardly more than a hundred phases."""
    every = TimerBased(timedelta(seconds=every_s))
    assert 112 >= len({TriggerSpec.of(every, None, each).phase_ms for each in at_ms})


def test_a_start_is_exact() -> None:
    """With START no tick is moved or passed over, also where one follows the acceptance at once."""
    trigger = TriggerSpec.of(TimerBased(timedelta(hours=1)), 7, 123_456)
    assert 7 == trigger.phase_ms
    destination = Destination("d_1", "s", "g_1", "s1", "[]", "shared", 0, trigger)
    membership = Membership(destination, 0, {"7,": 1}, 0, TimedNote(born_ms=3_600_000, from_ms=7))
    assert 3_600_007 == tick_after(membership, 3_600_000)
    assert 7 == digest_from(membership, 3_600_007, None, 0)
