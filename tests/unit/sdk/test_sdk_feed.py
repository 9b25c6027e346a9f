"""Many CQs over one flow, and the cursor of all."""

from __future__ import annotations

import base64
import zlib
from datetime import timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.sdk.errors import BadCursor
from gateway.sdk.records.cursor import CursorWriter, decode_cursor, encode_cursor, place_of
from gateway.sdk.records.feed import Feed, places
from gateway.sdk.records.reader import QueryReader
from gateway.sdk.records.record import ResultRecord
from gateway.sdk.results import ContinuousQuery, End, Match
from tests.unit.sdk import sdk_records as records


def feed(*names: str, destination: str = "d_1") -> Feed:
    """CQs of these names that share a destination."""
    return Feed([QueryReader(place_of(records.query(name, destination))) for name in names])


def names(flow: Feed) -> list[str]:
    """Whose results come, to the last record."""
    found = []
    while (result := flow.take()) is not None:
        found.append(result.cq)
    return found


def test_sharers_of_a_destination_each_get_the_match() -> None:
    """A record is a match for every CQ followed there."""
    flow = feed("a", "b")
    flow.add([records.match(0, (0, 1)), records.match(1, (0, 2), key="d_other")])
    assert ["a", "b"] == names(flow)


def test_a_cursor_between_sharers_keeps_what_the_second_has_not_got() -> None:
    """Left after the first CQ's copy of a record, the second's comes after resuming, and the first's does not."""
    flow = feed("a", "b")
    flow.add([records.match(0, (0, 1)), records.match(1, (0, 2))])
    first = flow.take()
    assert isinstance(first, Match)
    again = Feed([QueryReader(place) for place in decode_cursor(flow.cursor())])
    again.add([records.match(0, (0, 1)), records.match(1, (0, 2))])
    assert ["b", "a", "b"] == names(again)


def test_all_have_ended_when_the_last_has() -> None:
    """The iteration goes on while one CQ is alive; ends tell when and why."""
    flow = Feed([QueryReader(place_of(records.query(name, name))) for name in ("d_1", "d_2")])
    flow.add([records.end(0, seconds=1)])
    assert [] == names(flow)
    assert not flow.ended
    flow.add([records.end(1, seconds=2, destination="d_2")])
    assert [] == names(flow)
    assert flow.ended
    assert ["dropped", "dropped"] == [end.reason for end in flow.ends.values()]
    assert {} == flow.positions()


def test_an_ended_cq_stays_ended_over_a_cursor() -> None:
    """Resuming after the end ends at once, and still tells why."""
    flow = feed("a")
    flow.add([records.end(0, seconds=1)])
    assert [] == names(flow)
    again = Feed([QueryReader(place) for place in decode_cursor(flow.cursor())])
    assert again.ended
    assert flow.ends == again.ends


def test_a_replaced_cq_begins_anew_beside_a_cursor() -> None:
    """A cursor's position counts only for the destination it was taken of; new names begin."""
    cursor = encode_cursor([place_of(records.query("a", "d_1")), place_of(records.query("b", "d_2"))])
    now = [records.query("a", "d_9"), records.query("b", "d_2"), records.query("c", "d_3")]
    assert ["d_9", "d_2", "d_3"] == [place.query.destination.id for place in places(now, cursor)]
    assert ["d_1", "d_2"] == [place.query.destination.id for place in places([], cursor)]


def recreated(offset: int) -> ContinuousQuery:
    """The CQ `a`, dropped and created anew at noon in the destination where it was, its results from an offset on."""
    query = records.query("a", member="m_2")
    return msgspec.structs.replace(query, destination=msgspec.structs.replace(query.destination, offset=offset))


def test_a_cq_created_anew_does_not_end_with_its_forerunner() -> None:
    """A cursor at the end of the first CQ goes on with the results of the second."""
    forerunner = Feed(
        [QueryReader(place_of(records.query("a", member="m_1", since=records.NOON - timedelta(hours=1))))]
    )
    forerunner.add([records.match(6, (0, 1)), records.end(7, seconds=-1)])
    assert ["a"] == names(forerunner)
    assert forerunner.ended
    flow = Feed([QueryReader(place) for place in places([recreated(8)], forerunner.cursor())])
    assert {("cq.results", 3): 8} == flow.positions()
    flow.add([records.match(8, (0, 1)), records.match(9, (0, 2))])
    assert ["a"] == names(flow)


def test_a_topic_that_was_made_anew_is_read_from_where_the_cq_begins() -> None:
    """The cursor's offset lies behind all that is there: the topic of the forerunner was deleted meanwhile."""
    [before] = places([records.query("a", member="m_1")], None)
    before.next, before.marks = {3: 5000}, {0: (700, 0)}
    flow = Feed([QueryReader(place) for place in places([recreated(0)], encode_cursor([before]))])
    flow.add([records.match(0, (0, 700)), records.match(1, (0, 701))])
    assert ["a"] == names(flow)


def test_a_cursor_that_lags_behind_goes_on_into_the_cq_created_anew() -> None:
    """Unread results of the forerunner come, its leave is skipped, and then come the results of the second CQ."""
    [before] = places([records.query("a", member="m_1")], None)
    before.next = {3: 5}
    flow = Feed([QueryReader(place) for place in places([recreated(8)], encode_cursor([before]))])
    flow.add([records.match(5, (0, 1)), records.leave(6, "m_1"), records.match(8, (0, 2))])
    assert ["a", "a"] == names(flow)


