"""A subscription asks the gateway about its CQs in time, since they may be altered, resumed or dropped meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from gateway.sdk.records.cursor import place_of
from gateway.sdk.records.feed import Feed
from gateway.sdk.records.freshness import Freshness
from gateway.sdk.records.reader import QueryReader
from gateway.sdk.records.record import ResultRecord
from gateway.sdk.results import ContinuousQuery, Digest, End, Match, Pause, Trigger
from gateway.sdk.subscription import Subscription
from tests.unit.sdk import sdk_records as records
from tests.unit.sdk.sdk_records import NOON

_LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


class _Inbox:
    """A consumer whose fetches return the records that the test has given, then nothing."""

    def __init__(self, bootstrap: str, extra: Mapping[str, str]) -> None:
        assert bootstrap and not extra
        self.fetches: list[list[ResultRecord]] = []
        self.reached: dict[tuple[str, int], int] = {}
        self.lost: set[tuple[str, int]] = set()

    def assign(self, positions: Mapping[tuple[str, int], int]) -> None:
        self.reached = dict(positions)

    def enter(self, positions: Mapping[tuple[str, int], int]) -> None:
        self.reached |= positions

    def leave(self, places: Iterable[tuple[str, int]]) -> None:
        assert places

    def fetch(self, _: float, *, skip_lost: bool) -> list[ResultRecord]:
        assert skip_lost
        found = self.fetches.pop(0) if self.fetches else []
        self.reached |= {(record.topic, record.partition): record.offset + 1 for record in found}
        return found

    def end(self, topic: str, partition: int, _: float) -> int:
        return self.reached[topic, partition]


class _Gateway:
    """Answers each question with its descriptions; a name that is missing is a CQ that the gateway does not know."""

    def __init__(self) -> None:
        self.queries: dict[str, ContinuousQuery] = {}
        self.asked: list[str] = []
        self.away = False

    def inquire(self, names: Sequence[str]) -> _Gateway:
        self.asked += names
        self.names = names
        return self

    def answers(self, seconds: float) -> Mapping[str, ContinuousQuery | None] | None:
        assert seconds <= 0.1, "no longer than the fetch"
        return None if self.away else {name: self.queries.get(name) for name in self.names}


class _Reading:
    """A subscription to a CQ, its consumer, and the gateway that it asks."""

    def __init__(self, query: ContinuousQuery) -> None:
        self.gateway = _Gateway()
        self.subscription = Subscription("nowhere", {}, [place_of(query)], inquire=self.gateway.inquire)  # type: ignore[arg-type]
        self.inbox: _Inbox = _CONSUMERS.pop()

    def read(self, *fetched: ResultRecord) -> list[int]:
        """Return the source offsets of the results after one fetch of these records."""
        self.inbox.fetches.append(list(fetched))
        self.subscription.fetch(0.1)
        found = []
        while (result := self.subscription.take()) is not None:
            assert isinstance(result, Match)
            found.append(result.offset)
        return found


_CONSUMERS: list[_Inbox] = []


@pytest.fixture(autouse=True)
def consumers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Subscriptions read from an inbox without Kafka."""

    def connect(bootstrap: str, extra: Mapping[str, str]) -> _Inbox:
        _CONSUMERS.append(_Inbox(bootstrap, extra))
        return _CONSUMERS[-1]

    monkeypatch.setattr("gateway.sdk.subscription.Inbox", connect)


_CENTURY = 100 * 365 * 86_400
"""Seconds from noon to times that no clock has reached: nothing is overdue."""


def _expiring(seconds: float) -> ContinuousQuery:
    return records.query(expires_at=NOON + timedelta(seconds=_CENTURY + seconds))


def _match(offset: int, seconds: float) -> ResultRecord:
    return records.match(offset, (0, offset), seconds=_CENTURY + seconds)


def test_a_later_expire_counts_for_the_first_result_behind_the_old_one() -> None:
    """The gateway is asked before a result is skipped because of EXPIRE, and for no result before EXPIRE."""
    reading = _Reading(_expiring(60))
    reading.gateway.queries["intel"] = _expiring(120)
    assert reading.read(_match(1, 59)) == [1]
    assert reading.gateway.asked == []
    assert reading.read(_match(2, 60), _match(3, 119)) == [2, 3]
    assert reading.read(_match(4, 120)) == []
    reading.gateway.queries["intel"] = _expiring(180)
    assert reading.read(_match(5, 121)) == [5]
    assert reading.gateway.asked == ["intel"] * 3


