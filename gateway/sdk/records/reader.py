"""The reader of a CQ: finds the CQ's results among the records of its destination, and hands over each result once.

A replay after a crash writes results again with the same ids. Apart from these repeats, the results of a source
partition are in source order within a destination, and the results of an event are in the order of their numbers. So a
result is new if and only if its place is after the place of the last result that was handed over for its source
partition. Therefore the reader needs one mark for each source partition, not a set of ids. Digests are compared by
their ticks. No I/O.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from gateway.sdk.records.cq_end import CqEnd
from gateway.sdk.records.cursor import ReadingPlace
from gateway.sdk.records.record import (
    DIGEST,
    END,
    LEAVE,
    MATCH,
    SNAPSHOT,
    DigestPart,
    Mark,
    ResultRecord,
    digest_part,
    end_note,
    match_fields,
    snapshot_rows,
    source_of,
)
from gateway.sdk.results import ContinuousQuery, Digest, End, Match

__all__ = ["OVERDUE", "Filter", "QueryReader"]

Filter = Callable[[Sequence[bytes]], Sequence[Mapping[str, Any] | None]]
"""Applies a virtual destination's filter and SELECT list to events, and returns a row, or None, for each event."""

_NOWHERE: Mark = (-1, 0)
"""A mark before all matches of a source partition."""
_TICKS = 100
"""The number of ticks of a CQ that are remembered. If the gateway writes a digest a second time, the repeat follows
soon, so a few ticks are enough."""
_MILLISECOND = timedelta(milliseconds=1)
OVERDUE = timedelta(seconds=10)
"""How long after a CQ's EXPIRE a reader waits for the CQ's end, before the gateway is asked about the CQ."""


