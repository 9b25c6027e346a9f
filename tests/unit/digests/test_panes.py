"""Readers of a store that come, pause and go at any millisecond: each gets the same counts as alone."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.evaluation.records import PlacedRecord
from gateway.model.membership import Membership
from gateway.model.records import Cq, feed_of
from gateway.model.trigger_spec import TriggerSpec
from gateway.registry.grid import next_tick, previous_tick
from gateway.testing import Record
from gateway.testing.query import CheckedQuery, checked
from gateway.testing.records import placed
from grouping.digests.cursor import Cursor, VisibilityInterval, Window, moved, windows_at
from grouping.model.panes import pack_bounds, unpack_bounds
from grouping.statements.cq_text import CqText
from spark_jobs.engine.operators.aggregate.panes import Panes
from tests.unit.digests.aggregate_log import AT, START_MS, STREAM, GroupLog, destination_of, digest_at

_BOUNDS = st.lists(
    st.one_of(
        st.integers(0, 300).map(lambda at: (0, at)),
        st.integers(1, 90).flatmap(lambda period: st.tuples(st.just(period), st.integers(0, period - 1))),
    ),
    min_size=1,
    max_size=6,
)


@given(st.lists(_BOUNDS, min_size=1, max_size=4), st.lists(st.tuples(st.integers(0, 3), st.integers(-5, 400))))
def test_a_pane_begins_at_the_last_bound(stores: list, matches: list) -> None:
    """No bound lies after the begin of a match's pane and up to the match, and the begin is one."""
    matches = [(store % len(stores), at_ms) for store, at_ms in matches]
    panes = Panes({store: pack_bounds([*bounds, (1000, 0)]) for store, bounds in enumerate(stores)})
    begins = panes.begins(*(np.array([one[each] for one in matches], kind) for each, kind in ((0, "i4"), (1, "i8"))))
    for (store, at_ms), begin in zip(matches, begins.tolist(), strict=True):
        own = [*stores[store], (1000, 0)]
        before = [
            at_ms - (at_ms - phase) % period if period else phase for period, phase in own if period or phase <= at_ms
        ]
        assert begin == max(before)


@dataclass
class _Reader:
    """A CQ that reads the store between two versions of the tables, except the versions of its pause."""

    trigger: TriggerSpec
    over_ms: int
    window: Window
    versions: range
    paused: range
    cursor: Cursor = field(default_factory=Cursor)
    after_ms: int = START_MS - 1
    """Its last tick."""
    counted: list[tuple[int, list[int]]] = field(default_factory=list)
    """By tick, which records it was the first to count."""

    @classmethod
    def of(cls, chance: random.Random, batches: int) -> _Reader:
        every_ms = chance.choice([1700, 5000, 12_000])
        trigger = TriggerSpec(every_ms, chance.randrange(every_ms))
        if chance.random() < 0.15:
            every_ms, trigger = 60_000, TriggerSpec(cron="* * * * *", zone="Asia/Kolkata")
        over_ms = 0 if trigger.cron else chance.choice([0, 0, 3 * every_ms])
        start = chance.choice([None, START_MS + chance.randrange(60_000)])
        expire = chance.choice([None, (start or START_MS) + 1 + chance.randrange(60_000)])
        first = chance.randrange(1, batches)
        versions = range(first, chance.randrange(first, batches + 1) + 1)
        at = chance.randrange(first, batches + 1)
        return cls(trigger, over_ms, (start, expire), versions, range(at, at + chance.randrange(4)))

    def sees(self, version: int) -> bool:
        return version in self.versions and version not in self.paused

    @property
    def visibility(self) -> tuple[VisibilityInterval, ...]:
        last = max(self.versions.stop, self.paused.stop) + 1
        return tuple((1, at, [self.window] if self.sees(at) else []) for at in range(1, last))

    def next_tick(self, after_ms: int) -> int:
        """Return the tick after an instant; at EXPIRE, or after it, the last one is EXPIRE."""
        tick = next_tick(self.trigger, after_ms, self.window[0])
        assert tick is not None
        return tick if self.window[1] is None else max(after_ms + 1, min(tick, self.window[1]))


def _bounds(asked: CheckedQuery, readers: list[_Reader], batches: int) -> list[bytes]:
    """Return by version the bounds that the gateway puts into the table."""
    packed = []
    for version in range(1, batches + 1):
        store = Membership(feed_of(destination_of(asked, 0)), 0)
        store.count(Cq("", CqText.cut(""), "d_1", 0, 0), 1, TriggerSpec(3_600_000))  # so that there is one at any time
        for reader in readers:
            if reader.sees(version):
                store.count(Cq("", CqText.cut(""), "d_1", 0, 0, *reader.window), 1, reader.trigger)
        packed.append(store.packed_bounds)
    return packed


