"""Ticks of OVER LAST: after all others, within a share of the gateway's time, and of a bounded window."""

from __future__ import annotations

from array import array
from datetime import UTC, datetime, timedelta

import pytest

from gateway.evaluation.one_entry import VERSION
from gateway.evaluation.task import evaluated
from gateway.model.membership import Membership
from gateway.testing import InputError, Record, Stream, digests
from gateway.testing.query import checked
from gateway.testing.records import placed
from gateway.timers.schedule import MissedTicks, has_gap
from gateway.timers.window_ticks import WindowTicks
from grouping.digests.answers import AggregatedMatches
from grouping.digests.cursor import Cursor, DigestCoverage, after_gap, moved
from grouping.digests.gather import DigestQuestion
from grouping.digests.match_places import MatchPlaces
from grouping.digests.pending_log import PendingLog
from spark_jobs.engine.operators.aggregate.aggregate_digests import AggregateRequest, aggregate_digests
from tests.unit.digests.aggregate_log import START_MS, destination_of


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
    """A destination that was served, or has ended, holds up the progress of its stream no more."""
    windows = WindowTicks()
    windows.defer("s_1", ["w"])
    assert 1 == windows.waiting("s_1")
    windows.divide("s_1", [])
    assert 0 == windows.waiting("s_1")


def test_a_window_of_very_many_ticks_is_refused() -> None:
    """Each tick aggregates the whole window, so a setting limits the ticks of a window."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    query = "SELECT count(*) AS n FROM t EVERY '1 second' OVER LAST '{} seconds'"
    assert [] == digests(query.format(60), Stream("t (v INT)"), [], accepted_at=at)
    with pytest.raises(InputError) as refused:
        digests(query.format(61), Stream("t (v INT)"), [], accepted_at=at)
    assert ("quota-exceeded", "The window has 61 ticks; each tick aggregates the whole window.") == (
        refused.value.code,
        refused.value.detail,
    )


def test_the_last_digest_of_a_window_keeps_what_waits() -> None:
    """A match whose record time lies ahead of the end waits; the last window begins where one at the end does."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    stream = Stream("t (v INT)")
    asked = checked("SELECT count(*) AS n FROM t EVERY '1 second' OVER LAST '2 seconds'", stream, at)
    rows = [Record({"v": second}, time=at + timedelta(seconds=second)) for second in (1, 5, 6, 30)]
    [task] = evaluated(asked, placed(rows, stream, at), "p_" + "0" * 24, "pending")
    [body] = task.pending
    log = PendingLog(lambda *_: iter([(0, body)]))
    window = tuple(DigestCoverage(START_MS + 1000 * tick, {"0": end}) for tick, end in ((2, 1), (6, 2)))
    cursor = Cursor(START_MS + 6000, {"0": 2}, 0, (), (), window)
    places, always = MatchPlaces(0, array("q", [0])), ((*VERSION, [(None, None)]),)
    question = DigestQuestion(bytes(12), places, cursor, always, 1 << 62, None)
    home = destination_of(asked, 2000)
    request = AggregateRequest(home, question, asked.query.plan, asked.query.select, ended_ms=START_MS + 7000)
    [found] = aggregate_digests(log, [request])
    assert 3 == found.counted  # the matches of seconds 5 and 6, and of the tick ahead


def _counted(cursor: Cursor, tick_ms: int, covered: int) -> AggregatedMatches:
    """Return the counts of a window of four seconds over thirty matches, one a second, some of them covered."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    stream = Stream("t (v INT)")
    asked = checked("SELECT count(*) AS n FROM t EVERY '1 second' OVER LAST '4 seconds'", stream, at)
    bodies = []
    for second in range(30):
        own = [Record({"v": second}, time=at + timedelta(milliseconds=1000 * second + 500), partition=0, offset=second)]
        [task] = evaluated(asked, placed(own, stream, at), "p_" + "0" * 24, "pending")
        bodies += task.pending
    log = PendingLog(lambda _, first, last: iter([(at, bodies[at]) for at in range(first, min(last + 1, 30))]))
    places, always = MatchPlaces(0, array("q", range(30))), ((*VERSION, [(None, None)]),)
    question = DigestQuestion(bytes(12), places, cursor, always, tick_ms, {"0": covered})
    request = AggregateRequest(destination_of(asked, 4000), question, asked.query.plan, asked.query.select)
    [found] = aggregate_digests(log, [request])
    assert isinstance(found, AggregatedMatches)
    return found


def test_after_a_gap_a_window_counts_its_own_ticks() -> None:
    """The gateway was away for 25 s: the digest then, and later ones, count four seconds each and no more."""
    cursor = Cursor(START_MS + 3000, {"0": 3}, 0, (), (), (DigestCoverage(START_MS + 3000, {"0": 3}),))
    for tick, away in ((28, True), (29, False), (30, False)):
        covered, tick_ms = {"0": tick}, START_MS + 1000 * tick
        if away:
            assert 25 == _counted(cursor, tick_ms, tick).counted
            cursor = after_gap(cursor, tick_ms, 1000, 4000, covered)
        found = _counted(cursor, tick_ms, tick)
        assert 4 == found.counted
        cursor = moved(cursor, tick_ms, covered, tick, found.held, over_ms=4000)


@pytest.mark.parametrize(
    ("tick", "since", "last", "gap"),
    [(28, 3, 3, True), (28, 3, 0, True), (6, 3, 3, False), (7, 3, 3, True), (28, 25, 3, False), (40, 3, 3, False)],
)
def test_a_gap_lies_before_the_window(tick: int, since: int, last: int, gap: bool) -> None:
    """Where the gateway was away for less than the window, or long before it, the cursor tells all."""
    asked = checked(
        "SELECT count(*) AS n FROM t EVERY '1 second' OVER LAST '4 seconds'",
        Stream("t (v INT)"),
        datetime(2026, 1, 1, tzinfo=UTC),
    )
    membership = Membership(destination_of(asked, 4000), 0)
    missed = MissedTicks(1000 * since, 30_000)
    assert gap == has_gap(membership, 1000 * tick, missed, 1000 * last)
    assert not has_gap(membership, 1000 * tick, None, 1000 * last)
