"""Digests are written: first the cut, in a transaction of its own, then the digests with the cursors that they move.

A gateway that dies in between finds the cut on `cq.ticks` and writes the same digests: an id never has two contents,
also for readers who do not wait for commits. A cursor that has reached a tick tells that its digest is out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from gateway.kafka import OutgoingRecord
from gateway.metrics import DIGESTS, LATE_MATCHES, REPEATED_MATCHES
from gateway.model.records import Destination
from gateway.state.commit import Commits
from gateway.state.timer_state import WatermarkNote
from gateway.state.working_copy import WorkingCopy
from gateway.timers.cuts import Cut, Named
from gateway.topics.positions import topic_of
from grouping.digests.cursor import Cursor
from grouping.digests.digest import Digest, Frame, column_type, digest_parts
from grouping.digests.orders import DigestOutcome
from grouping.digests.rows import Rows
from grouping.model.group import SelectList
from grouping.model.ids import StreamId
from grouping.settings import Settings
from grouping.store.record_keys import TickKey

__all__ = ["Delivery", "DueDigest", "digest_records", "source_of"]

_encode = msgspec.msgpack.encode
_TRANSACTION_BYTES = 64 << 20


class DueDigest(NamedTuple):
    """A digest that is to be written."""

    destination: Destination
    digest: Digest
    tick_ms: int
    from_ms: int
    incarnation: str
    cursor: Cursor
    """Of this incarnation of the destination, once the digest is out."""

    @property
    def named(self) -> Named:
        """What a cut has of it."""
        return self.destination.destination_id, self.tick_ms, self.from_ms


def digest_records(
    settings: Settings, working: WorkingCopy, ready: DueDigest, fired_ms: int
) -> Iterator[OutgoingRecord]:
    """Yield a digest's records, one for each part.

    Args:
        settings: For the topics' prefix.
        working: The streams' names.
        ready: The digest.
        fired_ms: The time that it gives as its own.
    """
    destination = ready.destination
    frame = Frame(fired_ms, ready.from_ms, ready.tick_ms)
    name, topic = destination.destination_id, topic_of(settings, destination)
    source = source_of(working, destination.stream_id)
    for body, headers in digest_parts(source, name, ready.digest, frame):
        yield OutgoingRecord(topic, name.encode(), body, headers, destination.partition)


def source_of(working: WorkingCopy, stream_id: StreamId) -> str:
    """Return what digests of a stream name as their source: its name, as long as there is one."""
    stream = working.inventory.streams.get(stream_id)
    return stream.name if stream is not None else stream_id


class Delivery:
    """Writes digests of one chunk of destinations after the other."""

    def __init__(self, settings: Settings, working: WorkingCopy, commits: Commits) -> None:
        self._settings = settings
        self._working = working
        self._commits = commits
        self._topic = settings.topics.ticks
        self._number = 0

    def digest(self, destination: Destination, matches: Rows, from_ms: int, select: SelectList | None = None) -> Digest:
        """Make a destination's digest.

        Args:
            destination: Whose.
            matches: All of the tick.
            from_ms: Where the digest begins.
            select: The SELECT list, for TOP; looked up when it is not given.

        Raises:
            RowsUnavailable: There is no room for its rows.
        """
        clause = destination.clause
        if clause.kind == "top" and select is None:
            select = self._working.select(destination.stream_id, destination.select_id)
        return Digest.of(clause, column_type(clause, select), matches, from_ms)

    def cut(
        self, stream_id: StreamId, covered: dict[str, int], named: Sequence[Named], fired_ms: int
    ) -> tuple[str, Cut]:
        """Put a cut on Kafka and return it with its name."""
        self._number += 1
        name = f"{fired_ms}-{self._number}"
        cut = Cut(stream_id, covered, tuple(named), fired_ms)
        self._commits.write_records([self._record(TickKey.cut(name), _encode(cut))])
        return name, cut

    def deliver(self, name: str, cut: Cut, ready: Sequence[DueDigest], left: Cut | None) -> None:
        """Write digests of a cut, with the cursors that they move, and what is left of it: nothing closes it."""

        def records() -> Iterator[OutgoingRecord]:
            for each in ready:
                yield from digest_records(self._settings, self._working, each, cut.fired_ms)
                yield self.cursor(each.incarnation, each.cursor)

        self._write(records(), lambda: [self._record(TickKey.cut(name), None if left is None else _encode(left))])
        DIGESTS.inc(len(ready))
        LATE_MATCHES.inc(sum(each.digest.late for each in ready))

    def close(
        self,
        offset: int,
        records: Iterable[OutgoingRecord],
        answered: Collection[DigestOutcome],
        left: Callable[[], Mapping[str, Cut]],
    ) -> None:
        """Write what an order brings with it, and that it is carried out.

        Args:
            offset: The order's, on its log.
            records: Digests that are not out yet, and cursors.
            answered: What came of its digests; complete when the records are.
            left: Called then; the cut, by its name, of those that could not be made.
        """

        def last() -> list[OutgoingRecord]:
            cuts = [self._record(TickKey.cut(name), _encode(cut)) for name, cut in left().items()]
            return [*cuts, self._record(TickKey.closed_orders(), _encode(offset + 1))]

        self._write(records, last)
        sent = [each for each in answered if each.sent]
        DIGESTS.inc(len(sent))
        LATE_MATCHES.inc(sum(each.late for each in sent))
        REPEATED_MATCHES.inc(sum(each.repeats for each in answered))

    def move(self, cursors: Mapping[str, Cursor]) -> None:
        """Put on Kafka how far destinations have been served of whose groups a tick left none."""
        if cursors:
            self._write((self.cursor(incarnation, cursor) for incarnation, cursor in cursors.items()), list)

    def cursor(self, incarnation: str, cursor: Cursor) -> OutgoingRecord:
        """Return the record of a cursor."""
        return self._record(TickKey.cursor(incarnation), _encode(cursor))

    def _write(self, records: Iterable[OutgoingRecord], last: Callable[[], Iterable[OutgoingRecord]]) -> None:
        """Write records in one transaction, or in more where they are large: the last records in the last of these."""
        some: list[OutgoingRecord] = []
        size = 0
        for record in records:
            some.append(record)
            size += len(record.value or b"")
            if size > _TRANSACTION_BYTES:
                self._commits.write_records(some)
                some, size = [], 0
        self._commits.write_records([*some, *last()])

    def note_watermark(self, notes: Mapping[StreamId, WatermarkNote]) -> None:
        """Put on Kafka up to when the ticks of streams have fired."""
        if notes:
            records = [self._record(TickKey.watermark(name), _encode(note)) for name, note in notes.items()]
            self._commits.write_records(records)

    def _record(self, key: bytes, value: bytes | None) -> OutgoingRecord:
        return OutgoingRecord(self._topic, key, value, (), 0)
