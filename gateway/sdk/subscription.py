"""The subscription: reads the results of CQs with one Kafka consumer, and gives cursors to resume from."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from gateway.sdk.errors import ClientClosed, TransportError
from gateway.sdk.inbox import Inbox
from gateway.sdk.pipeline import Inquiry
from gateway.sdk.records.cursor import ReadingPlace
from gateway.sdk.records.feed import Feed
from gateway.sdk.records.freshness import Freshness
from gateway.sdk.records.reader import QueryReader
from gateway.sdk.records.record import ResultRecord
from gateway.sdk.records.virtual import VirtualFilters
from gateway.sdk.results import ContinuousQuery, Digest, End, Match

__all__ = ["Subscription"]

log = logging.getLogger(__name__)

_PATIENCE = 30.0
"""Seconds for which results behind a known EXPIRE wait for the gateway, which may know a later EXPIRE."""
_WIDENED = 5.0
"""Seconds between two checks for new partitions of the topics of virtual destinations."""
_SLICE = 0.25
"""How long a single wait lasts, in seconds. A wait must be short, so that Ctrl-C and `close` are noticed."""

_Question = tuple[Inquiry, float]
"""An inquiry, and when it was begun."""


class Subscription:
    """The results of some CQs, to iterate over. The iteration ends when all these CQs have ended.

    Each result comes once, even if the gateway crashes and writes results again, or if the reader resumes from
    `cursor`. Only one thread may iterate; another thread may call `close`. As a context manager, the subscription
    closes itself at the end.

    Example:
        with client.subscribe("intel") as results:
            for match in results:
                print(match.row, results.cursor)
    """

    def __init__(
        self,
        bootstrap: str,
        extra: Mapping[str, str],
        places: Sequence[ReadingPlace],
        *,
        skip_lost: bool = True,
        inquire: Callable[[Sequence[str]], Inquiry] | None = None,
    ) -> None:
        filters = VirtualFilters()
        self._feed = Feed([QueryReader(place, apply=filters.of(place.query.destination)) for place in places])
        self._skip_lost = skip_lost
        self._inquire = inquire
        self._freshness = Freshness(self._feed)
        self._widened_at = time.monotonic()
        self._held: list[ResultRecord] = []
        """Records that were fetched, but wait until the state of their CQs is known."""
        self._question: _Question | None = None
        """The question whose answer the held records wait for."""
        self._overdue: _Question | None = None
        """The question about CQs whose end may be deleted."""
        self._closed = threading.Event()
        self._inbox = Inbox(bootstrap, extra)
        self._assigned = self._feed.positions()
        self._ends = len(self._feed.ends)
        self._inbox.assign(self._assigned)

    @property
    def cursor(self) -> str:
        """Opaque text for `subscribe(cursor=…)` in any process. Reading resumes after the last returned result."""
        return self._feed.cursor()

    @property
    def queries(self) -> list[ContinuousQuery]:
        """The CQs that are followed."""
        return [reader.query for reader in self._feed.readers]

    @property
    def ends(self) -> Mapping[str, End]:
        """The CQs that have ended: name → end."""
        return self._feed.ends

    @property
    def snapshots(self) -> Mapping[str, int]:
        """Complete snapshots (EMIT CHANGES WITH SNAPSHOT): name of the CQ → number of rows in its snapshot."""
        return self._feed.snapshots

    @property
    def ended(self) -> bool:
        """Whether all followed CQs have ended."""
        return self._feed.ended

    def next(self, timeout: float | None = None) -> Match | Digest | None:
        """Return the next result; None when all CQs have ended, or no result came in `timeout` seconds.

        Raises:
            ClientClosed: The subscription was closed.
            ResultsGone: Results were deleted before they were read.
            TransportError: Kafka refuses the read. An unreachable Kafka is not an error: the method waits.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while (result := self.take()) is None and not self.ended:
            left = _SLICE if deadline is None else deadline - time.monotonic()
            if left <= 0:
                return None
            self.fetch(min(_SLICE, left))
        return result

    def take(self) -> Match | Digest | None:
        """Return the next result that has been fetched already, or None.

        Raises:
            ClientClosed: The subscription was closed.
        """
        if self._closed.is_set():
            raise ClientClosed("the subscription was closed")
        return self._feed.take()

    def fetch(self, seconds: float) -> None:
        """Wait at most `seconds` for more records, and for the gateway's answers; `take` returns the results.

        Raises:
            ResultsGone: Results were deleted before they were read.
            TransportError: Kafka refuses the read.
        """
        until = time.monotonic() + seconds
        if not self._held:
            if time.monotonic() >= self._widened_at + _WIDENED:
                self._widen()
            self._close_readers()
        wanted = self._feed.positions() if len(self.ends) != self._ends else self._assigned
        if len(wanted) < len(self._assigned):
            # The topic of an ended CQ may be deleted while other CQs are still followed.
            self._inbox.leave(self._assigned.keys() - wanted.keys())
            self._assigned = wanted
        self._ends = len(self.ends)
        if not self._held:
            self._held = self._inbox.fetch(seconds, skip_lost=self._skip_lost)
            self._freshness.hear(self._held, self._inbox.lost, time.monotonic())
            self._inbox.lost.clear()
        self._ask_overdue()
        if self._held and self._is_described(max(0.0, until - time.monotonic())):
            records, self._held = self._held, []
            self._feed.add(records)

    def _widen(self) -> None:
        """Begin to read the partitions that were added to the topics of virtual destinations since the last check."""
        try:
            filtered = [reader for reader in self._feed.readers if reader.filtered]
            topics = {reader.query.destination.topic for reader in filtered}
            partitions = {topic: self._inbox.partitions(topic, _SLICE) for topic in topics}
            for reader in filtered:
                reader.widen(partitions[reader.query.destination.topic])
        except TransportError as error:
            log.info("the partitions of results are not known", extra={"error": str(error)})
        positions = self._feed.positions()
        self._inbox.enter({where: positions[where] for where in positions.keys() - self._assigned.keys()})
        self._assigned = self._assigned | positions
        self._widened_at = time.monotonic()

    def _close_readers(self) -> None:
        """End the CQs for which no more results come, once all fetched results were taken."""
        for reader in self._feed.readers:
            if reader.closing is not None and not reader.ended and not reader.closing.bounded:
                self._widen()
                try:
                    ends = {part: self._inbox.end(topic, part, _SLICE) for topic, part in reader.begins()}
                except TransportError as error:
                    log.info("the end of results is not known", extra={"error": str(error)})
                else:
                    reader.closing.bound(ends)
        self._feed.settle(self._inbox.reached)

    def _ask_overdue(self) -> None:
        """Ask the gateway about CQs whose end may be deleted, without waiting for the answer."""
        present, now = datetime.now(UTC), time.monotonic()
        if self._overdue is None and self._inquire is not None and (names := self._freshness.overdue(present, now)):
            self._overdue = self._inquire(names), now
        if self._overdue is not None and self._answered(self._overdue, 0.0):
            self._overdue = None
        self._freshness.close(present, now)

    def _is_described(self, seconds: float) -> bool:
        """Ask the gateway about the CQs of the held records; False if there is no answer within `seconds`."""
        now = time.monotonic()
        if self._question is None and self._inquire is not None and (names := self._freshness.unknown(self._held, now)):
            self._question = self._inquire(names), now
        if self._question is not None and not self._answered(self._question, seconds):
            # The question stays open. Without its answer, the last known EXPIRE decides about results, but no filter.
            is_filtered = any(reader.filtered for reader in self._feed.readers)
            return not is_filtered and now >= self._question[1] + _PATIENCE
        self._question = None
        return True

    def _answered(self, question: _Question, seconds: float) -> bool:
        """Take in the answer to a question, waiting at most `seconds`; False if there is no answer yet.

        Once the client was closed, no answer is awaited: the last known descriptions are used from then on.
        """
        inquiry, asked_at = question
        try:
            descriptions = inquiry.answers(seconds)
        except ClientClosed:
            self._inquire = None
            return True
        if descriptions is None:
            return False
        self._freshness.update(descriptions, asked_at)
        return True

    def refresh(self, queries: Sequence[ContinuousQuery]) -> None:
        """Take in the changed clauses of followed CQs. Later results are chosen by the new START and EXPIRE."""
        fresh = {query.cq: query for query in queries}
        for reader in self._feed.readers:
            query = fresh.get(reader.name)
            if query is not None and query.same_stay(reader.query):
                reader.refresh(query)

    def close(self) -> None:
        """Stop reading. `cursor` can still be read afterwards."""
        self._closed.set()
        self._inbox.close()

    def __iter__(self) -> Iterator[Match | Digest]:
        """Iterate until all CQs have ended. A later iteration continues where an earlier one was left."""
        while (result := self.next()) is not None:
            yield result

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()
