"""The output of a reader: each result once, inside its window, until its end."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import accumulate

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.sdk.records.cursor import ReadingPlace, decode_cursor, place_of
from gateway.sdk.records.feed import Feed
from gateway.sdk.records.reader import QueryReader
from gateway.sdk.records.record import ResultRecord
from gateway.sdk.results import ContinuousQuery, Digest, End, Match
from tests.unit.sdk import sdk_records as records
from tests.unit.sdk.sdk_records import NOON


def read(reader: QueryReader, flow: Sequence[ResultRecord]) -> list[Match | Digest | End]:
    """Feed all records; return their results."""
    return [result for record in flow if (result := reader.feed(record)) is not None]


def reader(query: ContinuousQuery | None = None) -> QueryReader:
    """A reader at its CQ's beginning."""
    return QueryReader(place_of(query or records.query()))


@st.composite
def replayed(draw: st.DrawFn) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Source positions in order per partition, and the same as a sink with crashes writes them."""
    lengths = draw(st.lists(st.integers(0, 12), min_size=1, max_size=3))
    steps = [draw(st.lists(st.integers(1, 5), min_size=length, max_size=length)) for length in lengths]
    sources = [(partition, offset) for partition, each in enumerate(steps) for offset in accumulate(each)]
    order = draw(st.permutations(sources))
    waiting = {partition: sorted(at for at in sources if at[0] == partition) for partition in range(len(lengths))}
    once = [waiting[partition].pop(0) for partition, _ in order]
    written: list[tuple[int, int]] = []
    begin = 0
    while begin < len(once):
        size = draw(st.integers(1, 5))
        batch = once[begin : begin + size]
        for attempt in draw(st.lists(st.integers(0, size), max_size=2)):
            written += batch[:attempt]
        written += batch
        begin += size
    return once, written


@given(replayed())
def test_each_match_comes_once_whatever_is_replayed(case: tuple[list[tuple[int, int]], list[tuple[int, int]]]) -> None:
    """Batches that are written again, in part or whole, show the reader nothing twice and nothing less."""
    once, written = case
    found = read(reader(), [records.match(at, source) for at, source in enumerate(written)])
    assert once == [(match.partition, match.offset) for match in found if isinstance(match, Match)]


@given(replayed(), st.data())
def test_a_cursor_taken_anywhere_goes_on_exactly(
    case: tuple[list[tuple[int, int]], list[tuple[int, int]]], data: st.DataObject
) -> None:
    """Leaving after any result, and reading on from the cursor's offset, gives all results once."""
    once, written = case
    flow = [records.match(at, source) for at, source in enumerate(written)]
    first = Feed([reader()])
    first.add(flow)
    taken = [first.take() for _ in range(data.draw(st.integers(0, len(once))))]
    second = Feed([QueryReader(place) for place in decode_cursor(first.cursor())])
    begin = second.positions()["cq.results", 3]
    second.add(flow[begin:])
    while (result := second.take()) is not None:
        taken.append(result)
    assert once == [(match.partition, match.offset) for match in taken if isinstance(match, Match)]


def test_an_event_with_several_results_gives_each_once() -> None:
    """Rows of a join are told apart by their number; a replay from any of them shows nothing twice."""
    once = [(0, 4, 0), (0, 4, 1), (1, 0, 0), (1, 0, 1), (1, 0, 2), (1, 1, 0), (0, 5, 0)]
    written = [*once[:4], *once[2:6], *once[3:]]
    found = read(reader(), [records.match(at, source) for at, source in enumerate(written)])
    assert [f"quotes/{partition}/{offset}/{number}" for partition, offset, number in once] == [one.id for one in found]
    place = reader().place({})
    place.marks = {1: (0, 1)}
    again = read(QueryReader(place), [records.match(at, source) for at, source in enumerate(once[2:6])])
    assert ["quotes/1/0/2", "quotes/1/1/0"] == [one.id for one in again]


def test_the_name_of_a_stream_may_look_like_an_id() -> None:
    """The source in an id is read by the name of the stream, whatever that holds."""
    record = records.match(0, (3, 5, 1), stream="a/1/2")
    [found] = read(reader(), [record])
    assert ("a/1/2", 3, 5, 1) == (found.stream, found.partition, found.offset, found.number)


