"""Each match is in exactly one digest, for any order of publishing, replays, restarts and ticks."""

from __future__ import annotations

import itertools
import json
import random
from array import array
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from grouping.digests.cursor import Cursor, moved
from grouping.digests.gather import Bounds, DigestQuestion, gather
from grouping.digests.match_places import MatchPlaces
from grouping.digests.orders import DigestOrder, Order, carry_out, places_after
from grouping.digests.pending_matches import PendingMatches
from tests.unit.digests.pending import STORE, Partition, record

_OTHER = b"q" * 12
_BOUNDS = Bounds(one=4, together=6)
_MOST_HELD = 3
_MOST_PLACES = 3
_MOST_POSITIONS = 8
_HISTORY = ((1, 1, [(None, None)]),)


class _MadeDigest(NamedTuple):
    """The result of a tick."""

    rows: list[tuple[int, bytes]]
    cursor: Cursor
    repeats: int


class _Reader:
    """A destination, its stored cursor, and its deliveries."""

    def __init__(self, rng: random.Random, *, ordered: bool) -> None:
        self._rng = rng
        self._ordered = ordered
        self.store(Cursor())
        self.delivered: dict[int, int] = {}

    @property
    def cursor(self) -> Cursor:
        """The reader's cursor, as stored by earlier versions: its held records are in any order."""
        cursor = msgspec.msgpack.decode(self._body, type=Cursor)
        return msgspec.structs.replace(cursor, held=tuple(self._rng.sample(cursor.held, len(cursor.held))))

    def store(self, cursor: Cursor) -> None:
        """Move on."""
        self._body = msgspec.msgpack.encode(cursor)

    def fire(self, kafka: Partition, stored: MatchPlaces, tick_ms: int, covered: int) -> int:
        """Take over a digest, and return how many repeats were left out of it."""
        digests = (self._by_order if self._ordered else self._here)(kafka, stored, tick_ms, {"0": covered})
        for offset, body in digests.rows:
            assert json.loads(body) == {"n": offset}
            assert offset not in self.delivered, f"{offset} came at {self.delivered[offset]} and at {tick_ms}"
            self.delivered[offset] = tick_ms
        assert list(digests.cursor.held) == sorted(digests.cursor.held)
        self.store(digests.cursor)
        return digests.repeats

    def _here(self, kafka: Partition, stored: MatchPlaces, tick_ms: int, cut: dict[str, int]) -> _MadeDigest:
        """Make a digest as the gateway does."""
        wanted = DigestQuestion(STORE, stored, self.cursor, _HISTORY, tick_ms, cut)
        others = [wanted._replace(store=_OTHER), wanted]
        found = list(gather(kafka.log, others, _BOUNDS))[1]
        cursor = moved(self.cursor, tick_ms if found.rows else None, cut, len(kafka.bodies), found.held, _MOST_HELD)
        return _MadeDigest([(row.offset, row.body) for row in found.rows], cursor, found.repeats)

    def _by_order(self, kafka: Partition, stored: MatchPlaces, tick_ms: int, cut: dict[str, int]) -> _MadeDigest:
        """Make a digest as a Spark job does, which knows nothing but the order."""
        place = places_after(stored, self.cursor, _MOST_PLACES)
        each = DigestOrder(
            "d_1", 7, "cq.results", 3, ("all", (), 0, False), "", tick_ms, 0, self.cursor, _HISTORY, STORE, place,
            len(kafka.bodies),
        )  # fmt: skip
        packed = msgspec.msgpack.encode(Order("s", "quotes", cut, tick_ms, (each,)))
        order = msgspec.msgpack.decode(packed, type=Order)
        [(_, digest, answered)] = carry_out(kafka.reader(keeping=True), order, _BOUNDS, _MOST_HELD)
        rows = [] if digest is None else [(row.offset, row.body) for row in digest.rows]
        return _MadeDigest(rows, answered.cursor or msgspec.msgpack.decode(self._body, type=Cursor), answered.repeats)


