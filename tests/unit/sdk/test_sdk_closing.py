"""Ends that are known before everything is read: earlier records still come, then the reading ends."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from gateway.sdk.records.cursor import decode_cursor, place_of
from gateway.sdk.records.feed import Feed
from gateway.sdk.records.reader import QueryReader
from gateway.sdk.results import ContinuousQuery, End, Match, Trigger
from tests.unit.sdk import sdk_records as records
from tests.unit.sdk.sdk_records import NOON


def _spread(member: str = "m_1") -> ContinuousQuery:
    """A CQ whose results are in two partitions."""
    query = records.query(member=member)
    where = msgspec.structs.replace(query.destination, partition=None, offset=[0, 0])
    return msgspec.structs.replace(query, destination=where)


@pytest.mark.parametrize("record", [records.end(0, seconds=1), records.leave(0, "m_1")])
def test_an_end_in_one_partition_waits_for_the_others(record: records.Fields) -> None:
    """The end takes effect when the other partitions are read to their ends, even from a cursor in between."""
    end = msgspec.structs.replace(record, partition=0)
    match = msgspec.structs.replace(records.match(0, (1, 7)), partition=1)
    feed = Feed([QueryReader(place_of(_spread()))])
    feed.add([end])
    assert feed.take() is None
    again = Feed([QueryReader(place) for place in decode_cursor(feed.cursor())])
    for one, given in ((feed, [match]), (again, [end, match])):
        one.add(given)
        assert isinstance(one.take(), Match)
        assert one.take() is None
        [reader] = one.readers
        assert reader.closing is not None
        reader.closing.bound({0: 1, 1: 1})
        one.settle({("cq.results", 0): 1, ("cq.results", 1): 0})
        assert not one.ended
        one.settle({("cq.results", 0): 1, ("cq.results", 1): 1})
        assert {"intel": End("intel", NOON + timedelta(seconds=1), "dropped")} == one.ends
        assert one.ended


def test_an_end_that_is_read_is_more_exact_than_the_word_of_the_gateway() -> None:
    """A reader that is still behind learns that its CQ is gone, and then reads when and why."""
    feed = Feed([QueryReader(place_of(_spread()))])
    [reader] = feed.readers
    reader.close(End("intel", NOON + timedelta(days=1), "expired"))
    assert reader.closing is not None
    reader.closing.bound({0: 1, 1: 0})
    feed.add([msgspec.structs.replace(records.end(0, seconds=1), partition=0)])
    assert feed.take() is None
    again = decode_cursor(feed.cursor())
    assert [{0: 0, 1: 0}] == [place.next for place in again], "the end is read again after resuming"
    assert not reader.closing.bounded, "results of the other partition may have come meanwhile"
    reader.closing.bound({0: 1, 1: 1})
    feed.settle({("cq.results", 0): 1, ("cq.results", 1): 0})
    assert not feed.ended
    feed.settle({("cq.results", 0): 1, ("cq.results", 1): 1})
    assert {"intel": End("intel", NOON + timedelta(seconds=1), "dropped")} == feed.ends


@pytest.mark.parametrize(
    ("trigger", "seconds"),
    [(Trigger(), 70), (Trigger("timer", every="PT1H"), 3670), (Trigger("timer", cron="0 8 * * *"), None)],
)
def test_the_gateway_is_asked_when_the_end_should_have_come(trigger: Trigger, seconds: float | None) -> None:
    """Some seconds after EXPIRE, or after the tick behind it; where that is not known the end is waited for."""
    reader = QueryReader(place_of(records.query(expires_at=NOON + timedelta(minutes=1), trigger=trigger)))
    asked = [late for late in range(0, 10_000, 5) if reader.overdue(NOON + timedelta(seconds=late))]
    assert seconds == (asked[0] if asked else None)
    reader.close(End("intel", NOON, "expired"))
    assert not reader.overdue(NOON + timedelta(days=1))


def test_without_expire_nothing_is_asked() -> None:
    """Only EXPIRE tells a reader that a CQ should be gone."""
    assert not QueryReader(place_of(records.query())).overdue(NOON + timedelta(days=999))
