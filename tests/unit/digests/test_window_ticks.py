"""Ticks of OVER LAST: after all others, within a share of the gateway's time, and of a bounded window."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gateway.testing import InputError, Stream, digests
from gateway.timers.window_ticks import WindowTicks


def test_windows_wait_for_all_others() -> None:
    """While others are due no window is served, however early its tick was; then they are, some at a time."""
    windows = WindowTicks(lambda: 0.0)
    windows.defer("s_1", ["w"])
    others, own = windows.divide("s_1", [("w", 1), ("a", 2)])
    assert ([("a", 2)], []) == (others, own)
    assert ([], [("w", 1)]) == windows.divide("s_1", [("w", 1)])
    windows.defer("s_1", [f"w{number}" for number in range(300)])
    _, own = windows.divide("s_1", [(f"w{number}", number) for number in range(300)])
    assert [(f"w{number}", number) for number in range(100)] == own


def test_windows_have_a_fifth_of_the_time() -> None:
    """After a lot that took a second, four seconds pass until the next."""
    now = [0.0]
    windows = WindowTicks(lambda: now[0])
    windows.defer("s_1", ["w"])
    with windows.lot():
        now[0] = 1.0
    assert ([], []) == windows.divide("s_1", [("w", 1)])
    now[0] = 5.0
    assert ([], [("w", 1)]) == windows.divide("s_1", [("w", 1)])


def test_a_window_waits_no_longer_once_it_is_not_due() -> None:
    """A destination that was served, or has ended, holds up the watermark of its stream no more."""
    windows = WindowTicks()
    windows.defer("s_1", ["w"])
    assert 1 == windows.waiting("s_1")
    windows.divide("s_1", [])
    assert 0 == windows.waiting("s_1")


def test_a_window_of_very_many_ticks_is_refused() -> None:
    """Each tick counts the whole window, so its ticks are bounded by a setting."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    query = "SELECT count(*) AS n FROM t EVERY '1 second' OVER LAST '{} seconds'"
    assert [] == digests(query.format(60), Stream("t (v INT)"), [], accepted_at=at)
    with pytest.raises(InputError) as refused:
        digests(query.format(61), Stream("t (v INT)"), [], accepted_at=at)
    assert ("quota-exceeded", "Each tick counts the whole window anew, here 61 ticks of it.") == (
        refused.value.code,
        refused.value.detail,
    )
