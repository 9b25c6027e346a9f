"""AT MOST: copies results from `cq.throttled` to their destinations, and leaves out those beyond the limit.

A step decides which of the next results are written. The step first writes these results, and when they can be read,
the changed state with its positions. A gateway that dies in between decides again, from the earlier state and in the
same way, so it writes the same results under the same ids once more.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from gateway.kafka import LogReader, OutgoingRecord, Record, TailReader, Topics
from gateway.metrics import SUPPRESSED, UNCOPIED_RESULTS
from gateway.model.end_notice import EndNotice
from gateway.model.records import THROTTLED_PARTITIONS, Destination
from gateway.sdk.records.record import MATCH, EventSource
from gateway.state.commit import Commits
from gateway.state.timer_state import TimerState
from gateway.state.working_copy import WorkingCopy
from gateway.throttling.by_values import by_values
from gateway.throttling.intervals import time_of
from gateway.throttling.throttle_log import ThrottleLog
from gateway.topics.positions import topic_of
from grouping.model.ids import DestinationId
from grouping.settings.settings import Settings

__all__ = ["Throttles"]

log = logging.getLogger(__name__)

_TAKEN = 2_000
_TAKEN_BYTES = 4 << 20
"""The largest number of results and of bytes that a step copies. Commands wait meanwhile."""
_LOOK_MS = 10_000
"""The time between two looks at the log: its end is read for the metric, and copied records are deleted."""
_SOUGHT_MS = 5_000
_PAUSE_SECONDS = 0.5
"""How long, and how often, a topic is looked for after a failed write."""
_MATCH = MATCH.encode()


class Throttles:
    """Copies the results of throttled destinations; for use by the gateway's main thread only."""

    def __init__(
        self,
        settings: Settings,
        working: WorkingCopy,
        topics: Topics,
        commits: Commits,
        clock: Callable[[], int],
    ) -> None:
        """Begin without state; call `recover` first.

        Args:
            settings: The gateway's settings.
            working: The gateway's working copy.
            topics: Asks Kafka for the ends of `cq.throttled`, and deletes its records.
            commits: Writes records, and has the notices of ended destinations.
            clock: Returns the present, epoch milliseconds.
        """
        self._settings = settings
        self._topic = settings.topics.throttled
        self._topics = topics
        self._commits = commits
        self._clock = clock
        self._state = TimerState(working)
        self._log = ThrottleLog(settings)
        self._tail: TailReader | None = None
        self._read: deque[Record] = deque()
        """Results that were read and are not copied yet."""
        self._reached: dict[int, int] = {}
        """Partition of `cq.throttled` → offset before which all results are copied or left out."""
        self._confirmed: dict[int, int] = {}
        """The same up to the step before; the state of these results can be read."""
        self._looked_ms = clock()
        self._deleted: dict[int, int] = {}
        self._clear: dict[str, int] = {}
        """Key of a notice whose CQs get no more results from the evaluator → the destination's partition of
        `cq.throttled`, until the next step reads the partition's end."""
        self._awaited: dict[str, int] = {}
        """Key of such a notice → this end, up to which results must be copied before `cq.end`."""
        self._failed = False
        """Whether the last write failed, perhaps because the topic of a destination was deleted."""
        self._missing: set[str] = set()
        """Deleted topics. The driver would look for each of them for half a minute, while all commands wait."""
        self.busy = False
        """Whether the last step copied results, so that more of them may wait for the next step."""

    def recover(self) -> None:
        """Read the state and the positions, and follow `cq.throttled` from there."""
        if self._tail is not None:
            self._tail.close()
        places = self._places()
        beginnings, ends = self._topics.offsets.beginnings(places), self._topics.offsets.ends(places)
        reader = LogReader(self._settings)
        try:
            known = self._log.recover(reader.since(self._settings.topics.throttles, {0: 0}))
        finally:
            reader.close()
        # A position beyond the end belongs to an earlier topic of this name.
        self._reached = {
            place[1]: max(beginnings[place], at if (at := known.get(place[1], 0)) <= ends[place] else 0)
            for place in places
        }
        self._tail = TailReader(self._settings, self._topic, self._reached)
        self._read.clear()
        self._confirmed = {}
        self._deleted = {partition: offset for (_, partition), offset in beginnings.items()}
        self._awaited.clear()
        self._clear.clear()
        self.busy = True

    def _places(self) -> list[tuple[str, int]]:
        return [(self._topic, number) for number in range(THROTTLED_PARTITIONS)]

    def step(self) -> None:
        """Copy some results, if there are any."""
        tail = self._tail
        assert tail is not None, "recovered before"
        self._read_ends()
        if not self._read:
            self._reached = tail.reached.copy()
            self._read.extend(tail.read(_TAKEN))
        self.busy = bool(self._read)
        if self._read:
            self._copy(list(self._next()))
        if not 0 <= self._clock() - self._looked_ms < _LOOK_MS:
            self._look()

    def _next(self) -> Iterator[Record]:
        size = 0
        while self._read and size < _TAKEN_BYTES:
            record = self._read.popleft()
            size += len(record.value or b"")
            yield record

    def _copy(self, records: Sequence[Record]) -> None:
        written = self._without_missing(list(self._written(records)))
        self._failed = True
        if written:
            self._commits.write_records(written)
        moved = {record.partition: record.offset + 1 for record in records}
        self._commits.write_records(self._log.changes(moved), ahead=True)
        self._confirmed = self._reached.copy()  # each write waits until the state before can be read
        self._reached |= moved
        self._failed = False

    def _without_missing(self, records: list[OutgoingRecord]) -> list[OutgoingRecord]:
        """Return the records whose topics exist: Kafka accepts no record of a transaction with any other.

        Only after a failed write, and after some seconds, a topic is taken for missing: a broker does not know a new
        topic at once.
        """
        topics = {record.topic for record in records} - {self._settings.topics.results}
        self._missing -= self._topics.forms(topics & self._missing).keys()
        if self._failed and (missing := self._sought(topics - self._missing)):
            log.warning("results are lost, since their topics were deleted", extra={"topics": sorted(missing)})
            self._missing |= missing
        return [record for record in records if record.topic not in self._missing]

    def _sought(self, topics: set[str]) -> set[str]:
        """Return the topics that no broker knows for some seconds."""
        missing = topics - self._topics.forms(topics).keys()
        until_ms = self._clock() + _SOUGHT_MS
        while missing and self._clock() < until_ms:
            time.sleep(_PAUSE_SECONDS)
            missing -= self._topics.forms(missing).keys()
        return missing

    def _written(self, records: Sequence[Record]) -> Iterator[OutgoingRecord]:
        """Yield the results that are written, as records of their destinations."""
        homes = self._destinations(set(map(_name_of, records)))
        for record in records:
            destination = homes.get(_name_of(record))
            if destination is None:  # the destination has ended, so the result is a repeat by a task of that time
                continue
            try:
                suppressed = self._suppressed(destination, record)
            except (LookupError, ValueError, ArithmeticError, RecursionError):  # not a result of the evaluator
                log.exception("a result cannot be read", extra={"topic": self._topic, "position": record.position})
                continue
            if suppressed is not None:
                headers = [(name, value or b"") for name, value in record.headers]
                if suppressed:
                    headers.append(("suppressed", b"%d" % suppressed))
                topic = topic_of(self._settings, destination)
                yield OutgoingRecord(topic, record.key, record.value, tuple(headers), destination.partition)

    def _suppressed(self, destination: Destination, record: Record) -> int | None:
        """Return the number that the header of a result tells; None if the result is not written."""
        name, throttle, headers = destination.destination_id, destination.trigger.throttle, dict(record.headers)
        if throttle is None or headers["ce_type"] != _MATCH:  # the record after the rows of a snapshot
            return 0
        source = EventSource.of(_text(headers["ce_source"]), _text(headers["ce_id"]))
        if self._log.is_repeat(name, f"{source.partition}/{source.stream}", source.mark):
            return None
        values = by_values(record.value or b"", throttle.columns)
        answer = self._log.take(name, values, time_of(headers["ce_time"] or b""), record.time_ms, throttle)
        if answer is None:
            SUPPRESSED.inc()
        return answer

    def _destinations(self, names: set[DestinationId]) -> dict[DestinationId, Destination]:
        """Return the destinations of some names: the live ones, and those that have ended but still get results."""
        some = list(names)
        memberships = zip(some, self._state.memberships(some), strict=True)
        found = {name: membership.destination for name, membership in memberships if membership is not None}
        if len(found) < len(some):
            for notice in self._commits.notices.open.values():
                if (name := notice.destination.destination_id) in names:
                    found.setdefault(name, notice.destination)
        return found

    def _look(self) -> None:
        """Set the metric of results that wait, and delete records that were copied, except those of the last step."""
        self._looked_ms = self._clock()
        ends = self._topics.offsets.ends(self._places())
        UNCOPIED_RESULTS.set(sum(max(end - self._reached[number], 0) for (_, number), end in ends.items()))
        passed = {number: offset for number, offset in self._confirmed.items() if offset > self._deleted.get(number, 0)}
        if passed:
            self._topics.offsets.delete_before(self._topic, passed)
            self._deleted |= passed

    # -- ends ----------------------------------------------------------------------------------------------------------

    def _read_ends(self) -> None:
        """Read the ends that notices wait for. The evaluator has written its last results for them before."""
        if self._clear:
            ends = self._topics.offsets.ends(self._places())
            self._awaited |= {key: ends[self._topic, partition] for key, partition in self._clear.items()}
            self._clear.clear()

    def copied(self, notice: EndNotice) -> bool:
        """Tell whether all results of an ended destination, or of departed members, are copied.

        Args:
            notice: The notice of the end. The evaluator writes no more results for its CQs.
        """
        if notice.destination.trigger.at_most is None:
            return True
        _, partition = notice.destination.written_by
        end = self._awaited.get(notice.key)
        if end is None:
            self._clear[notice.key] = partition
            return False
        return self._reached[partition] >= end

    def forget(self, notice: EndNotice, *, used: bool) -> list[OutgoingRecord]:
        """Forget a notice that is done. Return the records that delete the state of an ended destination.

        Args:
            notice: The notice.
            used: Whether the destination has members, or a later end that is not done; then its state stays.
        """
        self._awaited.pop(notice.key, None)
        self._clear.pop(notice.key, None)
        return [] if used else list(self._log.forget(notice.destination.destination_id))


def _text(header: bytes | None) -> str:
    return (header or b"").decode("utf-8", "surrogatepass")


def _name_of(record: Record) -> DestinationId:
    return DestinationId((record.key or b"").decode("utf-8", "replace"))