@pytest.mark.parametrize(("seconds", "seen"), [(-0.001, False), (0, True), (59.999, True), (60, False), (61, False)])
def test_window_is_from_start_up_to_before_expire(seconds: float, seen: bool) -> None:
    """A sharer's events before START, and events at or after EXPIRE, are not one's own."""
    query = records.query(starts_at=NOON, expires_at=NOON + timedelta(minutes=1))
    assert seen == bool(read(reader(query), [records.match(0, (0, 7), seconds=seconds)]))


@pytest.mark.parametrize(("seconds", "seen"), [(-0.001, False), (59.999, True), (60, True), (60.001, False)])
def test_a_result_that_waited_is_seen_at_expire(seconds: float, seen: bool) -> None:
    """The interval of a result with a cause may end at EXPIRE."""
    query = records.query(starts_at=NOON, expires_at=NOON + timedelta(minutes=1))
    assert seen == bool(read(reader(query), [records.match(0, (0, 7), seconds=seconds, cause="quotes/0/7")]))


def test_a_match_is_given_with_all_that_identifies_it() -> None:
    """Row, time and source position come through as they were written."""
    [found] = read(reader(), [records.match(0, (1, 42), row={"symbol": "INTC", "price": None})])
    assert isinstance(found, Match)
    assert ("intel", "quotes/1/42", {"symbol": "INTC", "price": None}, NOON) == (
        found.cq,
        found.id,
        found.row,
        found.time,
    )


def test_a_digest_comes_when_all_its_parts_are_there() -> None:
    """Parts in any order, one of them twice, are one digest with the rows in part order."""
    flow = [
        records.digest(0, 1, part=2, parts=3),
        records.digest(1, 1, part=2, parts=3),
        records.digest(2, 1, part=1, parts=3),
    ]
    following = reader()
    assert [] == read(following, flow)
    [found] = read(following, [records.digest(3, 1, part=3, parts=3)])
    assert isinstance(found, Digest)
    assert ({"part": 1}, {"part": 2}, {"part": 3}) == found.rows


