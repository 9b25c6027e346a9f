"""Timers without servers: progress, grids, cursors and digests under generated schedules and a virtual clock."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.model.membership import Membership, union
from gateway.model.records import Destination, TimedNote
from gateway.model.trigger_spec import TriggerSpec
from gateway.registry.grid import next_tick, previous_tick
from gateway.state.timer_state import ProgressNote
from gateway.timers.pending_index import PendingIndex
from gateway.timers.schedule import (
    MissedTicks,
    digest_from,
    following_tick,
    is_tick,
    last_tick,
    may_fire,
    run_of,
    tick_after,
    tick_to_fire,
)
from gateway.timers.stream_progress import StreamProgress
from grouping.digests.cursor import Cursor, moved, visibility_since, windows_at
from grouping.digests.digest import PART_BYTES, DigestTimes, parts_of
from grouping.digests.gather import DigestQuestion, gather
from grouping.digests.pending_matches import PendingMatches
from grouping.digests.rows import DigestRow
from tests.unit.digests.pending import STORE, Partition, record


def _membership(every_ms: int = 10, phase_ms: int = 0, **more: object) -> Membership:
    destination = Destination("d_1", "s", "g_1", "s1", "[]", "shared", 0, TriggerSpec(every_ms, phase_ms))
    return Membership(destination, 0, {",": 1}, 0, TimedNote(**more))  # type: ignore[arg-type]


@given(every=st.integers(1, 10**10), phase=st.integers(0, 10**10), at=st.integers(-(10**12), 4 * 10**12))
def test_ticks_before_and_after_are_neighbours(every: int, phase: int, at: int) -> None:
    """Ticks lie on the grid without drift: the one before the next tick is at most the instant itself."""
    trigger = TriggerSpec(every, phase % every)
    after = next_tick(trigger, at)
    assert after is not None
    assert at < after <= at + every
    assert (after - phase) % every == 0
    assert previous_tick(trigger, after) == after - every


def test_cron_across_a_change_of_clocks() -> None:
    """Eight in the morning in Madrid is eight there before and after summer time begins, an hour less apart."""
    trigger = TriggerSpec(cron="0 8 * * *", zone="Europe/Madrid")
    saturday = next_tick(trigger, 1_774_652_400_000)  # 2026-03-28T00:00 there
    assert saturday is not None
    sunday = next_tick(trigger, saturday)
    assert sunday is not None
    assert sunday - saturday == 23 * 3_600_000
    assert previous_tick(trigger, sunday) == saturday


@pytest.mark.parametrize(
    "trigger",
    [
        TriggerSpec(3_600_000),
        TriggerSpec(cron="0 8 * * MON", zone="UTC"),
        TriggerSpec(cron="0 0 29 2 *", zone="UTC"),
        TriggerSpec(cron="0 8 * * *", zone="Europe/Madrid"),
    ],
    ids=repr,
)
def test_no_tick_beyond_the_year_9999(trigger: TriggerSpec) -> None:
    """Where time ends there is no next tick, and that is no fault."""
    assert next_tick(trigger, 0, 253_402_299_000_000) is None


def test_a_tick_waits_for_what_was_published_before_it() -> None:
    """Progress goes on when the evaluator has committed the ends of a probe; an idle partition holds nothing up."""
    progress = StreamProgress(0, {"0": 0, "1": 7}, wait_ms=1000)
    progress.probe(100, {"0": 5, "1": 7})
    assert progress.due(200) == 0
    progress.cover({"0": 4})
    assert progress.due(300) == 0
    progress.cover({"0": 5})
    assert (progress.due(400), progress.evaluated_ms) == (100, 100)


def test_a_tick_does_not_wait_for_ever() -> None:
    """After the setting's time ticks fire without the evaluator; the end of a CQ goes on waiting."""
    progress = StreamProgress(0, {}, wait_ms=1000)
    progress.probe(100, {"0": 5})
    progress.probe(600, {"0": 6})
    assert progress.due(1100) == 100
    assert progress.evaluated_ms == 0
    progress.cover({"0": 6})
    assert (progress.due(1101), progress.evaluated_ms) == (600, 600)


