"""Orders without servers: Spark's digests of an order are the same as the gateway's."""

from __future__ import annotations

import tempfile
from array import array

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grouping.digests.cursor import Cursor, moved
from grouping.digests.gather import DigestQuestion, gather
from grouping.digests.match_places import MatchPlaces
from grouping.digests.orders import DigestOrder, Order, OrderOutcome, carry_out, ordered_parts, places_after
from grouping.digests.pending_log import PendingLog
from grouping.digests.pending_matches import PendingMatches
from tests.unit.digests.pending import STORE, Partition, record

_ALWAYS = ((1, 1, [(None, None)]),)


def _ordered(cursor: Cursor, stored: MatchPlaces | None, reached: int, *, empty: bool = False) -> DigestOrder:
    return DigestOrder(
        "d_1", 7, "cq.results", 3, ("all", (), 0, empty), "", 100, 50, cursor, _ALWAYS, STORE,
        places_after(stored, cursor), reached,
    )  # fmt: skip


def _order(each: DigestOrder, covered: dict[str, int]) -> Order:
    """Return an order as it comes from the log."""
    order = Order("s", "quotes", covered, 200, (each,))
    return msgspec.msgpack.decode(msgspec.msgpack.encode(order), type=Order)


@given(
    count=st.integers(0, 200),
    times=st.lists(st.integers(0, 150), min_size=200, max_size=200),
    kept=st.integers(1, 100),
    next_=st.integers(0, 250),
    held=st.sets(st.integers(0, 100), max_size=5),
    covered=st.integers(0, 250),
)
def test_an_order_holds_all_that_it_takes(
    count: int, times: list[int], kept: int, next_: int, held: set[int], covered: int
) -> None:
    """Rows, cursor and rest equal the ones from the gateway's index, however little of the index is written."""
    log = Partition([record([(number, times[number])]) for number in range(count)]).log
    first = max(count - kept, 0)
    stored = MatchPlaces(0, array("q", range(first, count)), 0 if first else None) if count else None
    cursor = Cursor(20, {"0": 10}, next_, tuple(sorted(one for one in held if one < min(next_, count))))
    cut = {"0": covered}
    found = next(gather(log, [DigestQuestion(STORE, stored, cursor, _ALWAYS, 100, cut)]))
    order = _order(_ordered(cursor, stored, count), cut)
    [(_, digest, answered)] = carry_out(log, order)
    assert ([] if digest is None else list(digest.rows)) == list(found.rows)
    after = moved(cursor, 100 if found.rows else None, cut, count, found.held)
    assert (answered.cursor or cursor) == after
    assert (answered.left_ms, answered.oldest, answered.sent) == (found.left_ms, found.oldest, bool(found.rows))
    assert answered.late == sum(row.time_ms < 50 for row in found.rows)


def test_nothing_is_sent_where_there_is_nothing() -> None:
    """A destination without a match gets no digest, unless EVEN IF EMPTY; only then its cursor moves."""
    log = Partition().log
    sent = {}
    for empty in (False, True):
        order = _order(_ordered(Cursor(20), None, 4, empty=empty), {"0": 5})
        [(each, digest, answered)] = carry_out(log, order)
        sent[empty] = answered.sent
        assert (digest is not None) == answered.sent == (answered.cursor is not None)
        if digest is not None:
            [(body, headers)] = ordered_parts(order, each, digest)
            assert b'"count":0' in body
            assert dict(headers)["ce_id"] == b"d_1/100/1"
            assert dict(headers)["ce_source"] == b"quotes"
    assert sent == {False: False, True: True}


def test_an_answer_comes_back_as_it_was() -> None:
    """The job's answer to the gateway survives the log."""
    log = Partition([record([(0, 60), (1, 120), (0, 60)])]).log
    order = _order(_ordered(Cursor(), MatchPlaces(0, array("q", [0])), 1), {"0": 2})
    [(_, _, answered)] = carry_out(log, order)
    answer = OrderOutcome("s", 200, (answered,))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(answer), type=OrderOutcome) == answer
    assert (answered.incarnation, answered.left_ms, answered.cursor) == ("d_1/7", 120, Cursor(100, {"0": 2}, 1, (0,)))
    assert answered.repeats == 1


def test_an_order_tells_which_digests_found_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """A digest whose rows cannot be stored is answered as failed, with nothing written; the others are made."""
    monkeypatch.setattr(tempfile, "tempdir", "/no/such/folder")
    large = record([(number, 60) for number in range(10)], value=b"x" * 4_000_000)
    log = Partition([large, record([(10, 60)], stores=(b"q" * 12,))]).log
    first = _ordered(Cursor(), MatchPlaces(0, array("q", [0])), 2)
    small = msgspec.structs.replace(
        first, store=b"q" * 12, places=places_after(MatchPlaces(0, array("q", [1])), Cursor())
    )
    order = Order("s", "quotes", {"0": 11}, 200, (first, small))
    [(_, none, failed), (_, digest, answered)] = carry_out(log, order)
    assert (none, failed.cursor, failed.sent) == (None, None, False)
    assert "No such file" in failed.failure
    assert digest is not None
    assert (digest.matches, answered.sent, answered.failure) == (1, True, "")


def test_a_log_that_is_read_again_keeps_its_room() -> None:
    """Records that are told once more, after a server failed, count once against the memory of the log."""
    body = record([(0, 60)])
    log = PendingLog(lambda *_: iter([(0, body)]), most_bytes=3 * len(body))
    for _ in range(10):
        log.keep((0, 0), PendingMatches.decode(body), len(body))
    for offset in range(1, 5):
        log.keep((0, offset), PendingMatches.decode(body), len(body))
    assert set(log.load([(0, 2), (0, 3), (0, 4)])) == {(0, 2), (0, 3), (0, 4)}
