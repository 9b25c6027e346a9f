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
from gateway.sdk.records.reader import QueryReader
from gateway.sdk.records.record import ResultRecord
from gateway.sdk.records.virtual import VirtualFilters
from gateway.sdk.results import ContinuousQuery, Digest, End, Match

__all__ = ["Subscription"]

log = logging.getLogger(__name__)

_DESCRIBED = 2.0
"""Seconds for which a description of a CQ with a virtual destination is current. For later records, the gateway is
asked for a new description."""
_SHORTEST_PAUSE, _LONGEST_PAUSE = 5.0, 300.0
"""Seconds between two questions to the gateway about CQs that should have expired: the first and the longest pause."""
_WIDENED = 5.0
"""Seconds between two checks for new partitions of the topics of virtual destinations."""
_SLICE = 0.25
"""How long a single wait lasts, in seconds. A wait must be short, so that Ctrl-C and `close` are noticed."""


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
        self._described_at = float("-inf")
        self._widened_at = time.monotonic()
        self._held: list[ResultRecord] = []
        """Records that were fetched, but wait until the pauses of their CQs are known."""
        self._pauses: Inquiry | None = None
        """The question whose answer the held records wait for."""
        self._asked_at = 0.0
        """When this question was asked."""
        self._overdue: tuple[list[QueryReader], Inquiry] | None = None
        """Readers of CQs that should have expired, and the question about these CQs."""
        self._ask_at = 0.0
        self._pause_seconds = _SHORTEST_PAUSE
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
            if not self._held:
                self._ask_overdue()
        if self._held and self._know_pauses(max(0.0, until - time.monotonic())):
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
        """Ask the gateway about CQs whose EXPIRE is long past.

        If a CQ no longer exists, all its results are on Kafka, and its reader ends after these results: the reader
        cannot wait for `cq.end`, which retention may have deleted. If the CQ still exists, it has a new EXPIRE.
        """
        now = datetime.now(UTC)
        if self._overdue is None:
            overdue = [reader for reader in self._feed.readers if reader.overdue(now)]
            if not overdue or self._inquire is None or time.monotonic() < self._ask_at:
                return
            self._overdue = overdue, self._inquire([reader.name for reader in overdue])
        overdue, inquiry = self._overdue
        found = self._answers(inquiry, 0.0)
        if found is None:
            return
        self._overdue = None
        for reader in overdue:
            if reader.name in found:
                query = found[reader.name]
                if query is not None and query.same_stay(reader.query):
                    reader.refresh(query)
                else:
                    reader.close(End(reader.name, reader.query.expires_at or now, "expired"))
        self._ask_at = time.monotonic() + self._pause_seconds
        self._pause_seconds = min(2 * self._pause_seconds, _LONGEST_PAUSE)

    def _know_pauses(self, seconds: float) -> bool:
        """Ask the gateway for the pauses of CQs with virtual destinations and new records; False if no answer came.

        About a running CQ, the gateway is asked at most every two seconds. So the beginning of a pause may be noticed
        late, and events of these two seconds may give results. About a paused CQ, the gateway is asked before any event
        is skipped, so no event after the pause is lost.
        """
        now = time.monotonic()
        if self._pauses is None:
            topics = {record.topic for record in self._held}
            due = now >= self._described_at + _DESCRIBED
            asked = [
                reader.name
                for reader in self._feed.readers
                if reader.filtered and reader.query.destination.topic in topics and (due or reader.query.paused)
            ]
            if not asked or self._inquire is None:
                return True
            self._pauses = self._inquire(asked)
            self._asked_at = now if due else self._described_at
        found = self._answers(self._pauses, seconds)
        if found is None:
            return False
        self._pauses = None
        self.refresh([query for query in found.values() if query is not None])
        self._described_at = self._asked_at
        return True

    def _answers(self, inquiry: Inquiry, seconds: float) -> Mapping[str, ContinuousQuery | None] | None:
        """Return the gateway's answers, waiting at most `seconds`; None if there is no answer yet.

        Once the client was closed, there are no answers: the last known descriptions are used from then on.
        """
        try:
            return inquiry.answers(seconds)
        except ClientClosed:
            self._inquire = None
            return {}

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