def test_a_clock_that_is_turned_back_goes_on_at_once() -> None:
    """Ticks fire by the clock as it is, and evaluated events count up to now; the ticks ahead are remembered."""
    progress = StreamProgress(100, {"0": 5}, wait_ms=1000)
    progress.probe(9000, {"0": 5})
    progress.settle(progress.due(9000))
    progress.run_ms = 8000
    progress.turn_back(200)
    assert (progress.fired_ms, progress.evaluated_ms, progress.runs) == (200, 200, ((8000, 9000),))
    progress.probe(300, {"0": 6})
    assert progress.due(300) == 200
    progress.cover({"0": 6})
    assert progress.due(301) == 300
    progress.settle(8999)
    assert progress.runs
    progress.settle(9000)
    assert not progress.runs


def test_runs_that_were_skipped_lie_ahead_again() -> None:
    """A clock that is set ahead passes them over; when it is turned back they are still used."""
    progress = StreamProgress(0, {}, wait_ms=1000)
    progress.settle(1000)
    progress.skip(MissedTicks(1100, 20_000))
    progress.settle(1100)
    progress.settle(25_000)
    progress.turn_back(5000)
    assert progress.runs == ((20_000, 25_000),)
    progress.settle(6000)
    progress.skip(MissedTicks(6000, 30_000))
    progress.settle(31_000)
    assert not progress.runs
    progress.turn_back(500)
    assert progress.runs == ((0, 1100), (20_000, 25_000), (5000, 6000), (30_000, 31_000))