class _Ticks(RuleBasedStateMachine):
    """A source partition whose matches are read by two destinations with different ticks."""

    @initialize(ordered=st.booleans(), rng=st.randoms(use_true_random=False))
    def begin(self, ordered: bool, rng: random.Random) -> None:
        """Begin with an empty log; digests are made here, or by orders."""
        self.rng = rng
        self.kafka, self.stored = Partition(), MatchPlaces(0)
        self.readers = [_Reader(rng, ordered=ordered), _Reader(rng, ordered=ordered)]
        self.now_ms, self.covered, self.offset = 1000, 0, 0
        self.uncommitted: list[list[tuple[int, int]]] = []
        self.events: dict[int, int] = {}
        self.ticks: list[list[int]] = [[], []]

    @rule(
        times=st.lists(st.integers(-30, 60), min_size=1, max_size=3),
        times_over=st.integers(1, 6),
        kept=st.booleans(),
    )
    def publish(self, times: list[int], times_over: int, kept: bool) -> None:
        """Evaluate events with record times behind and ahead of now, some to a record, which may stay at hand."""
        for _ in range(times_over):
            some = [(self.offset + number, self.now_ms + time) for number, time in enumerate(times)]
            self.offset += len(some)
            self.events.update(some)
            self.uncommitted.append(some)
            self._write(some, kept=kept)

    @rule(committed=st.booleans(), later=st.integers(1, 25), which=st.sampled_from([[0], [0], [0], [1], [0, 1]]))
    def tick(self, committed: bool, later: int, which: list[int]) -> None:
        """Fire, after a commit or before it; the first destination does more often than the second."""
        if committed:
            self._commit()
        self.now_ms += later
        for number in which:
            if self.now_ms in self.ticks[number]:
                continue  # an id is used once: see `gateway.timers.schedule.run_of`
            self.readers[number].fire(self.kafka, self.stored, self.now_ms, self.covered)
            self.ticks[number].append(self.now_ms)
        cursors = [reader.cursor for reader in self.readers]
        self.stored.forget_before(min(one.next for one in cursors), {at for one in cursors for at in one.held})

    @rule(by=st.integers(-80, 200))
    def set_clock(self, by: int) -> None:
        """Turn the clock back, or set it ahead."""
        self.now_ms += by

    @rule(how=st.sampled_from(["replay", "trim", "restart", "know less"]))
    def disturb(self, how: str) -> None:
        """Evaluate uncommitted batches once more, delete unneeded records, or restart from stored state."""
        match how:
            case "replay":
                for some in self.uncommitted:
                    self._write(some, kept=False)
            case "trim":
                first = self.stored.first
                self.kafka.first = len(self.kafka.bodies) if first is None else first
            case "restart":
                self.stored = MatchPlaces(0, array("q", self.stored.positions.tobytes()), self.stored.older)
                self.kafka.log = self.kafka.reader()
            case _:  # as after Redis was lost, and with it the latest note of evaluated offsets
                self.covered = self.rng.randint(0, self.covered)

    def _commit(self) -> None:
        self.covered = self.offset
        self.uncommitted.clear()

    def _write(self, some: list[tuple[int, int]], *, kept: bool) -> None:
        body = record(some, stores=(_OTHER, STORE))
        place = self.kafka.append(body)
        if kept:
            self.kafka.log.keep((0, place), PendingMatches.decode(body), len(body))
        self.stored.add(place, _MOST_POSITIONS)

    def teardown(self) -> None:
        """Fire once more, later than everything: nothing is missing then, and each match had its time."""
        if not hasattr(self, "events"):
            return
        self._commit()
        self.now_ms = max([self.now_ms, *self.events.values(), *itertools.chain(*self.ticks)]) + 1
        for reader, ticks in zip(self.readers, self.ticks, strict=True):
            reader.fire(self.kafka, self.stored, self.now_ms, self.covered)
            assert reader.delivered.keys() == self.events.keys()
            for offset, tick_ms in reader.delivered.items():
                assert self.events[offset] < tick_ms
                assert tick_ms in ticks or tick_ms == self.now_ms


TestTicks = _Ticks.TestCase
TestTicks.settings = settings(max_examples=300, stateful_step_count=30, deadline=None)


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("count", [12, 30])
def test_what_a_disordered_cursor_names_is_not_lost(count: int, ordered: bool) -> None:
    """Records behind a stored cursor are met in log order, so that none of them is taken for a repeat."""
    kafka, stored = (
        Partition([record([(number, 50)]) for number in range(count)]),
        MatchPlaces(0, array("q", range(count))),
    )
    reader = _Reader(random.Random(3), ordered=ordered)
    reader.store(Cursor(40, {"0": 3}, 10, (9, 2, 5, 7, 3, 8, 4, 6)))
    assert reader.fire(kafka, stored, 60, count) == 0
    assert sorted(reader.delivered) == list(range(2, count))


def test_repeats_are_counted() -> None:
    """Matches written again by a replayed batch are left out once for each time, and counted."""
    made = record([(0, 5), (1, 6)])
    kafka, stored = Partition([made, made, made]), MatchPlaces(0, array("q", range(3)))
    reader = _Reader(random.Random(3), ordered=False)
    assert reader.fire(kafka, stored, 10, 2) == 4
    assert reader.delivered == {0: 10, 1: 10}