@pytest.mark.parametrize("departure", [records.leave(6, "m_1"), records.end(6, seconds=-1)])
@pytest.mark.parametrize("resumed", [False, True])
def test_results_between_two_stays_are_not_handed_over(departure: ResultRecord, resumed: bool) -> None:
    """From the forerunner's departure to the re-creation, records in the destination are for other CQs only."""
    [before] = places([records.query("a", member="m_1", since=records.NOON - timedelta(hours=1))], None)
    before.next = {3: 5}
    flow = Feed([QueryReader(place) for place in places([recreated(8)], encode_cursor([before]))])
    flow.add([records.match(5, (0, 1))])
    assert ["a"] == names(flow)
    if resumed:
        flow = Feed([QueryReader(place) for place in places([recreated(8)], flow.cursor())])
    flow.add([departure, records.match(7, (0, 2)), records.match(8, (0, 3))])
    found = flow.take()
    assert isinstance(found, Match)
    assert (3, None) == (found.offset, flow.take())
    assert not flow.ended


def test_no_reader_ends_before_its_records_are_taken() -> None:
    """A fetch whose task was cancelled may bring records behind `take`'s back: they are handed over before the end."""
    reader = QueryReader(place_of(records.query("a")))
    flow = Feed([reader])
    assert flow.take() is None
    reader.close(End("a", records.NOON, "expired"))
    assert reader.closing is not None
    reader.closing.bound({3: 1})
    flow.add([records.match(0, (0, 1))])
    flow.settle({("cq.results", 3): 1})
    assert ["a"] == names(flow)
    assert not flow.ended
    flow.settle({("cq.results", 3): 1})
    assert flow.ended


@given(st.dictionaries(st.integers(0, 99), st.integers(0, 2**62)), st.none() | st.integers(0, 2**45), st.text())
def test_cursor_keeps_every_position(marks: dict[int, int], tick: int | None, name: str) -> None:
    """A cursor is decoded to the encoded place."""
    place = place_of(records.query(name))
    place.marks, place.tick = marks, tick
    assert [place] == decode_cursor(encode_cursor([place]))


def test_a_cursor_of_the_form_before_goes_on() -> None:
    """A cursor from an earlier SDK, as programs have kept it, goes on."""
    first = place_of(records.query("a", "d_1"))
    first.marks, first.tick = {0: 7}, 1_000
    packed = zlib.compress(msgspec.msgpack.encode([first]))
    assert [first] == decode_cursor("1." + base64.urlsafe_b64encode(packed).decode().rstrip("="))


def test_cursors_follow_what_changes() -> None:
    """A writer's cursors each have the queries and positions of their moment; a CQ's text is in none of them."""
    writer, place = CursorWriter(), place_of(records.query("a", "d_1", text="CREATE CQ a …"))
    begun = writer.write([place])
    place.next = {3: 9}
    moved = writer.write([place])
    place.query = records.query("a", "d_1", status="paused")
    altered = writer.write([place])
    found = [decode_cursor(text)[0] for text in (begun, moved, altered)]
    assert [{3: 0}, {3: 9}, {3: 9}] == [each.next for each in found]
    assert [None, None, "paused"] == [each.query.status for each in found]
    assert found[0].query.text is None


@given(st.data())
def test_a_cursor_that_was_cut_or_changed_is_refused(data: st.DataObject) -> None:
    """Damage is a `BadCursor`, never another position."""
    text = encode_cursor([place_of(records.query())])
    at = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.characters(codec="ascii", exclude_characters=text[at]))
    for damaged in (text[:at], text[:at] + other + text[at + 1 :]):
        try:
            assert decode_cursor(text) == decode_cursor(damaged)  # only bits that carry nothing differ
        except BadCursor:
            continue


@pytest.mark.parametrize("text", ["", "1.", "nonsense", "2.abc", "2..", "3.abc"])
def test_other_texts_are_no_cursors(text: str) -> None:
    """Whatever is not a cursor is refused by name."""
    with pytest.raises(BadCursor):
        decode_cursor(text)


def test_a_snapshot_that_is_written_again_is_handed_over_once() -> None:
    """A worker that died amid a snapshot is succeeded by another: rows, end and changes come once, in their order."""
    flow = feed("a")
    rows = [records.match(place, source, op="snapshot") for place, source in enumerate([(0, 1), (0, 4), (1, 2)])]
    again = [msgspec.structs.replace(each, offset=each.offset + 2) for each in rows]
    assert flow.snapshots == {}
    flow.add([*rows[:2], *again, records.snapshot(5, 3)])
    flow.add([records.snapshot(6, 3), records.match(7, (0, 5), op="update"), records.match(8, (1, 2), op="snapshot")])
    found = []
    while isinstance(result := flow.take(), Match):
        found.append((result.op, result.partition, result.offset, flow.snapshots))
    assert found == [
        ("snapshot", 0, 1, {}),
        ("snapshot", 0, 4, {}),
        ("snapshot", 1, 2, {}),
        ("update", 0, 5, {"a": 3}),
    ]