def test_a_digest_that_is_written_again_is_passed_over() -> None:
    """A digest is recognised by its tick."""
    found = read(reader(), [records.digest(0, 1), records.digest(1, 1), records.digest(2, 2), records.digest(3, 1)])
    assert [1, 2] == [(digest.until - NOON).seconds // 60 for digest in found if isinstance(digest, Digest)]


def test_earlier_ticks_of_a_clock_that_was_turned_back_are_handed_over() -> None:
    """Each once, also with a cursor between any two; a digest that is never whole holds up nothing."""
    minutes = [1, 21, 22, 3, 4, 23]
    flow = [records.digest(offset, minute) for offset, minute in enumerate(minutes)]
    flow[2:2] = [records.digest(2, 29, part=1, parts=2)]
    flow = [flow[0], flow[0], *flow[1:], flow[-1]]
    flow = [msgspec.structs.replace(record, offset=offset) for offset, record in enumerate(flow)]
    place, found = ReadingPlace(query=records.query(), next={3: 0}), []
    while True:
        feed = Feed([QueryReader(place)])
        feed.add(flow[feed.positions()["cq.results", 3] :])
        if (digest := feed.take()) is None:
            break
        assert isinstance(digest, Digest)
        found.append((digest.until - NOON).seconds // 60)
        [place] = decode_cursor(feed.cursor())
    assert minutes == found


def test_a_cursor_inside_a_digest_reads_its_parts_again() -> None:
    """Parts that were read, but not handed over, are not lost by leaving."""
    flow = [records.digest(0, 1, part=1, parts=2), records.digest(1, 1, part=2, parts=2)]
    first = Feed([reader()])
    first.add(flow[:1])
    assert first.take() is None
    [place] = [each.place({("cq.results", 3): 1}) for each in first.readers]
    second = Feed([QueryReader(place)])
    second.add(flow[second.positions()["cq.results", 3] :])
    found = second.take()
    assert isinstance(found, Digest)
    assert 2 == len(found.rows)


@pytest.mark.parametrize(("minute", "seen"), [(4, False), (5, True), (6, True), (7, False)])
def test_ticks_are_those_between_start_and_expire(minute: int, seen: bool) -> None:
    """Shared digests up to START, and from EXPIRE on, are not the CQ's."""
    query = records.query(starts_at=NOON + timedelta(minutes=4), expires_at=NOON + timedelta(minutes=5.5))
    assert seen == bool(read(reader(query), [records.digest(0, minute)]))


@pytest.mark.parametrize(("seconds", "ends"), [(-1, False), (-0.001, False), (0, True), (5, True)])
def test_the_end_of_a_forerunner_is_passed_over(seconds: float, ends: bool) -> None:
    """A `cq.end` from before one's own acceptance is not one's own."""
    following = reader()
    found = read(following, [records.end(0, seconds=seconds), records.match(1, (0, 1))])
    assert ends == following.ended
    assert ends == isinstance(found[0], End)


def test_the_end_of_another_destination_is_not_ones_own() -> None:
    """Only the own destination's end ends the reading."""
    following = reader()
    assert [] == read(following, [records.end(0, seconds=1, destination="d_2")])
    assert not following.ended


def test_the_end_before_a_cq_came_is_passed_over() -> None:
    """A CQ that ALTER moved came later than it was created; the end that its destination had before is not its own."""
    following = reader(records.query(since=NOON + timedelta(seconds=2)))
    assert [] == read(following, [records.end(0, seconds=1.999)])
    assert isinstance(read(following, [records.end(1, seconds=2)])[0], End)


def test_a_reader_ends_with_its_own_leave() -> None:
    """Later results are not the reader's; a sharer's leave, and an earlier one, change nothing."""
    following = reader(records.query(member="m_1"))
    flow = [records.leave(0, "m_2"), records.match(1, (0, 1)), records.leave(2, "m_1", reason="replaced")]
    [found, end] = read(following, [*flow, records.match(3, (0, 2))])
    assert isinstance(found, Match)
    assert End("intel", NOON + timedelta(seconds=1), "replaced") == end
    assert following.ended


def test_a_reader_that_knows_no_member_passes_leaves_over() -> None:
    """A cursor of an earlier version goes on to the destination's end."""
    following = reader(records.query())
    [found, end] = read(following, [records.leave(0, "m_1"), records.match(1, (0, 1)), records.end(2, seconds=3)])
    assert isinstance(found, Match)
    assert isinstance(end, End)


def test_a_cursor_from_before_the_leave_comes_to_it() -> None:
    """Resumed, the reading goes on to the CQ's own leave, and ends there."""
    flow = [records.match(0, (0, 1)), records.match(1, (0, 2)), records.leave(2, "m_1"), records.match(3, (0, 3))]
    first = Feed([reader(records.query(member="m_1"))])
    first.add(flow[:2])
    assert first.take()
    second = Feed([QueryReader(place) for place in decode_cursor(first.cursor())])
    second.add(flow[second.positions()["cq.results", 3] :])
    found = second.take()
    assert isinstance(found, Match)
    assert (2, None) == (found.offset, second.take())
    assert second.ended
    assert "dropped" == second.ends["intel"].reason


def test_altered_window_counts_from_refresh_on() -> None:
    """A reader goes by the EXPIRE that it was told last."""
    following = reader(records.query(expires_at=NOON))
    assert [] == read(following, [records.match(0, (0, 1), seconds=5)])
    following.refresh(records.query(expires_at=NOON + timedelta(minutes=1)))
    assert [2] == [
        each.offset for each in read(following, [records.match(1, (0, 2), seconds=5)]) if isinstance(each, Match)
    ]


def test_place_without_reading_is_where_it_began() -> None:
    """Unread records are not passed."""
    place = ReadingPlace(query=records.query(), next={3: 17}, marks={0: (4, 0)}, tick=9)
    assert place == QueryReader(place).place({})


def test_a_change_of_a_table_has_its_operation_and_the_row_before() -> None:
    """The headers of a change are fields of the result; other results have neither."""
    plain, update = records.match(0, (0, 1)), records.match(1, (0, 2), row={"n": 5})
    headers = {**update.headers, "op": "update", "before": '{"n":4}'}
    found = read(reader(), [plain, msgspec.structs.replace(update, headers=headers)])
    assert [(each.op, each.before, each.row) for each in found if isinstance(each, Match)] == [
        (None, None, {"n": 1}),
        ("update", {"n": 4}, {"n": 5}),
    ]
