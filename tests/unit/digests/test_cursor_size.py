"""Cursors of long windows (OVER LAST) are bounded in bytes, and exact where a window has few ticks."""

from __future__ import annotations

import pytest

from grouping.digests.cursor import Cursor, after_gap, cursor_encoder, moved, window_base

_TICK_MS = 1_000
_LARGEST = 4 << 20
"""Bytes, far below Kafka's limit of a record."""


def _after(ticks: int, window: int, partitions: int) -> list[Cursor]:
    """Return the cursors after `ticks` ticks of a window of `window` ticks."""
    cursor, found = Cursor(), []
    for tick in range(1, ticks + 1):
        covered = {str(partition): 10**12 + tick for partition in range(partitions)}
        cursor = moved(cursor, tick * _TICK_MS, covered, tick, (), over_ms=window * _TICK_MS)
        found.append(cursor)
    return found


@pytest.mark.parametrize(("window", "partitions"), [(1440, 200), (300, 3000)])
def test_the_cursor_of_a_long_window_is_bounded(window: int, partitions: int) -> None:
    """The cursor fits a record, and the window begins at most a sixtieth early, never late."""
    over_ms = window * _TICK_MS
    for cursor in _after(window + 100, window, partitions)[window::40]:
        assert _LARGEST > len(cursor_encoder()(cursor))
        tick_ms = cursor.tick_ms + _TICK_MS
        base = window_base(cursor, tick_ms, over_ms)
        assert base is not None
        assert 0 <= tick_ms - over_ms - base.tick_ms <= over_ms // 60
        gap = after_gap(cursor, tick_ms, _TICK_MS, over_ms, cursor.covered)
        assert _LARGEST > len(cursor_encoder()(gap))
        assert tick_ms - over_ms == gap.window[0].tick_ms


def test_a_window_of_few_ticks_is_exact() -> None:
    """A window that a new CQ may have keeps the coverage of each tick, however many partitions there are."""
    for cursor in _after(125, 60, 4_000)[-60:]:
        kept = [one.tick_ms for one in cursor.window]
        assert list(range(cursor.tick_ms - 60 * _TICK_MS, cursor.tick_ms + 1, _TICK_MS)) == kept
    gap = after_gap(cursor, cursor.tick_ms + 1, _TICK_MS, 60 * _TICK_MS, cursor.covered)
    assert 60 == len(gap.window)