@given(runs=st.lists(st.tuples(st.integers(0, 300), st.integers(0, 100)), max_size=3), at=st.integers(0, 400))
def test_no_tick_of_a_run_is_used_again(runs: list[tuple[int, int]], at: int) -> None:
    """The next tick is the first that cannot have fired by a clock that was turned back since."""
    spans = [(first, first + length) for first, length in runs]
    fired = {tick for first, last in spans for tick in range(first // 10 * 10, last + 1, 10)}
    free = next(tick for tick in range(at // 10 * 10 + 10, 1000, 10) if tick not in fired)
    membership = _membership()
    assert following_tick(membership, None, at, at, spans) == free
    assert run_of(_membership(), free, spans) is None
    assert all(run_of(_membership(), tick, spans) for tick in fired)


def test_a_digest_ahead_is_not_the_one_before() -> None:
    """After the clock was turned back digests begin at the tick before, not at one that lies ahead."""
    ahead = Cursor(9000, {"0": 5})
    assert (last_tick(_membership(), ahead, [(8000, 9000)]), last_tick(_membership(), ahead, ())) == (0, 9000)
    assert last_tick(_membership(), moved(ahead, 210, {"0": 7}, 3, ()), [(8000, 9000)]) == 210


def test_partitions_that_are_added_make_what_was_probed_uncertain() -> None:
    """Nothing counts as evaluated until a probe has looked at the new partitions too."""
    progress = StreamProgress(0, {"0": 5}, wait_ms=1000)
    progress.probe(100, {"0": 5})
    assert (progress.due(100), progress.evaluated_ms) == (100, 100)
    progress.probe(200, {"0": 5})
    progress.doubt()
    progress.probe(300, {"0": 5, "1": 2})
    assert (progress.due(300), progress.evaluated_ms) == (0, 0)
    progress.cover({"1": 2})
    assert (progress.due(300), progress.evaluated_ms) == (300, 300)


def test_a_partition_without_a_leader_leaves_it_open_what_is_evaluated() -> None:
    """Ticks fire with the end that it had last, but nothing counts as evaluated: an EXPIRE waits."""
    progress = StreamProgress(0, {"0": 5}, wait_ms=1000)
    progress.probe(100, {"0": 5}, certain=False)
    assert (progress.due(100), progress.evaluated_ms) == (100, 0)
    progress.probe(200, {"0": 5})
    assert (progress.due(200), progress.evaluated_ms) == (200, 200)


def test_what_was_noted_ahead_holds_up_no_tick() -> None:
    """A RESUME, or a creation, by a clock that was turned back since is as long ago as anything."""
    membership = _membership(born_ms=50, changed_ms=8500)
    assert following_tick(membership, None, 100, 100) == 8510
    assert following_tick(membership, None, 100, 100, [(8000, 9000)]) == 110


def test_notes_of_earlier_versions_are_read() -> None:
    """StreamProgress and cursors that know of no clock that was turned back are taken up as they are."""
    assert msgspec.msgpack.decode(msgspec.msgpack.encode([5, {"0": 2}]), type=ProgressNote) == ProgressNote(5, {"0": 2})
    assert msgspec.msgpack.decode(msgspec.msgpack.encode([5, {"0": 2}, 3, [1]]), type=Cursor) == Cursor(
        5, {"0": 2}, 3, (1,)
    )


def test_missed_ticks_become_the_last_of_them() -> None:
    """Among ticks missed without a gateway the last fires, and its digest begins where the first missed one's would."""
    membership, missed = _membership(), MissedTicks(34, 78)
    assert tick_to_fire(membership, 40, missed) == 70
    assert digest_from(membership, 70, missed, 0) == 30
    assert tick_to_fire(membership, 80, missed) == 80
    assert tick_to_fire(membership, 40, missed, [(64, 90)]) == 50, "60 and 70 have fired, by a clock turned back since"
    assert tick_to_fire(membership, 40, missed, [(31, 90)]) == 40
    assert digest_from(membership, 80, missed, 70) == 70


def test_the_first_digest_begins_at_start_or_acceptance() -> None:
    """`from` is the tick before, of the first tick START or, without it, the acceptance."""
    assert digest_from(_membership(born_ms=15, from_ms=0), 20, None, 0) == 0
    assert digest_from(_membership(born_ms=15, from_ms=0), 30, None, 20) == 20
    assert digest_from(_membership(phase_ms=5, born_ms=15, from_ms=15), 25, None, 0) == 15


def test_a_digest_begins_before_its_tick_when_the_clock_is_turned_back_behind_the_acceptance() -> None:
    """The acceptance was noted by a clock that was ahead: the digest begins at the tick before, as any other."""
    assert digest_from(_membership(born_ms=95, from_ms=95), 30, None, 0) == 20


def test_no_tick_at_or_after_the_last_expire() -> None:
    """The last digest comes in the place of a tick at EXPIRE, unless a CQ without one shares the destination."""
    membership = _membership()
    membership.windows = {",20": 1}
    assert tick_after(membership, 5) == 10
    assert tick_after(membership, 10) is None
    assert is_tick(membership, 10)
    assert not is_tick(membership, 20)
    membership.windows = {",20": 1, ",": 1}
    assert tick_after(membership, 10) == 20


def test_no_tick_at_or_before_the_acceptance() -> None:
    """A match may be older than its CQ: its time is the publisher's. The first tick comes after the acceptance."""
    membership = _membership(phase_ms=8, born_ms=118)
    assert (tick_after(membership, 0), tick_after(membership, 117), tick_after(membership, 118)) == (128, 128, 128)
    assert following_tick(membership, None, 7, 0) == 128
    assert not is_tick(membership, 118)
    turned_back = [(100, 140)]  # the acceptance was noted by a clock that was fast
    assert tick_after(membership, 7, turned_back) == 8
    assert is_tick(membership, 8, turned_back)


def test_a_destination_sees_what_it_saw_at_the_version() -> None:
    """Events evaluated between PAUSE and RESUME are not the CQ's, though another CQ had them stored."""
    kafka, index = Partition(), PendingIndex()
    for version in (1, 2, 3):
        made = record([(version, 5)], version)
        list(index.take_in(PendingMatches.decode(made), 0, kafka.append(made)))
    visibility = ((1, 1, [(None, None)]), (1, 2, []), (1, 3, [(None, None)]))
    wanted = DigestQuestion(STORE, index.get(STORE), Cursor(), visibility, 10, None)
    rows = next(gather(kafka.log, [wanted])).rows
    assert [row.offset for row in rows] == [1, 3]
    assert windows_at(visibility, 2, 0) == [(None, None)]
    assert windows_at(visibility, 0, 9) == []


_versions = st.tuples(st.integers(1, 3), st.integers(0, 9))


@given(versions=st.sets(_versions, min_size=1), since=_versions, later=st.lists(_versions))
def test_a_shortened_history_tells_the_same_of_later_versions(
    versions: set[tuple[int, int]], since: tuple[int, int], later: list[tuple[int, int]]
) -> None:
    """From the given version on, a shortened history gives the same windows as the whole history."""
    visibility = tuple((*version, [(number, None)]) for number, version in enumerate(sorted(versions)))
    left = visibility_since(visibility, since)
    for version in (since, *(max(since, one) for one in later)):
        assert windows_at(left, *version) == windows_at(visibility, *version)
    assert len([one for one in left if one[:2] <= since]) <= 1 or left == visibility[:1]


def test_paused_cqs_hold_up_no_tick_that_is_owed() -> None:
    """When all are paused, ticks fire up to the PAUSE; where an EXPIRE left them alone, up to the next one after it."""
    membership = _membership(changed_ms=25, last_expire_ms=25)
    membership.windows = {}
    assert [may_fire(membership, armed) for armed in (0, 20, 30, 40)] == [False, True, True, False]
    membership.timed = TimedNote(changed_ms=25)
    assert [may_fire(membership, armed) for armed in (0, 20, 30, 40)] == [False, True, False, False]


def test_many_positions_are_found_again_by_reading_on() -> None:
    """A store with very many records keeps few positions, and all its matches."""
    kafka, index = Partition(), PendingIndex()
    for number in range(2000):
        made = record([(number, 5)])
        list(index.take_in(PendingMatches.decode(made), 0, kafka.append(made)))
    stored = index.get(STORE)
    assert stored is not None
    assert len(stored.positions) <= 512
    wanted = DigestQuestion(STORE, stored, Cursor(next=100), ((1, 1, [(None, None)]),), 10, None)
    rows = next(gather(kafka.log, [wanted])).rows
    assert [row.offset for row in rows] == list(range(100, 2000))
    assert index.floors() == {0: 0}
    stored.forget_before(1990, {1985})
    assert stored.first == 1985
    stored.forget_before(2000, set())
    assert stored.first is None


@given(sizes=st.lists(st.integers(1, PART_BYTES), max_size=12))
def test_parts_hold_every_row_in_order(sizes: list[int]) -> None:
    """A digest is cut into parts that fit a record; together they hold each row once, and say how many there are."""
    rows = [DigestRow(0, number, 5, json.dumps("x" * size).encode()) for number, size in enumerate(sizes)]
    parts = list(parts_of(rows, len(rows), DigestTimes(30, 10, 20)))
    read = [json.loads(part) for part in parts]
    assert [len(text) for part in read for text in part["rows"]] == sizes
    assert [part["part"] for part in read] == list(range(1, len(parts) + 1))
    assert {(part["parts"], part["count"]) for part in read} == {(len(parts), len(sizes))}
    assert max(map(len, parts)) < 1_000_000
    assert read[0]["from"] < read[0]["to"] < read[0]["fired_at"]


@given(windows=st.lists(st.tuples(st.none() | st.integers(0, 20), st.none() | st.integers(0, 20)), max_size=5))
def test_sharers_see_together_what_each_sees(windows: list[tuple[int | None, int | None]]) -> None:
    """A destination sees exactly the times that at least one of its CQs sees."""
    proper = [one for one in windows if one[0] is None or one[1] is None or one[0] < one[1]]
    together = union(list(proper))
    for time_ms in range(-1, 22):
        apart = any((a is None or time_ms >= a) and (b is None or time_ms < b) for a, b in proper)
        assert apart == any((a is None or time_ms >= a) and (b is None or time_ms < b) for a, b in together)
