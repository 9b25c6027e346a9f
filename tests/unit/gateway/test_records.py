"""The gateway's memory: windows of record times, members of a destination, triggers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from gateway.model.membership import Membership, union
from gateway.model.records import Cq, Destination, instant, millis
from gateway.model.trigger_spec import TriggerSpec
from gateway.registry.grid import next_tick, previous_tick
from grouping.digests.cursor import Window
from grouping.model.trigger import CronBased, TimerBased
from grouping.statements.cq_text import CqText

_times = st.integers(-5, 20)


@st.composite
def _windows(draw: st.DrawFn) -> Window:
    start = draw(st.none() | _times)
    expire = draw(st.none() | st.integers((-5 if start is None else start) + 1, 25))
    return (start, expire)


def _within(at: int, window: Window) -> bool:
    start, expire = window
    return (start is None or at >= start) and (expire is None or at < expire)


@given(st.lists(_windows(), max_size=6))
def test_union_holds_the_same_times_in_disjoint_windows(windows: list[Window]) -> None:
    """A time is in exactly one window of the union when in any window, and in none otherwise."""
    merged = union(windows)
    for at in range(-7, 28):
        assert int(any(_within(at, window) for window in windows)) == sum(_within(at, window) for window in merged)


def _cq(window: Window, paused: bool) -> Cq:
    return Cq("a", CqText.cut(""), "d_1", 0, 0, *window, paused)


@given(st.lists(st.tuples(_windows(), st.booleans()), max_size=8), st.randoms(use_true_random=False))
def test_members_come_and_go(members: list[tuple[Window, bool]], random: object) -> None:
    """A destination has as many members as joined and did not leave, and sees all that its unpaused members see."""
    membership = Membership(Destination("d_1", "s_1", "g_1", "s1", "[]", "shared", 0), 0)
    cqs = [_cq(window, paused) for window, paused in members]
    for cq in cqs:
        membership.count(cq, 1)
    left = list(cqs)
    random.shuffle(left)  # type: ignore[attr-defined]  # hypothesis gives a Random
    while left:
        assert len(left) == membership.members
        assert union([cq.window for cq in left if not cq.paused]) == membership.seen
        membership.count(left.pop(), -1)
    assert 0 == membership.members
    assert [] == membership.seen


@given(st.integers(1, 10**6), st.integers(0, 10**13), st.integers(0, 10**13))
def test_ticks_are_on_the_grid(every_s: int, start_ms: int, after_ms: int) -> None:
    """The next tick is START + k × EVERY with k ≥ 1, later than the instant, and the first such."""
    every_ms = every_s * 1000
    spec = TriggerSpec.of(TimerBased(timedelta(seconds=every_s)), start_ms, 0)
    tick = next_tick(spec, after_ms, start_ms)
    assert tick is not None
    assert 0 == (tick - start_ms) % every_ms
    assert tick > max(after_ms, start_ms) >= tick - every_ms


def test_cron_keeps_its_local_time_across_daylight_saving() -> None:
    """Eight o'clock in Madrid is 07:00 UTC in winter and 06:00 in summer."""
    spec = TriggerSpec.of(CronBased("0 8 * * *", "Europe/Madrid"), None, 0)
    found = []
    at = round(datetime(2026, 3, 27, 12, tzinfo=UTC).timestamp() * 1000)
    for _ in range(3):
        at = next_tick(spec, at) or 0
        found.append(datetime.fromtimestamp(at / 1000, UTC).hour)
    assert [7, 6, 6] == found


def test_the_last_instant_is_an_instant() -> None:
    """A fraction of a millisecond leads to no instant of the year 10000, and no tick is asked for beyond."""
    last_ms = millis(datetime(9999, 12, 31, 23, 59, 59, 999_900, UTC))
    assert "9999-12-31T23:59:59.999Z" == instant(last_ms)
    spec = TriggerSpec.of(CronBased("0 8 * * *", "UTC"), None, 0)
    assert [None, None] == [find(spec, last_ms + 1) for find in (next_tick, previous_tick)]
