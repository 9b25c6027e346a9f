"""Decides about which CQs of a subscription the gateway is asked, and takes in its answers. No I/O.

A CQ may be altered, paused, resumed or dropped while its results are read. The subscription sends the questions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from gateway.sdk.records.feed import Feed
from gateway.sdk.records.reader import QueryReader
from gateway.sdk.records.record import ResultRecord
from gateway.sdk.results import ContinuousQuery, End

__all__ = ["Freshness"]

_DESCRIBED = 2.0
"""Seconds for which a description of a CQ with a virtual destination is current. For later records, the gateway is
asked for a new description."""
_SHORTEST_PAUSE, _LONGEST_PAUSE = 5.0, 300.0
"""Seconds between two questions to the gateway about CQs that may have ended: the first and the longest pause."""
_SILENT = 60.0
"""After this many seconds without a record, in addition to the interval of digests, no more results of a dropped CQ are
awaited."""


class Freshness:
    """How well a subscription knows the present state of its CQs. All times are in seconds of a monotonic clock."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._described_at: dict[str, float] = {}
        """Name of a CQ → time of the last question about the CQ that was answered."""
        self._heard_at: dict[str, float] = {}
        """CQs whose end may be among records that were deleted unread: name → time of the last record."""
        self._gone_at: dict[str, float] = {}
        """CQs that the gateway does not know: name → when the gateway said so first."""
        self._ask_at = 0.0
        self._pause_seconds = _SHORTEST_PAUSE

    def unknown(self, records: Sequence[ResultRecord], now: float) -> list[str]:
        """Return the CQs that must be described before these records are handed over.

        About a running CQ with a virtual destination, the gateway is asked at most every two seconds. So the beginning
        of a pause may be noticed late, and events of these two seconds may give results. About a paused CQ, the gateway
        is asked before any event is skipped, so no event after the pause is lost. Nor is a result lost because of an
        EXPIRE that was altered meanwhile: the gateway is asked before any result is skipped because of EXPIRE.
        """
        topics = {record.topic for record in records}
        found = {
            reader.name
            for reader in self._feed.readers
            if reader.filtered
            and not reader.gone
            and reader.query.destination.topic in topics
            and (reader.query.paused or now >= self._described_at.get(reader.name, float("-inf")) + _DESCRIBED)
        }
        found.update(
            reader.name
            for record in records
            for reader in self._feed.followers(record)
            if not reader.gone and reader.expires_before(record)
        )
        return sorted(found)

    def hear(self, records: Sequence[ResultRecord], lost: Collection[tuple[str, int]], now: float) -> None:
        """Take in the records of a fetch.

        Args:
            records: The records.
            lost: Topics and partitions of which records were deleted before they were read.
            now: The present of the monotonic clock.
        """
        if lost:
            for reader in self._feed.readers:
                if not reader.begins().keys().isdisjoint(lost):
                    self._heard_at[reader.name] = now
        if self._heard_at:
            heard = {reader.name for record in records for reader in self._feed.followers(record)}
            self._heard_at.update(dict.fromkeys(heard & self._heard_at.keys(), now))

    def overdue(self, time: datetime, now: float) -> list[str]:
        """Return the CQs whose end may be deleted, if it is time to ask about them.

        The EXPIRE of such a CQ is long past, or records of its partitions were deleted before they were read. All other
        readers come to the end of their CQ.

        Args:
            time: The present.
            now: The present of the monotonic clock.
        """
        found = [
            reader.name
            for reader in self._feed.readers
            if not (reader.gone or reader.ended) and (reader.name in self._heard_at or reader.overdue(time))
        ]
        if not found or now < self._ask_at:
            return []
        self._ask_at = now + self._pause_seconds
        self._pause_seconds = min(2 * self._pause_seconds, _LONGEST_PAUSE)
        return found

    def update(self, descriptions: Mapping[str, ContinuousQuery | None], asked_at: float) -> None:
        """Take in an answer of the gateway.

        Args:
            descriptions: Name → CQ; None if the gateway does not know the CQ.
            asked_at: When the gateway was asked.
        """
        for reader in self._feed.readers:
            if reader.name in descriptions:
                self._described_at[reader.name] = asked_at
                query = descriptions[reader.name]
                if query is not None and query.same_stay(reader.query):
                    reader.refresh(query)
                    # The end of a CQ that exists is still to be written.
                    self._heard_at.pop(reader.name, None)
                else:
                    self._gone_at.setdefault(reader.name, asked_at)
                    reader.forget()

    def close(self, time: datetime, now: float) -> None:
        """Close the readers of CQs that the gateway does not know any more, and whose `cq.end` may be deleted.

        All results of a CQ that has expired are on Kafka. After a DROP, results may still come while the evaluator is
        behind, so the reader of a dropped CQ must have been silent for long.

        Args:
            time: The present.
            now: The present of the monotonic clock.
        """
        for reader in self._feed.readers:
            if reader.gone and not reader.ended and reader.closing is None:
                heard_at, is_silent = self._heard_at.get(reader.name), False
                if heard_at is not None:
                    # Other CQs may send records to the same destination for ever.
                    until = min(heard_at + _SILENT, self._gone_at[reader.name] + _LONGEST_PAUSE)
                    is_silent = now >= until + reader.interval.total_seconds()
                if is_silent or reader.overdue(time):
                    reader.close(_end(reader, time))


def _end(reader: QueryReader, time: datetime) -> End:
    expires_at = reader.query.expires_at
    if expires_at is not None and expires_at <= time:
        return End(reader.name, expires_at, "expired")
    return End(reader.name, time, "dropped")
