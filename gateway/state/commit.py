"""A commit: writes a unit of work to Redis, then to Kafka.

A thread writes to Kafka while the main thread reads and compiles the next commands. The main thread carries out these
commands only after the write to Kafka is done, so there is only one journal at a time.

Redis takes the unit together with a *journal*: the content of the Kafka transaction, that is catalog records, replies,
dead letters, a mark (commit_mark.py) and the offsets of the commands. After a crash, the next gateway makes Redis and
Kafka agree (recovery.py): it writes a journal that Kafka lacks, and replays `cq.catalog` if Redis lost a unit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

from gateway.kafka import CommandConsumer, OutgoingRecord, Partition, TransactionalWriter
from gateway.model.records import Destination, feed_of
from gateway.model.unit_outcome import note_visibility
from gateway.state.catalog_records import definition_record, timed_record, with_destinations
from gateway.state.command_ids import CommandIds
from gateway.state.commands_read import CommandsInHand, CommandsRead
from gateway.state.commit_mark import CommitMark
from gateway.state.end_notices import EndNotices
from gateway.state.journal import CatalogPosition, Journal
from gateway.state.match_counts import MatchCounts
from gateway.state.work import CatalogChange, Work
from gateway.state.working_copy import WorkingCopy
from grouping.model.errors import InputError, InternalError, OperationalError
from grouping.model.ids import DestinationId, StreamId
from grouping.settings.settings import Settings
from grouping.store.connection import StoreLost, mapped
from grouping.store.record_keys import CatalogKey

__all__ = ["Commits"]

Listener = Callable[[Work], None]

_HELD_SECONDS = 20
"""While the gateway begins a snapshot, the evaluator pins no micro-batch of the stream. If the gateway dies meanwhile,
the evaluator pins micro-batches again after this time."""


class Commits:
    """Writes units of work, each exactly once."""

    def __init__(self, settings: Settings, working: WorkingCopy, consumer: CommandConsumer) -> None:
        self._settings = settings
        self._working = working
        self._connection = working.connection
        self._consumer = consumer
        self.remembered = CommandIds(settings, working)
        self.counts = MatchCounts(working)
        self.notices = EndNotices(working)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="commit")
        self._published: Future[None] | None = None
        """The write of the last unit to Kafka, until it is known to be done."""
        self._number = 0
        self.commands_read = CommandsRead()
        """The position on `cq.commands`."""
        self.source_ends: Callable[[StreamId], tuple[int, ...]] = _no_ends
        """Returns, by partition, the positions at the present ends of a stream's topic; raises InputError if an end is
        unknown."""
        self.run_id = ""
        """The run id of the Redis server that the working copy was read from."""
        self.before_write: list[Listener] = []
        """Functions called with the work of each unit, before any part of the unit is written."""
        self.after_write: list[Listener] = []
        """Functions called with the work of each unit after Redis has the unit; Kafka may not have it yet."""

    def open(self) -> frozenset[Partition]:
        """Make a new producer, since the old producer may be unusable, and abort the old producer's open transaction.

        Returns:
            The partitions with an aborted transaction. Kafka may have reported the commit of this transaction, but its
            records in these partitions are lost.
        """
        self._thread.submit(int).result()  # wait until the thread is idle
        self._published = None
        self._writer = TransactionalWriter(self._settings)
        names = self._settings.topics
        return self._writer.abort_hanging(
            (names.catalog, names.replies, names.results, names.ticks, names.throttles, names.orders), self._consumer
        )

    def resume(self, number: int, commands_read: CommandsRead) -> None:
        """Continue after a commit.

        Args:
            number: The number of the commit's journal.
            commands_read: The position on `cq.commands` after the commit.
        """
        self._number, self.commands_read = number, commands_read

    def note_made(self, topics: Collection[str]) -> None:
        """Tell the writer about topics that were created since the last unit, and to which it may write records."""
        self._writer.note_made(topics)

    def write_unit(self, work: Work, now_ms: int) -> None:
        """Write a unit with its work to Redis, and start to write its records to Kafka; `finish` waits for Kafka.

        Raises:
            StoreLost: Redis was restarted, perhaps with an older state than the unit was based on.
            OperationalError: A server failed; recovery finds out what was written.
        """
        for listener in self.before_write:
            listener(work)
        self.finish()
        self.counts.forget(self._working.unit.cleared_numbers)
        catalog = [*work.catalog, *self._closing(now_ms), *self.notices.add(work.notices)]
        self._number += 1
        read = CommandsRead()
        if work.commands_read is not None:
            read = self.commands_read = self.commands_read.then(work.commands_read)
        topic = self._settings.topics.catalog
        records = work.records + [OutgoingRecord(topic, key, value, (), 0) for key, value in catalog]
        journal = Journal(self._number, read.offsets, records, work.remembered, read.ahead)
        if catalog or read.ahead or not read.offsets:
            # Other units need no mark: the committed offsets of their commands show that Kafka has these units.
            journal.records.append(self._mark())
        begun = self._working.unit.begun_edges
        self._begin_snapshots(begun, journal)
        run_id = self._working.commit(journal.pack())
        if begun:
            run_id = self._begin_edges(begun, journal) or run_id
        if run_id != self.run_id:
            raise StoreLost("redis was restarted during a commit")
        self._published = self._thread.submit(self.publish, journal, now_ms)
        for listener in self.after_write:
            listener(work)

    def _begin_snapshots(self, begun: Collection[DestinationId], journal: Journal) -> None:
        """Set the offsets at which new queries with snapshots begin: the present ends of the tables' topics.

        No micro-batch is pinned between the reading of the ends and the commit. So a micro-batch pinned earlier has
        only events below the ends, and a micro-batch pinned later evaluates the queries. The snapshot has all changes
        below the ends, and each later change is a result.

        Args:
            begun: The new destinations of the unit whose edges begin with the unit.
            journal: The journal of the unit; its records of the catalog are changed.

        Raises:
            OperationalError: The end of a partition is unknown; nothing was written.
        """
        unit, changed = self._working.unit, dict[DestinationId, Destination]()
        there = [membership.destination for name in begun if (membership := unit.memberships.get(name)) is not None]
        with_snapshot = [each for each in there if each.edges is not None and each.edges.due_snapshot is not None]
        for stream_id in {destination.stream_id for destination in with_snapshot}:
            began = time.monotonic()
            with self._connection.writing() as pipeline:
                pipeline.set(self._connection.keys.held(stream_id), b"", px=_HELD_SECONDS * 1000)
            try:
                since = self.source_ends(stream_id)
            except InputError as error:
                raise OperationalError(error.message, detail=error.detail) from error
            if time.monotonic() - began > _HELD_SECONDS / 2:
                raise OperationalError(
                    "the ends of a table's topic came late", detail="Micro-batches may be pinned again."
                )
            for name in (each.destination_id for each in with_snapshot if each.stream_id == stream_id):
                if (moved := unit.move_edges(name, since)) is not None:
                    changed[name] = moved
        if changed:
            journal.records = list(with_destinations(journal.records, self._settings.topics.catalog, changed))

    def _begin_edges(self, begun: Collection[DestinationId], journal: Journal) -> str | None:
        """Move the beginning of new edges to the present ends of the topics, before Kafka has the replies.

        A micro-batch that was pinned before the unit evaluates its events without the unit's CQs. Therefore the edges
        must begin after these events. Otherwise an edge at one of these events would be lost: no micro-batch reports
        the edge, and the next event of the key is not an edge, because it is compared with the event before it.

        Args:
            begun: The new destinations of the unit whose edges begin with the unit.
            journal: The journal of their unit; its records of the catalog are changed.

        Returns:
            The run id of the Redis server that took the change; None if nothing has changed.
        """
        working = self._working
        changed: dict[DestinationId, Destination] = {}
        loaded = working.load_memberships(begun)
        there = [membership.destination for name in begun if (membership := loaded.membership(name)) is not None]
        # `_begin_snapshots` has set the beginning for destinations with a snapshot.
        there = [each for each in there if each.edges is None or each.edges.due_snapshot is None]
        stores = [feed_of(destination).destination_id for destination in there]
        working.load_memberships(stores)
        for stream_id in {destination.stream_id for destination in there}:
            with suppress(InputError):  # if a partition has lost its leader in the meantime, the first beginning stays
                since = self.source_ends(stream_id)  # one request for all CQs of the stream
                for name in (each.destination_id for each in there if each.stream_id == stream_id):
                    if (moved := working.unit.move_edges(name, since)) is not None:
                        changed[name] = moved
        if not changed:
            return None
        journal.records = list(with_destinations(journal.records, self._settings.topics.catalog, changed))
        return working.commit(journal.pack())

    def _closing(self, now_ms: int) -> Iterator[CatalogChange]:
        """Yield the records that follow from the whole unit: visibility, and tombstones of definitions without CQs."""
        for name, note in note_visibility(self._working.unit, now_ms).items():
            yield timed_record(name, note)
        for stream_id, item_id in self._working.unit.dependencies.unused():
            yield definition_record(stream_id, item_id, None)

    def _mark(self) -> OutgoingRecord:
        mark = CommitMark(
            self._working.inventory.epoch, self._number, self.commands_read.offsets, ahead=self.commands_read.ahead
        )
        return OutgoingRecord(self._settings.topics.catalog, CatalogKey.of("commit"), mark.encode(), (), 0)

    def refresh(self, now_ms: int) -> None:
        """Write the last mark and the offsets of all partitions again, since Kafka deletes old offsets.

        The catalog position in Redis also gets the present time.

        Raises:
            OperationalError: A server failed.
        """
        self.finish()
        read = self.commands_read
        self.publish(Journal(self._number, read.offsets, [self._mark()], {}, read.ahead), now_ms)

    def once_published(self, listener: Callable[[], None]) -> None:
        """Call a function in a thread after the last unit is on Kafka; do not call the function if the write fails."""

        def done(published: Future[None]) -> None:
            if published.exception() is None:
                listener()

        assert self._published is not None, "a unit was begun"
        self._published.add_done_callback(done)

    def finish(self) -> None:
        """Wait until the last unit is on Kafka, and the places of its replies are stored.

        Raises:
            OperationalError: A server failed; recovery finds out what was written.
        """
        published, self._published = self._published, None
        if published is not None:
            published.result()

    def check(self) -> None:
        """Check that the last unit has not failed, without waiting for it.

        Raises:
            OperationalError: A server failed; recovery finds out what was written.
        """
        if self._published is not None and self._published.done():
            self.finish()

    def look_up(self, keys: list[bytes], now_ms: int) -> Future[dict[bytes, tuple[int, int]]]:
        """Look up the places of first replies to repeated commands; the thread does so after it has written the unit.

        Args:
            keys: The keys of the commands' ids, from `CommandIds.key`.
            now_ms: The present, epoch milliseconds.
        """
        return self._thread.submit(self.remembered.find, keys, now_ms)

    def in_hand(self) -> CommandsInHand:
        """Return the commands of the last unit that a gateway has begun, even if the gateway died during the unit."""
        with mapped():
            return CommandsInHand.unpack(self._connection.redis.get(self._connection.keys.commands_in_hand))

    def take_in_hand(self, commands: CommandsInHand) -> None:
        """Note the commands of a unit before it begins.

        Raises:
            OperationalError: Redis does not answer, or another gateway has taken over.
        """
        with self._connection.writing() as pipeline:
            pipeline.set(self._connection.keys.commands_in_hand, commands.pack())

    def write_records(
        self, records: Iterable[OutgoingRecord], watched: Collection[int] = (), *, ahead: bool = False
    ) -> dict[int, int]:
        """Write records without changes in Redis, in one transaction; return the offsets of the watched records.

        With `ahead`, the method returns before readers see the records; the next write waits until readers see them.

        Raises:
            OperationalError: No record was committed.
        """
        self.finish()
        return self._writer.write(records, watched=watched, ahead=ahead)

    def pending(self) -> tuple[int, Journal | None]:
        """Return the number of the last unit, and its journal, or None if Redis notes that Kafka has the journal."""
        with mapped():
            body = self._connection.redis.get(self._connection.keys.journal)
            settled = int(self._connection.redis.get(self._connection.keys.settled) or 0)
        journal = None if body is None else Journal.unpack(body)
        number = max(settled, journal.number if journal else 0)
        return number, None if journal is None or journal.number == settled else journal

    def publish(self, journal: Journal, now_ms: int) -> None:
        """Write a journal to Kafka, and store the places of its replies."""
        catalog, replies = self._settings.topics.catalog, self._settings.topics.replies
        rows: dict[int, list[int]] = {}
        last = -1
        for number, record in enumerate(journal.records):
            if record.topic == replies:
                rows.setdefault(record.partition, []).append(number)
            elif record.topic == catalog:
                last = number  # The catalog has one partition: its last record gives the position.
        reads = (self._consumer, journal.offsets) if journal.offsets else None
        offsets: dict[int, int] = {}
        if journal.records or reads:
            watched = {row[at] for row in rows.values() for at in (0, -1)} | {last}
            offsets = self._writer.write(journal.records, reads, watched)
        places: dict[bytes, tuple[int, int]] = {}
        keys = self._connection.keys
        also: dict[str, str | bytes] = {keys.settled: str(journal.number)}
        for partition, row in rows.items():
            first = offsets[row[0]]
            if offsets[row[-1]] != first + len(row) - 1:
                # The offsets have gaps, so the places of the replies are unknown here; recovery reads the topic.
                raise OperationalError(
                    "another program writes to the topic of replies",
                    detail=f'Only the gateway may write to the topic "{replies}".',
                )
            also[keys.replies_read(partition)] = str(first + len(row))
            for offset, number in enumerate(row, first):
                if (name := journal.replies.get(number)) is not None:
                    places[name] = (partition, offset)
        if last >= 0:
            also[keys.position] = CatalogPosition.of(offsets[last] + 1, now_ms).pack()
        if journal.offsets:
            also[keys.commands_read] = journal.commands_read.pack()
        self.remembered.settle(places, also, now_ms)


def _no_ends(stream_id: StreamId) -> tuple[int, ...]:
    raise InternalError("`source_ends` is not set", detail=f"A CQ of {stream_id} has edges.")
