"""Results that waited for the watermark are in exactly one digest each: the first one fired after the result arose."""

from __future__ import annotations

from array import array

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.timers.cuts import Cut
from gateway.timers.pending_index import PendingIndex
from grouping.digests.cursor import Cursor, moved
from grouping.digests.gather import Bounds, DigestQuestion, gather
from grouping.digests.match_places import MatchPlaces
from grouping.digests.orders import DigestOrder, Order, carry_out, places_after
from grouping.digests.pending_matches import PendingMatches, pack_pending
from tests.unit.digests.pending import STORE, Partition

_ALWAYS = ((1, 1, [(None, None)]),)
_BOUNDS = Bounds(one=4, together=6)
_MOST_HELD = 3
Result = tuple[int, int, int]
"""The position of a result, the number of its row, and its time."""


def _written(results: list[Result]) -> bytes:
    """Return a record of results, all of one source partition."""
    positions, numbers, times = (np.array(each, np.int64) for each in zip(*results, strict=True))
    ids = np.frombuffer(STORE * len(results), np.uint8).reshape(-1, 12)
    places = np.zeros(len(results), np.int32), positions, times
    values = [b'{"n":[%d,%d]}' % (position, number) for position, number, _ in results]
    rows = np.arange(len(results), dtype=np.int32)
    return pack_pending("s", (1, 1), ids, places, rows, values, numbers, computed=True)


class _Reader:
    """A destination, its cursor, and the ticks at which it got each result."""

    def __init__(self, *, ordered: bool) -> None:
        self.cursor = Cursor()
        self.delivered: dict[bytes, int] = {}
        self._ordered = ordered

    def question(self, kafka: Partition, stored: MatchPlaces, tick_ms: int | None, cut: Cut) -> DigestQuestion:
        return DigestQuestion(STORE, stored, self.cursor, _ALWAYS, tick_ms, cut.covered, cut.below(0))

    def fire(self, kafka: Partition, stored: MatchPlaces, tick_ms: int, cut: Cut) -> list[bytes]:
        """Take over a digest, and return its rows."""
        found = self._by_order(kafka, stored, tick_ms) if self._ordered else self._here(kafka, stored, tick_ms, cut)
        for body in found:
            assert body not in self.delivered
            self.delivered[body] = tick_ms
        return found

    def _here(self, kafka: Partition, stored: MatchPlaces, tick_ms: int, cut: Cut) -> list[bytes]:
        [found] = gather(kafka.log, [self.question(kafka, stored, tick_ms, cut)], _BOUNDS)
        tick, reached = tick_ms if found.rows else None, len(kafka.bodies)
        self._move(moved(self.cursor, tick, {}, reached, found.held, _MOST_HELD, positions=found.positions))
        return [row.body for row in found.rows]

    def _by_order(self, kafka: Partition, stored: MatchPlaces, tick_ms: int) -> list[bytes]:
        each = DigestOrder(
            "d_1", 7, "cq.results", 3, ("all", (), 0, False), "", tick_ms, 0, self.cursor, _ALWAYS, STORE,
            places_after(stored, self.cursor, 3), len(kafka.bodies),
        )  # fmt: skip
        order = msgspec.msgpack.decode(msgspec.msgpack.encode(Order("s", "q", {}, tick_ms, (each,))), type=Order)
        [(_, digest, answered)] = carry_out(kafka.reader(), order, _BOUNDS, _MOST_HELD)
        assert answered.late == 0
        self._move(answered.cursor or self.cursor)
        return [] if digest is None else [row.body for row in digest.rows]

    def _move(self, cursor: Cursor) -> None:
        self.cursor = msgspec.msgpack.decode(msgspec.msgpack.encode(cursor), type=Cursor)


_RESULTS = st.lists(st.tuples(st.integers(0, 3), st.integers(-500, 500)), min_size=1, max_size=4)
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), _RESULTS),
        st.tuples(st.sampled_from(["replay", "tick", "crash", "trim"]), st.lists(st.booleans(), max_size=6)),
    ),
    max_size=30,
)


