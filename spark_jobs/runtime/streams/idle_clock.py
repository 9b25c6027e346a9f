"""The clock of idle source partitions, which moves their watermarks on and writes marks.

If a partition has no new events for the idle time, its watermark moves on with the clock: the watermark is then its
last value, plus the time since the last new events, less the idle time. The clock sets a watermark only when a result
is due, so a stream in which no result is due costs nothing. A mark is a written note: the position of the next event,
and the watermark that the clock set before this event.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from grouping.model.catalog import Stream
from grouping.settings.settings import Settings
from spark_jobs.runtime.states.clock_marks import PlacedMark, marks_location, marks_text, read_marks
from spark_jobs.runtime.states.log_states import StateClock
from spark_jobs.runtime.streams.files import Files
from spark_jobs.runtime.streams.query_use import QueryUse

__all__ = ["IdleClock", "TopicPlace"]

TopicPlace = tuple[str, int]
"""A topic and a partition."""


@dataclass(slots=True)
class _TimedPartition:
    """A source partition of a stream with event-time queries."""

    marks: list[PlacedMark]
    quiet_since_ms: int
    """When new events were last noticed in the partition, or when the clock began."""
    stood: int | None = None
    """The watermark at the time of the last events; None until a task has reported the watermark."""
    due: int | None = None
    unsettled: bool = False
    """Whether Kafka may lack results of the last mark."""
    reported: bool = False
    """Whether a task has reported the time of the partition."""


class IdleClock:
    """The clock of the partitions of a lane. Only a single thread may use it, except for `redefine`."""

    def __init__(
        self, settings: Settings, files: Files, now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    ) -> None:
        """Begin without partitions.

        Args:
            settings: The evaluator's settings.
            files: The file system of checkpoints, which also holds the marks.
            now_ms: Returns epoch milliseconds.
        """
        self._settings = settings
        self._files = files
        self._now_ms = now_ms
        self._use: QueryUse | None = None
        self._streams: dict[str, Stream] = {}
        """The streams of the lane by topic."""
        self._timed: set[str] = set()
        """The topics of streams that are known to have event-time queries."""
        self._partitions: dict[TopicPlace, _TimedPartition] = {}

    def begin(self, streams: Iterable[Stream], use: QueryUse) -> None:
        """Set the streams of the lane's query; must be called before the query starts.

        Args:
            streams: The streams.
            use: Tells which of the streams have event-time queries.
        """
        kept = {stream.topic: stream for stream in streams}
        same = {
            topic
            for topic, stream in kept.items()
            if topic in self._streams and stream.source_id == self._streams[topic].source_id
        }
        self._partitions = {place: known for place, known in self._partitions.items() if place[0] in same}
        self._timed = {
            topic for topic, stream in kept.items() if use.has_clock(stream) or (topic in same & self._timed)
        }
        self._streams, self._use = kept, use

    def redefine(self, stream: Stream) -> None:
        """Use a changed declaration of a stream from the next mark on. Another thread may call this method."""
        if stream.topic in self._streams and self._streams[stream.topic].source_id == stream.source_id:
            self._streams[stream.topic] = stream

    @property
    def is_used(self) -> bool:
        """Whether a stream of the lane is known to have event-time queries."""
        return bool(self._timed)

    def load(self, reached: Mapping[str, Iterable[int]], committed: Callable[[str], bool]) -> None:
        """Read the marks of the partitions; must be called before the query carries out a micro-batch.

        Args:
            reached: The partitions by topic.
            committed: Takes the name of a micro-batch (`PlacedMark.batch`); returns whether the query has committed the
                micro-batch.
        """
        for topic in self._timed & reached.keys():
            for partition in reached[topic]:
                if (place := (topic, partition)) not in self._partitions:
                    known = self._known(place)
                    known.unsettled = bool(known.marks) and not committed(known.marks[-1].batch)

    def at(self, place: TopicPlace, offset: int) -> StateClock | None:
        """Return the marks of the clock at an offset of a partition; None for a stream without event-time queries.

        Args:
            place: The partition.
            offset: The offset at which the task begins.
        """
        if place[0] not in self._timed:
            return None
        known = self._known(place)
        if not known.marks or known.marks[-1].position != offset + self._streams[place[0]].base:
            return StateClock(None, None)
        watermark = known.marks[-1].watermark
        return StateClock(None, watermark) if known.unsettled else StateClock(watermark, None)

    def open_marks(self, reached: Mapping[str, Mapping[int, int]]) -> dict[TopicPlace, StateClock]:
        """Return the marks that a micro-batch must use again, by partition: Kafka may lack the results of these marks.

        Args:
            reached: By topic and partition, the offset up to which events are evaluated.
        """
        places = [(topic, each) for topic in self._timed & reached.keys() for each in reached[topic]]
        clocks = ((place, self.at(place, reached[place[0]][place[1]])) for place in places)
        return {place: clock for place, clock in clocks if clock is not None and clock.mark is not None}

    def due(self, reached: Mapping[str, Mapping[int, int]], batch: str) -> dict[TopicPlace, StateClock]:
        """Return the partitions in which a result is due, and the partitions whose event time no task has reported yet.

        For each partition in which a result is due, a mark is written.

        Args:
            reached: By topic and partition without new events, the offset up to which events are evaluated.
            batch: The name of the micro-batch that will make the results (`PlacedMark.batch`).
        """
        found = {}
        if self._use is not None:
            self._timed |= {topic for topic, stream in self._streams.items() if self._use.has_clock(stream)}
        for topic in self._timed & reached.keys():
            for partition, offset in reached[topic].items():
                place = topic, partition
                known, begin = self._known(place), self.at(place, offset)
                assert begin is not None, "the stream has event-time queries"
                watermark = self._watermark(known, self._streams[topic])
                if known.due is not None and watermark is not None and known.due <= watermark:
                    self._mark(place, PlacedMark(offset + self._streams[topic].base, watermark, batch))
                    found[place] = StateClock(begin.settled, watermark)
                elif not known.reported:
                    found[place] = begin
        return found

    def carried_out(
        self,
        events: Iterable[TopicPlace],
        clocks: Iterable[TopicPlace],
        reports: Iterable[tuple[TopicPlace, int, int | None]],
    ) -> None:
        """Take note of a committed micro-batch.

        Args:
            events: The partitions that had events.
            clocks: The partitions whose tasks got a `StateClock`. Kafka now has the results of their marks.
            reports: The tasks' reports: a partition, its watermark, and the watermark at which the next result is due.
        """
        for place in clocks:
            known = self._known(place)
            known.unsettled, known.reported = False, True
            known.due = None  # a report below may set it again
        for place in events:
            if place in self._partitions:
                self._partitions[place].quiet_since_ms, self._partitions[place].stood = self._now_ms(), None
        for place, watermark, due in reports:
            self._timed.add(place[0])
            known = self._known(place)
            known.reported, known.due = True, due
            if known.stood is None:
                known.stood = watermark

    def _known(self, place: TopicPlace) -> _TimedPartition:
        known = self._partitions.get(place)
        if known is None:
            location = marks_location(self._settings, self._streams[place[0]].source_id, place[1])
            marks = read_marks(self._files.text(location) or "")
            known = self._partitions[place] = _TimedPartition(marks, self._now_ms(), unsettled=bool(marks))
        return known

    def _watermark(self, known: _TimedPartition, stream: Stream) -> int | None:
        """Return the watermark of a partition by the clock; None while the partition is not idle."""
        ahead_ms = (
            self._now_ms() - known.quiet_since_ms - stream.event_time.idle_or(self._settings.evaluator.idle_seconds)
        )
        return None if known.stood is None or ahead_ms <= 0 else known.stood + ahead_ms

    def _mark(self, place: TopicPlace, mark: PlacedMark) -> None:
        known = self._partitions[place]
        if known.marks and known.marks[-1].position == mark.position:
            known.marks.pop()
        known.marks.append(mark)
        known.unsettled = True
        location = marks_location(self._settings, self._streams[place[0]].source_id, place[1])
        self._files.write(location, marks_text(known.marks))
