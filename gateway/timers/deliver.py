"""Delivery of digests: first the cut, in a transaction of its own, then the digests with their cursors.

If a gateway dies after the cut and before the digests, its successor finds the cut on `cq.ticks` and writes the same
digests. So no two digests with the same id differ, even for readers of uncommitted records. A successor knows from a
destination's cursor which digests are written: all digests up to the tick of the cursor.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from gateway.kafka import OutgoingRecord
from gateway.metrics import DIGESTS, LATE_MATCHES, REPEATED_MATCHES
from gateway.model.records import Destination
from gateway.state.commit import Commits
from gateway.state.timer_state import ProgressNote
from gateway.state.working_copy import WorkingCopy
from gateway.timers.cuts import Cut, Named
from gateway.topics.positions import topic_of
from grouping.digests.answers import DigestRefused
from grouping.digests.cursor import Cursor, cursor_encoder
from grouping.digests.digest import Digest, DigestTimes, column_type, digest_parts
from grouping.digests.orders import DigestOutcome
from grouping.digests.rows import DigestRows
from grouping.model.ids import DestinationId, StreamId
from grouping.plan.group import SelectList
from grouping.settings.settings import Settings
from grouping.store.record_keys import TickKey

__all__ = ["Delivery", "DueDigest", "digest_records", "source_of"]

log = logging.getLogger(__name__)

_encode = msgspec.msgpack.encode
_TRANSACTION_BYTES = 64 << 20


class DueDigest(NamedTuple):
    """A digest to be written."""

    destination: Destination
    digest: Digest
    tick_ms: int
    from_ms: int
    incarnation: str
    cursor: Cursor
    """The cursor that the destination's incarnation has after the digest."""
    letter: OutgoingRecord | None = None
    """A dead letter that is written with the digest."""

    @property
    def named(self) -> Named:
        """The digest as a cut names it."""
        return self.destination.destination_id, self.tick_ms, self.from_ms


def digest_records(
    settings: Settings, working: WorkingCopy, ready: DueDigest, fired_ms: int
) -> Iterator[OutgoingRecord]:
    """Yield a digest's records, one for each part, after the dead letter if there is one.

    Args:
        settings: The gateway's settings, which give the prefix of topics.
        working: The working copy, for the names of streams.
        ready: The digest.
        fired_ms: The time in the digest's records.
    """
    if ready.letter is not None:
        yield ready.letter
    destination = ready.destination
    frame = DigestTimes(fired_ms, ready.from_ms, ready.tick_ms)
    name, topic = destination.destination_id, topic_of(settings, destination)
    source = source_of(working, destination.stream_id)
    for body, headers in digest_parts(source, name, ready.digest, frame):
        yield OutgoingRecord(topic, name.encode(), body, headers, destination.partition)


def source_of(working: WorkingCopy, stream_id: StreamId) -> str:
    """Return the source in a stream's digests: the stream's name, or its id if the stream is dropped."""
    stream = working.inventory.streams.get(stream_id)
    return stream.name if stream is not None else stream_id