class QueryReader:
    """Follows one CQ: takes in the records of its partitions in their order, and returns the new results."""

    def __init__(self, place: ReadingPlace, *, apply: Filter | None = None) -> None:
        self._query = place.query
        self._next = dict(place.next)
        self._marks = {
            partition: mark if isinstance(mark, tuple) else (mark, 0) for partition, mark in place.marks.items()
        }
        self._ticks = deque(() if place.tick is None else (place.tick,), maxlen=_TICKS)
        """The ticks of the last digests that were handed over; they are not always in ascending order."""
        self._parts: dict[int, dict[int, DigestPart]] = {}
        self._first_offset: dict[int, int] = {}
        """Tick of an incomplete digest → offset of the part that was read first."""
        self._apply = apply
        self._rows: dict[tuple[int, int], Mapping[str, Any] | None] = {}
        """Partition and offset of a record that was sifted → its row, or None if the event is not a match."""
        self.snapshot: int | None = None
        """The number of rows of the CQ's snapshot; None until this reader has handed over the whole snapshot."""
        self._end = place.end
        self._forerunner = place.forerunner
        self.closing: CqEnd | None = None
        """The CQ's end, if it is known while results may still be unread."""
        self.gone = False
        """Whether the gateway, when it was asked, did not know the CQ any more."""

    @property
    def query(self) -> ContinuousQuery:
        """The CQ that is followed."""
        return self._query

    @property
    def name(self) -> str:
        """The CQ's name."""
        return self._query.cq

    @property
    def end(self) -> End | None:
        """The CQ's end; None until all results before the end were handed over."""
        return self._end

    @property
    def ended(self) -> bool:
        """Whether the CQ has ended, so that no more results come."""
        return self._end is not None

    def refresh(self, query: ContinuousQuery) -> None:
        """Take in the CQ after an ALTER. START and EXPIRE may have changed; the destination has not."""
        self._query = query

    def forget(self) -> None:
        """Note that the gateway does not know the CQ any more.

        Nobody knows then whether the CQ was resumed before the end, so a pause without an end does not count.
        """
        self.gone = True
        pauses = [pause for pause in self._query.pauses if pause.until is not None]
        self._query = msgspec.structs.replace(self._query, pauses=pauses)

    @property
    def interval(self) -> timedelta:
        """The time between two digests; zero without EVERY, and for a cron expression."""
        every = self._query.trigger.every
        return timedelta() if every is None else msgspec.convert(every, timedelta)

    def overdue(self, now: datetime) -> bool:
        """Tell whether the CQ should have ended by now, because of its EXPIRE, although no end was read."""
        query = self._query
        if query.expires_at is None or self.ended or self.closing is not None or query.trigger.cron is not None:
            return False
        # If other CQs share the destination, pending matches come at the next tick, and the end comes after them.
        return now >= query.expires_at + self.interval + OVERDUE

    def close(self, end: End) -> None:
        """Note that the CQ has ended. The reader ends after the records that exist now."""
        self.closing = CqEnd(end)

    def settle(self, reached: Mapping[tuple[str, int], int]) -> End | None:
        """Return the CQ's end if the reader is closing and has handed over all results before the end.

        Args:
            reached: Topic and partition → the end offset of the partition when this partition was last read to its end.
        """
        topic = self._query.destination.topic
        here = {partition: offset for (name, partition), offset in reached.items() if name == topic}
        if self.closing is None or self.ended or not self.closing.complete(here):
            return None
        self._end = self.closing.end
        return self._end

    def begins(self) -> dict[tuple[str, int], int]:
        """Return topic and partition → offset at which the reader begins."""
        return {(self._query.destination.topic, partition): offset for partition, offset in self._next.items()}

    def widen(self, partitions: int) -> None:
        """Note how many partitions a virtual destination's topic has. New partitions are read from the beginning."""
        for partition in range(partitions):
            self._next.setdefault(partition, 0)

    def place(self, read: Mapping[tuple[str, int], int]) -> ReadingPlace:
        """Return the place after the last result that was handed over.

        Args:
            read: Topic and partition → offset; all records before this offset were fed. Partitions without records are
                missing.
        """
        topic = self._query.destination.topic
        resume = self._next.copy()
        for partition, offset in self._next.items():
            if (reached := read.get((topic, partition), 0)) > offset:
                resume[partition] = reached
        if self._first_offset:
            # After resuming, the parts of an incomplete digest must be read again.
            held = min(self._first_offset.values())
            resume = {partition: min(offset, held) for partition, offset in resume.items()}
        if self.closing is not None:
            resume = self.closing.resume(resume)
        tick = self._ticks[-1] if self._ticks else None
        return ReadingPlace(self._query, resume, dict(self._marks), tick, self._end, self._forerunner)

    @property
    def filtered(self) -> bool:
        """Whether records must be sifted before they are fed: the destination is virtual, and the CQ has not ended."""
        return self._apply is not None and not self.ended

    def sift(self, records: Sequence[ResultRecord], values: Sequence[bytes]) -> None:
        """Apply the filter of a virtual destination to several records at once. The records are fed afterwards.

        Args:
            records: The records.
            values: The values of the records. All readers must get the same list object, so that they share the work.

        Raises:
            FilterUnavailable: The filter cannot be applied.
        """
        if self._apply is not None and not self.ended:
            places = [(record.partition, record.offset) for record in records]
            self._rows.update(zip(places, self._apply(values), strict=True))

    def feed(self, record: ResultRecord) -> Match | Digest | End | None:
        """Take in the next record of a partition, and return the new result in it; None if there is none."""
        sifted = self._rows.pop((record.partition, record.offset), None)
        if self.ended or record.offset < self._next.get(record.partition, 0):
            return None
        match record.kind:
            case kind if kind == MATCH:
                return self._match(record, sifted)
            case kind if kind == DIGEST:
                return self._digest(record)
            case kind if kind == SNAPSHOT:
                self.snapshot = snapshot_rows(record)
            case kind if kind == END:
                return self._ending(record)
            case kind if kind == LEAVE:
                return self._leaving(record)
        return None

    def _match(self, record: ResultRecord, sifted: Mapping[str, Any] | None) -> Match | None:
        source = source_of(record)
        if source.mark <= self._marks.get(source.partition, _NOWHERE) or not self._sees(record):
            return None
        if self._apply is not None and self._paused(record.written_at):
            return None
        row = sifted if self._apply is not None else match_fields(record)
        if row is None:
            return None
        self._marks[source.partition] = source.mark
        return Match(
            cq=self.name,
            row=row,
            time=record.time,
            stream=source.stream,
            partition=source.partition,
            offset=source.offset,
            number=source.number,
            destination=self._query.destination.id,
            written_at=record.written_at,
            edge=record.headers.get("edge"),
            cause=record.headers.get("cause"),
            suppressed=int(record.headers.get("suppressed", 0)),
            op=record.headers.get("op"),
            before=None if (before := record.headers.get("before")) is None else msgspec.json.decode(before),
        )

    def expires_before(self, record: ResultRecord) -> bool:
        """Tell whether a record may be skipped because of EXPIRE."""
        expires_at = self._query.expires_at
        if expires_at is None or self.ended or record.offset < self._next.get(record.partition, 0):
            return False
        if record.kind == MATCH:
            return not self._precedes_expire(record)
        return record.kind == DIGEST and record.time > expires_at

    def _sees(self, record: ResultRecord) -> bool:
        """Tell whether a match's time is between START and EXPIRE of this CQ.

        The destination may have further matches, for other CQs.
        """
        starts_at = self._query.starts_at
        return (starts_at is None or record.time >= starts_at) and self._precedes_expire(record)

    def _precedes_expire(self, record: ResultRecord) -> bool:
        """Tell whether a match's time is before EXPIRE.

        EXPIRE itself is excluded, except for a result that waited for the watermark; such a result has a `cause`.
        """
        expires_at = self._query.expires_at
        if expires_at is None or (time := record.time) < expires_at:
            return True
        return time == expires_at and "cause" in record.headers

    def _paused(self, written_at: datetime | None) -> bool:
        """Tell whether a record was written during a pause of this CQ.

        The topic of a virtual destination has such records for the other CQs of the group.
        """
        return written_at is not None and any(
            pause.since <= written_at and (pause.until is None or written_at < pause.until)
            for pause in self._query.pauses
        )

    def _digest(self, record: ResultRecord) -> Digest | None:
        tick, part = digest_part(record)
        if tick in self._ticks:
            return None
        query = self._query
        if query.starts_at is not None and part.until <= query.starts_at:
            return None
        # If other CQs share the destination, the first tick after EXPIRE still has matches from before EXPIRE.
        if query.expires_at is not None and part.since >= query.expires_at:
            return None
        parts = self._parts.setdefault(tick, {})
        parts[part.part] = part
        if len(parts) < part.parts:
            self._first_offset.setdefault(tick, record.offset)
            return None
        self._ticks.append(tick)
        # The gateway writes the digests of a destination one after the other. So the missing parts of earlier,
        # incomplete digests do not come any more.
        self._parts.clear()
        self._first_offset.clear()
        return Digest(
            cq=self.name,
            fired_at=part.fired_at,
            since=part.since,
            until=part.until,
            count=part.count,
            rows=tuple(row for _, each in sorted(parts.items()) for row in each.rows),
            destination=query.destination.id,
            tick=tick,
        )

    def _ending(self, record: ResultRecord) -> End | None:
        destination, note = end_note(record)
        if destination != self._query.destination.id:
            return None
        # A CQ that is dropped and created again may keep the topic, with the end of the old CQ in it. `ended_at` is in
        # whole milliseconds, while the time of a reply may be finer, so one millisecond is added.
        born_at = self._query.since
        if born_at is not None and note.ended_at + _MILLISECOND <= born_at:
            if self._forerunner is not None:
                self._pass_forerunner(record.partition)
            return None
        return self._finish(End(self.name, note.ended_at, note.reason), record)

    def _leaving(self, record: ResultRecord) -> End | None:
        destination, note = end_note(record)
        own = self._query.destination
        if destination != own.id or note.member is None:
            return None
        if note.member == self._forerunner:
            self._pass_forerunner(record.partition)
        if note.member != own.member:
            return None
        return self._finish(End(self.name, note.ended_at, note.reason), record)

    def _pass_forerunner(self, partition: int) -> None:
        """Skip the records between the forerunner's departure and the CQ's own arrival: other CQs alone have them."""
        begins = self._query.destination.begins().get(partition, 0)
        self._next[partition] = max(begins, self._next.get(partition, 0))
        self._forerunner = None
        self._parts.clear()
        self._first_offset.clear()

    def _finish(self, end: End, record: ResultRecord) -> End | None:
        if len(self._next) > 1:
            # Other partitions may have results from before the end that were not read yet.
            if self.closing is None:
                self.closing = CqEnd(end)
            self.closing.found(end, (record.partition, record.offset))
            return None
        self._end = end
        return end