def _millis(record: PlacedRecord) -> int:
    return round(record.time.timestamp() * 1000)


def _seen(reader: _Reader, versions: list[int]) -> list[Window]:
    """Return the windows of a reader at the first version at which it saw the event."""
    found = (windows_at(reader.visibility, 1, version) for version in versions)
    return next((windows for windows in found if windows), [])


def _check(asked: CheckedQuery, log: GroupLog, reader: _Reader, tick: tuple[int, int], records: list) -> None:
    """Have a reader served at a tick, and compare with its own count."""
    tick_ms, batch = tick
    covered = log.commits[batch]
    had = {number for _, numbers in reader.counted for number in numbers}
    now = [
        number
        for number, record in enumerate(records)
        if number not in had
        and _millis(record) < tick_ms
        and record.offset < covered.get(str(record.partition), 0)
        and (windows := _seen(reader, log.versions[record.partition, record.offset]))
        and (windows[0][0] is None or windows[0][0] <= _millis(record))
        and (windows[0][1] is None or _millis(record) < windows[0][1])
    ]
    reader.counted.append((tick_ms, now))
    wanted = now
    if reader.over_ms:
        wanted = [number for at_ms, some in reader.counted if at_ms > tick_ms - reader.over_ms for number in some]
    home = destination_of(asked, reader.over_ms, reader.trigger)
    from_ms = tick_ms - reader.over_ms if reader.over_ms else previous_tick(reader.trigger, tick_ms) or 0
    found = digest_at(asked, log, home, reader.cursor, (tick_ms, batch), reader.visibility, from_ms)
    assert (found.counted or 0) == len(wanted)
    if next_tick(reader.trigger, tick_ms - 1) == tick_ms:  # so that it begins at a bound
        assert found.late == sum(_millis(records[number]) < from_ms for number in wanted)
    rows = [json.loads(row.body) for row in found.rows]
    assert rows == ([{"c": len(wanted), "least": min(wanted), "most": max(wanted)}] if wanted else [])
    if found.counted:
        reader.cursor = moved(
            reader.cursor, tick_ms, covered, log.ends[batch], found.held, over_ms=reader.over_ms, most_held=3
        )


@pytest.mark.parametrize("seed", range(12))
def test_readers_of_one_store_count_alone(seed: int) -> None:
    """Whatever ticks, START, EXPIRE and pauses share a store, each reader's digests hold its own matches, each once."""
    chance = random.Random(seed)
    count, batches = 120, 30
    times = [AT + timedelta(milliseconds=max(0, 500 * at + chance.randrange(-6000, 9000))) for at in range(count)]
    rows, offsets = [], [0, 0]
    for number, time in enumerate(times):
        partition = chance.randrange(2)
        rows.append(Record({"n": number}, time=time, partition=partition, offset=offsets[partition]))
        offsets[partition] += 1
    asked = checked("SELECT count(*) AS c, min(n) AS least, max(n) AS most FROM t EVERY '1 hour'", STREAM, AT)
    records = placed(rows, STREAM, AT)
    readers = [_Reader.of(chance, batches) for _ in range(8)]
    log = GroupLog(chance, asked, records, _bounds(asked, readers, batches))
    ticks = [
        (batch, reader)
        for reader in readers
        for batch in chance.sample(range(1, len(log.commits)), min(9, len(log.commits) - 1))
    ]
    rolled = 0
    for batch, reader in sorted(ticks, key=lambda tick: tick[0]):
        reader.after_ms = reader.next_tick(reader.after_ms + chance.randrange(9000))  # some ticks are missed
        _check(asked, log, reader, (reader.after_ms, batch), records)
        if chance.random() < 0.2:
            living = [(each.visibility, each.cursor) for each in readers if each.versions.start <= batch + 1]
            rolled += log.roll(batch, living or [((), Cursor())], before=chance.randrange(log.ends[batch] + 1))
    assert any(numbers for reader in readers for _, numbers in reader.counted)
    assert rolled


@given(_BOUNDS)
def test_packed_bounds_are_each_once(bounds: list[tuple[int, int]]) -> None:
    """Bounds come in one order, each once, and without the instants that a period meets; none make nothing."""
    periods = {period for period, _ in bounds if period}
    needed = {
        (period, phase)
        for period, phase in bounds
        if period or not any((each, phase % each) in bounds for each in periods)
    }
    assert sorted(needed) == unpack_bounds(pack_bounds(bounds))
    assert b"" == pack_bounds([]) == Membership(feed_of(destination_of(_ASKED, 0)), 0).packed_bounds


_ASKED = checked("SELECT count(*) AS c FROM t EVERY '1 hour'", STREAM, AT)
