"""AT MOST: copies results from `cq.throttled` to their destinations, and leaves out those beyond the limit.

A step reads some results, decides which of them are written, and writes these results, the changed state and the
positions in one transaction. A gateway that takes over after a crash reads on from the positions with the state that
belongs to them, and decides as its predecessor did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from gateway.kafka import OutgoingRecord, Record, TailReader, Topics
from gateway.metrics import SUPPRESSED
from gateway.model.end_notice import EndNotice
from gateway.model.records import THROTTLED_PARTITIONS, Destination
from gateway.sdk.records.record import Mark
from gateway.state.commit import Commits
from gateway.state.timer_state import TimerState
from gateway.state.working_copy import WorkingCopy
from gateway.throttling.intervals import time_of, values_of
from gateway.throttling.throttle_log import ThrottleLog
from gateway.topics.positions import topic_of
from grouping.model.ids import DestinationId
from grouping.settings.settings import Settings

__all__ = ["Throttles"]

_TAKEN = 2_000
"""The largest number of results that a step reads. A step takes some 40 ms, and commands wait meanwhile."""
_TRIM_MS = 30_000
_MATCH = b"cq.match"


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
        self._topics = topics
        self._commits = commits
        self._clock = clock
        self._state = TimerState(working)
        self._log = ThrottleLog(settings)
        self._tail: TailReader | None = None
        self._trimmed_ms = clock()
        self._trimmed: dict[int, int] = {}
        self._ends: dict[str, int] = {}
        """Key of a notice whose CQs get no more results from the evaluator → the end of the destination's partition of
        `cq.throttled`, up to which results must be copied before `cq.end`."""
        self.busy = False
        """Whether more results wait for the next step."""

    def recover(self) -> None:
        """Read the state and the positions, and follow `cq.throttled` from there."""
        if self._tail is not None:
            self._tail.close()
        topic = self._settings.topics.throttled
        places = [(topic, number) for number in range(THROTTLED_PARTITIONS)]
        beginnings, ends = self._topics.offsets.beginnings(places), self._topics.offsets.ends(places)
        reached = self._log.recover()
        # A position beyond the end belongs to an earlier topic of this name.
        offsets = {
            place[1]: max(beginnings[place], known if (known := reached.get(place[1], 0)) <= ends[place] else 0)
            for place in places
        }
        self._tail = TailReader(self._settings, topic, offsets)
        self._trimmed = {partition: offset for (_, partition), offset in beginnings.items()}
        self._ends.clear()
        self.busy = True

    def step(self) -> None:
        """Copy some results, if there are any."""
        tail = self._tail
        assert tail is not None, "recovered before"
        before = tail.reached.copy()
        records = tail.read(_TAKEN)
        self.busy = len(records) == _TAKEN
        if records:
            written = list(self._written(records))
            moved = {number: offset for number, offset in tail.reached.items() if offset != before.get(number)}
            self._commits.write_records([*written, *self._log.changes(moved)])
        elif self._clock() - self._trimmed_ms >= _TRIM_MS:
            self._trim(tail.reached)

    def _written(self, records: Sequence[Record]) -> Iterator[OutgoingRecord]:
        """Yield the results that are written, as records of their destinations."""
        homes = self._destinations({DestinationId((record.key or b"").decode()) for record in records})
        for record in records:
            destination = homes.get(DestinationId((record.key or b"").decode()))
            if destination is None:  # the destination has ended, so the result is a repeat by a task of that time
                continue
            suppressed = self._suppressed(destination, record)
            if suppressed is not None:
                headers = [(name, value or b"") for name, value in record.headers]
                if suppressed:
                    headers.append(("suppressed", b"%d" % suppressed))
                topic = topic_of(self._settings, destination)
                yield OutgoingRecord(topic, record.key, record.value, tuple(headers), destination.partition)

    def _suppressed(self, destination: Destination, record: Record) -> int | None:
        """Return the number that the header of a result tells; None if the result is not written."""
        throttle, headers = destination.trigger.throttle, dict(record.headers)
        if throttle is None or headers["ce_type"] != _MATCH:  # the record after the rows of a snapshot
            return 0
        name, source, mark = destination.destination_id, *_place(headers)
        if self._log.is_repeat(name, source, mark):
            return None
        values = values_of(record.value or b"", throttle.columns)
        answer = self._log.take(name, values, time_of(headers["ce_time"] or b""), throttle)
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

    def _trim(self, reached: Mapping[int, int]) -> None:
        """Delete the records that were copied."""
        self._trimmed_ms = self._clock()
        passed = {number: offset for number, offset in reached.items() if offset > self._trimmed.get(number, 0)}
        if passed:
            self._topics.offsets.delete_before(self._settings.topics.throttled, passed)
            self._trimmed |= passed

    # -- ends ----------------------------------------------------------------------------------------------------------

    def copied(self, notice: EndNotice) -> bool:
        """Tell whether all results of an ended destination, or of departed members, are copied.

        Args:
            notice: The notice of the end. The evaluator writes no more results for its CQs.
        """
        destination = notice.destination
        if destination.trigger.at_most is None:
            return True
        assert self._tail is not None, "recovered before"
        _, partition = destination.written_by
        place = self._settings.topics.throttled, partition
        if notice.key not in self._ends:
            self._ends[notice.key] = self._topics.offsets.ends([place])[place]
        return self._tail.reached[partition] >= self._ends[notice.key]

    def forget(self, notice: EndNotice, *, lives: bool) -> list[OutgoingRecord]:
        """Forget a notice whose record is written. Return the records that delete the state of an ended destination.

        Args:
            notice: The notice.
            lives: Whether the destination has members; then its state stays.
        """
        self._ends.pop(notice.key, None)
        return [] if lives else list(self._log.forget(notice.destination.destination_id))


def _place(headers: Mapping[str, bytes | None]) -> tuple[str, Mark]:
    """Return the source partition and the place of a result from its id, which ends with a number for some results."""
    source = headers["ce_source"] or b""
    partition, position, *number = (headers["ce_id"] or b"").removeprefix(source + b"/").split(b"/")
    mark = int(position), int(number[0]) if number else 0
    return f"{partition.decode()}/{source.decode('utf-8', 'surrogatepass')}", mark