@pytest.mark.parametrize("ordered", [False, True])
@settings(max_examples=150, deadline=None)
@given(steps=_STEPS)
def test_each_result_is_in_the_next_digest_alone(steps: list[tuple[str, list]], *, ordered: bool) -> None:
    """Replays write results again, gateways die between cut and digest, and times are before and after the ticks."""
    kafka, stored, readers = Partition(), MatchPlaces(0), [_Reader(ordered=ordered), _Reader(ordered=ordered)]
    written, last, tick_ms, fired = list[list[Result]](), (0, 0), 1000, list[int]()
    arisen: dict[bytes, int] = {}

    def write(results: list[Result], chosen: list[bool]) -> None:
        """Write results in records of one or several."""
        first = 0
        for place in range(len(results)):
            if place + 1 == len(results) or (chosen and chosen[place % len(chosen)]):
                stored.add(kafka.append(_written(results[first : place + 1])), 8)
                first = place + 1
        for position, number, _ in results:
            arisen.setdefault(b'{"n":[%d,%d]}' % (position, number), tick_ms)

    for kind, some in steps:
        if kind == "write":
            results = []
            for step, time in some:
                last = (last[0] + step, last[1] + 1 if not step else 0)
                results.append((*last, tick_ms + time))
            written.append(results)
            write(results, [True, False])
        if kind == "replay" and written:
            write([result for batch in written[-2:] for result in batch], some)
        if kind in ("tick", "crash"):
            tick_ms += 10
            fired.append(tick_ms)
            for reader in readers[: 1 + (not some)]:
                cut = Cut("s", {}, (), tick_ms, (), {0: len(kafka.bodies)})
                wanted = None
                if kind == "crash" and not ordered:
                    # The gateway dies before the digest is written: its successor makes the same one.
                    [found] = gather(kafka.reader(), [reader.question(kafka, stored, tick_ms, cut)], _BOUNDS)
                    wanted = [row.body for row in found.rows]
                    last = (last[0] + 1, 0)
                    written.append([(*last, tick_ms - 5)])
                    tick_ms += 1  # the result arises after the cut
                    write(written[-1], [])
                    tick_ms -= 1
                reported = reader.fire(kafka, stored, tick_ms, cut)
                assert wanted is None or reported == wanted
        if kind == "trim":
            cursors = [reader.cursor for reader in readers]
            stored.forget_before(min(one.next for one in cursors), {at for one in cursors for at in one.held})
            first = stored.first
            kafka.first = len(kafka.bodies) if first is None else first
    tick_ms += 10
    for reader in readers:
        reader.fire(kafka, stored, tick_ms, Cut("s", {}, (), tick_ms))
        assert reader.delivered.keys() == arisen.keys()
    ticks = [*fired, tick_ms]
    for body, tick_ms in readers[0].delivered.items():
        assert tick_ms == next(each for each in ticks if each > arisen[body])


def test_results_in_a_digest_arm_nobody() -> None:
    """A look finds results of no digest alone; such results wait for the first tick, whatever their time."""
    body = _written([(5, 0, 9000), (5, 1, 9000), (8, 0, 100)])
    log = Partition([body]).log
    for digested, left in (((), 0), (((0, 5, 1),), 0), (((0, 8, 0),), None), (((1, 8, 0),), 0)):
        cursor = Cursor(50, {"0": 1 << 40}, 0, positions=digested)
        question = DigestQuestion(STORE, MatchPlaces(0, array("q", [0])), cursor, _ALWAYS, None, {})
        [found] = gather(log, [question])
        assert (found.left_ms, bool(found.held)) == (left, left is not None)
    [(_, _, earliest)] = PendingIndex().take_in(PendingMatches.decode(body), 0, 0)
    assert earliest == 0