class Delivery:
    """Writes digests, cuts and cursors to Kafka."""

    def __init__(self, settings: Settings, working: WorkingCopy, commits: Commits) -> None:
        self._settings = settings
        self._working = working
        self._commits = commits
        self._topic = settings.topics.ticks
        self._number = 0

    def digest(
        self, destination: Destination, matches: DigestRows, from_ms: int, select: SelectList | None = None
    ) -> Digest:
        """Make a destination's digest.

        Args:
            destination: The destination.
            matches: All matches of the tick.
            from_ms: The instant at which the digest begins.
            select: The SELECT list, which TOP needs; looked up if None.

        Raises:
            RowsUnavailable: The disk has no space for the digest's rows.
        """
        clause = destination.clause
        if clause.kind == "top" and select is None:
            select = self._working.select(destination.stream_id, destination.select_id)
        return Digest.of(clause, column_type(clause, select), matches, from_ms)

    def cut(
        self,
        stream_id: StreamId,
        covered: dict[str, int],
        named: Sequence[Named],
        fired_ms: int,
        gaps: Iterable[DestinationId],
        reached: Mapping[int, int],
    ) -> tuple[str, Cut]:
        """Write a cut to Kafka, before its digests, and return it with its name."""
        self._number += 1
        name = f"{fired_ms}-{self._number}"
        cut = Cut(stream_id, covered, tuple(named), fired_ms, tuple(gaps), dict(reached))
        self._commits.write_records([self._record(TickKey.of("cut", name), _encode(cut))], ahead=True)
        return name, cut

    def refusal(self, destination: Destination, tick_ms: int, answer: DigestRefused) -> OutgoingRecord:
        """Return the dead letter that replaces a digest which is never made.

        Args:
            destination: The destination.
            tick_ms: The tick.
            answer: Why the digest is never made.
        """
        fate = "The digest is left out, and its matches are skipped."
        return self._letter(destination, tick_ms, fate, answer.reason, answer.code)

    def shortened(self, destination: Destination, tick_ms: int, reason: str) -> OutgoingRecord:
        """Return the dead letter about rows that a digest leaves out because they are too large for a record.

        Args:
            destination: The destination.
            tick_ms: The tick.
            reason: Which rows are left out and why, as a full sentence.
        """
        return self._letter(destination, tick_ms, "The digest is shortened.", reason, "result-too-large")

    def _letter(self, destination: Destination, tick_ms: int, fate: str, reason: str, code: str) -> OutgoingRecord:
        digest = f"{destination.destination_id}/{tick_ms}/1"
        log.error("a digest is refused or shortened", extra={"digest": digest, "fate": fate, "reason": reason})
        detail = f"{fate} {reason}"
        headers = (("code", code.encode()), ("detail", detail.encode()), ("source", digest.encode()))
        return OutgoingRecord(self._settings.topics.deadletters, None, None, headers)

    def deliver(
        self,
        name: str,
        cut: Cut,
        ready: Sequence[DueDigest],
        left: Cut | None,
        quiet: Mapping[str, Cursor],
        letters: Sequence[OutgoingRecord] = (),
    ) -> None:
        """Write digests of a cut with their cursors. Close the cut, unless some of its digests are still to be written.

        Args:
            name: The name of the cut.
            cut: The offsets that the digests cover.
            ready: The digests.
            left: The cut with the digests that are still to be written; None if there are none.
            quiet: Incarnation → new cursor, for destinations whose cursor moves without a digest.
            letters: Dead letters that replace digests.
        """
        encode = cursor_encoder()

        def records() -> Iterator[OutgoingRecord]:
            yield from letters
            for each in ready:
                yield from digest_records(self._settings, self._working, each, cut.fired_ms)
                yield self._record(TickKey.of("cursor", each.incarnation), encode(each.cursor))
            for incarnation, cursor in quiet.items():
                yield self._record(TickKey.of("cursor", incarnation), encode(cursor))

        self._write(records(), lambda: [self._record(TickKey.of("cut", name), None if left is None else _encode(left))])
        DIGESTS.inc(len(ready))
        LATE_MATCHES.inc(sum(each.digest.late for each in ready))

    def close(
        self,
        offset: int,
        records: Iterable[OutgoingRecord],
        answered: Collection[DigestOutcome],
        left: Callable[[], Mapping[str, Cut]],
    ) -> None:
        """Write an order's cursors, and mark the order as carried out.

        Args:
            offset: The order's offset on its log.
            records: Cursors, and digests that the Spark job did not write.
            answered: The outcomes of the order's digests. Reading `records` may add outcomes to this collection.
            left: Called after `records` is exhausted; returns name → cut for the digests that could not be made.
        """

        def last() -> list[OutgoingRecord]:
            cuts = [self._record(TickKey.of("cut", name), _encode(cut)) for name, cut in left().items()]
            return [*cuts, self._record(TickKey.of("closed", "orders"), _encode(offset + 1))]

        self._write(records, last)
        sent = [each for each in answered if each.sent]
        DIGESTS.inc(len(sent))
        LATE_MATCHES.inc(sum(each.late for each in sent))
        REPEATED_MATCHES.inc(sum(each.repeats for each in answered))

    def move(self, cursors: Mapping[str, Cursor], letters: Sequence[OutgoingRecord] = ()) -> None:
        """Write the cursors of destinations without a digest at their tick, with dead letters that replace digests.

        Each dead letter belongs to one of the cursors. So without cursors there are no dead letters, and nothing is
        written.
        """
        if cursors:
            encode = cursor_encoder()
            moved = (self._record(TickKey.of("cursor", name), encode(cursor)) for name, cursor in cursors.items())
            self._write(moved, lambda: letters)

    def cursor(self, incarnation: str, cursor: Cursor) -> OutgoingRecord:
        """Return the record of a cursor."""
        return self._record(TickKey.of("cursor", incarnation), _encode(cursor))

    def _write(self, records: Iterable[OutgoingRecord], last: Callable[[], Iterable[OutgoingRecord]]) -> None:
        """Write records in transactions of at most about 64 MB; the last transaction also has the records of `last`."""
        transaction: list[OutgoingRecord] = []
        size = 0
        for record in records:
            transaction.append(record)
            size += len(record.value or b"")
            if size > _TRANSACTION_BYTES:
                self._commits.write_records(transaction)
                transaction, size = [], 0
        self._commits.write_records([*transaction, *last()])

    def note_progress(self, notes: Mapping[StreamId, ProgressNote]) -> None:
        """Write the progress of streams to Kafka."""
        if notes:
            records = [self._record(TickKey.of("settled", name), _encode(note)) for name, note in notes.items()]
            self._commits.write_records(records)

    def _record(self, key: bytes, value: bytes | None) -> OutgoingRecord:
        return OutgoingRecord(self._topic, key, value, (), 0)