def test_a_digest_behind_the_old_expire_is_handed_over() -> None:
    """Digests have a time as matches have; the digest of the tick at EXPIRE is not behind EXPIRE."""
    reading = _Reading(_expiring(60))
    reading.gateway.queries["intel"] = _expiring(180)
    for minute, asked in ((1, []), (2, ["intel"])):
        reading.inbox.fetches.append([records.digest(minute, _CENTURY // 60 + minute)])
        reading.subscription.fetch(0.1)
        digest = reading.subscription.take()
        assert isinstance(digest, Digest)
        assert digest.until == NOON + timedelta(seconds=_CENTURY, minutes=minute)
        assert reading.gateway.asked == asked


def test_results_behind_expire_wait_for_the_gateway() -> None:
    """While the gateway is down, such results are neither skipped nor handed over."""
    reading = _Reading(_expiring(60))
    reading.gateway.queries["intel"] = _expiring(120)
    reading.gateway.away = True
    assert reading.read(_match(1, 61)) == reading.read() == []
    reading.gateway.away = False
    assert reading.read() == [1]
    assert reading.gateway.asked == ["intel"]


def test_a_cq_that_is_gone_is_not_asked_about_again() -> None:
    """The EXPIRE that was known last stays."""
    reading = _Reading(_expiring(60))
    for offset in range(3):
        assert reading.read(_match(offset, 61)) == []
    assert reading.gateway.asked == ["intel"]


def test_the_traffic_of_others_does_not_keep_a_reader_from_its_end() -> None:
    """The CQ has long expired, its end is deleted, and each fetch has records of other destinations."""
    reading = _Reading(records.query(expires_at=_LONG_AGO))
    for offset in range(3):
        assert reading.read(records.match(offset, (0, offset), key="d_other")) == []
    assert reading.subscription.ended
    assert reading.subscription.ends["intel"].reason == "expired"


_WHERE = ("cq.results", 3)
"""Topic and partition of the results."""


@pytest.mark.parametrize(
    ("trigger", "seconds"),
    [(Trigger(), 60), (Trigger("timer", every="PT1H"), 3660), (Trigger("timer", cron="0 8 * * *"), 60)],
)
@pytest.mark.parametrize("expires_at", [None, NOON])
def test_a_reader_whose_end_is_deleted_ends(trigger: Trigger, seconds: float, expires_at: datetime | None) -> None:
    """Records were deleted unread, the gateway knows no CQ, and no record comes any more."""
    reader = QueryReader(place_of(records.query(trigger=trigger, expires_at=expires_at)))
    freshness = Freshness(Feed([reader]))
    freshness.hear([], {_WHERE}, 100.0)
    assert freshness.overdue(NOON, 100.0) == ["intel"]
    freshness.update({"intel": None}, 100.0)
    freshness.hear([records.match(0, (0, 1))], (), 130.0)
    freshness.hear([records.match(1, (0, 1), key="d_other")], (), 140.0)
    freshness.close(NOON, 129.9 + seconds)
    assert reader.closing is None
    freshness.close(NOON, 130.0 + seconds)
    assert reader.closing is not None
    assert reader.closing.end == End("intel", NOON, "dropped" if expires_at is None else "expired")
    assert freshness.overdue(NOON, 1e9) == []


def test_a_cq_that_was_there_after_the_loss_has_its_end_before_it() -> None:
    """Its end is not among the deleted records, however long the reader is silent; a later loss is another question."""
    reader = QueryReader(place_of(records.query()))
    freshness = Freshness(Feed([reader]))
    freshness.hear([], {_WHERE}, 0.0)
    assert freshness.overdue(NOON, 0.0) == ["intel"]
    freshness.update({"intel": records.query()}, 0.0)
    assert freshness.overdue(NOON, 1e6) == []
    freshness.update({"intel": None}, 1e6)
    freshness.close(NOON, 2e6)
    assert reader.closing is None
    freshness.hear([], {_WHERE}, 3e6)
    freshness.close(NOON, 3e6 + 60)
    assert reader.closing is not None


def test_a_silent_reader_asks_nothing_if_it_has_read_all() -> None:
    """Its end is still to come, perhaps long after a DROP, while the evaluator is behind."""
    freshness = Freshness(Feed([QueryReader(place_of(records.query()))]))
    freshness.hear([], {("cq.results", 4)}, 0.0)
    assert freshness.overdue(NOON, 1e6) == []


def test_a_subscription_whose_end_is_deleted_asks_the_gateway() -> None:
    """The consumer notes the loss, and the answer comes without a record."""
    reading = _Reading(records.query())
    reading.inbox.lost.add(_WHERE)
    assert reading.read() == reading.read() == []
    assert reading.gateway.asked == ["intel"]
    assert not reading.inbox.lost


def _virtual(pauses: list[Pause]) -> ContinuousQuery:
    query = records.query(pauses=pauses)
    columns = [{"name": "n", "type": "BIGINT"}]
    where = msgspec.structs.replace(
        query.destination, mode="virtual", partition=None, offset=[0, 0, 0, 0], filter="n >= 0", select="n"
    )
    return msgspec.structs.replace(query, destination=msgspec.structs.replace(where, columns=columns))


def test_a_pause_without_an_end_does_not_outlast_its_cq() -> None:
    """The CQ was resumed, had results, and was dropped: nobody knows the end of its pause any more."""
    reading = _Reading(_virtual([Pause(NOON, NOON + timedelta(minutes=1)), Pause(NOON + timedelta(minutes=2))]))

    def written(offset: int, minutes: float) -> ResultRecord:
        return msgspec.structs.replace(records.match(offset, (0, offset)), written_at=NOON + timedelta(minutes=minutes))

    reading.gateway.queries["intel"] = reading.subscription.queries[0]
    assert reading.read(written(0, -1), written(1, 0.5), written(2, 1.5), written(3, 2.5)) == [0, 2]
    reading.gateway.queries.clear()
    assert reading.read(written(4, 0.5), written(5, 3)) == [5]
