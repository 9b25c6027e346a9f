"""Makes Redis and Kafka agree: at the start, and after a server failed during a write.

Kafka has the truth. Redis may lack records of `cq.catalog`, because it was killed, fell back to an earlier state, or
was lost. Kafka may lack the journal in Redis, because the gateway died between the two halves of a commit. Redis may
also lack places of replies on `cq.replies`. Recovery repairs these faults in this order. The catalog records come
before the journal, because the write of the journal advances the catalog position of Redis.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice

import msgspec

from gateway.kafka import CommandConsumer, LogReader, OutgoingRecord, Partition, Record, RecordTooLarge, Topics
from gateway.metrics import REBUILDS
from gateway.model.members import SECRET_BYTES
from gateway.state.command_ids import CommandIds, remembered_id
from gateway.state.commands_read import CommandsRead
from gateway.state.commit import Commits
from gateway.state.commit_mark import CatalogUnreadable, CommitMark, check_format
from gateway.state.journal import FORMAT, CatalogPosition, Journal
from gateway.state.recovery.catalog_replay import CatalogReplay, last_mark
from gateway.state.recovery.large_records import without_largest
from gateway.state.recovery.recovery_progress import RecoveryProgress
from gateway.state.working_copy import WorkingCopy
from grouping.settings.settings import Settings
from grouping.store.connection import mapped
from grouping.store.notes import EpochNote
from grouping.store.record_keys import CatalogKey

__all__ = ["Recovery"]

log = logging.getLogger(__name__)

_CHUNK = 5000
_FEW = 50_000
"""The largest number of catalog records that are replayed into an old Redis; if more are missing, Redis is wiped and
filled from the whole catalog."""
_TOMBSTONES_MS = 12 * 3_600_000
"""The largest age of a Redis into which missing records are replayed. The catalog keeps tombstones for only a day, so
an older Redis might miss a removal."""


class Recovery:
    """Brings a working copy up to the state that Kafka has."""

    def __init__(
        self, settings: Settings, working: WorkingCopy, topics: Topics, consumer: CommandConsumer, commits: Commits
    ) -> None:
        self._settings = settings
        self._working = working
        self._connection = working.connection
        self._topics = topics
        self._consumer = consumer
        self._commits = commits
        self.progress = RecoveryProgress()
        """The progress of this recovery."""

    def run(self, now_ms: int, *, rebuild: bool = False) -> int:
        """Recover, and return the epoch that is confirmed afterwards.

        Args:
            now_ms: The present, epoch milliseconds. A new epoch is a number not below the present in seconds, so it is
                higher than all earlier epochs, even if Redis has lost them.
            rebuild: Whether to wipe Redis and fill it from the whole catalog, because its state may be inconsistent.

        Raises:
            CatalogUnreadable: A later version of the product wrote the catalog, or Redis.
            OperationalError: A server does not answer; nothing is confirmed.
        """
        working = self._working
        with mapped():
            run_id = str(working.connection.redis.info("server")["run_id"])
            body, doubted = working.connection.redis.mget(
                working.connection.keys.epoch, working.connection.keys.doubted
            )
        old = EpochNote.unpack(body)
        rebuild = rebuild or doubted is not None
        hung = self._commits.open()
        # A Redis without an epoch was wiped, even if it has a catalog position: a commit that was under way has written
        # the position after the wipe.
        missing = self._missing(old.epoch, now_ms) if old.run_id is not None and not rebuild else None
        if missing is None:
            working.wipe()
        elif missing or old.run_id != run_id:
            self._suspend(old.epoch)
        working.open()
        mark, replayed = self._replay_catalog(missing, now_ms)
        self._finish_commit(mark, hung, now_ms)
        self._keep_secret()
        self._replay_replies(now_ms)
        self._commits.run_id = run_id
        epoch = old.epoch
        if old.run_id != run_id or replayed or missing is None:
            epoch = max(epoch + 1, mark.epoch + 1 if mark else 0, now_ms // 1000)
        if missing is None and replayed:
            REBUILDS.inc()
        working.confirm(epoch, run_id)
        self._commits.refresh(now_ms)
        log.info("recovered", extra={"epoch": epoch, "replayed": replayed})
        return epoch

    def doubt(self) -> None:
        """Make the next recovery wipe Redis and fill it from the catalog, whichever gateway recovers.

        Raises:
            OperationalError: Redis does not answer, or another gateway has taken over.
        """
        with self._connection.writing() as pipeline:
            pipeline.set(self._connection.keys.doubted, 1)

    def _suspend(self, epoch: int) -> None:
        """Withdraw the confirmation of the tables: no micro-batch may read them while they are incomplete."""
        with self._connection.writing() as pipeline:
            pipeline.set(self._connection.keys.epoch, EpochNote(epoch, "").pack())

    # -- the catalog ---------------------------------------------------------------------------------------------------

    def _missing(self, epoch: int, now_ms: int) -> list[Record] | None:
        """Return the catalog's records that Redis lacks; None if Redis must be wiped and filled from the whole catalog.

        Args:
            epoch: The epoch of Redis.
            now_ms: The present, epoch milliseconds.
        """
        with mapped():
            body = self._connection.redis.get(self._connection.keys.position)
        position = CatalogPosition.unpack(body) if body else None
        catalog = self._settings.topics.catalog
        end = self._topics.offsets.ends([(catalog, 0)], committed=True)[catalog, 0]
        if position is not None and position.format > FORMAT:
            raise CatalogUnreadable(
                f"redis holds a working copy of format {position.format}, and this version reads {FORMAT}",
                hint="Start the version that wrote the working copy, or a later version.",
            )
        if position is not None:
            check_format(position.catalog)
        if position is None or position.format != FORMAT or position.next > end:
            return None
        with self._reader() as reader:
            found = list(islice(reader.since(catalog, {0: position.next}), _FEW + 1))
        mark = last_mark(found)
        if mark is not None and mark.epoch > epoch:
            log.warning("redis is of an earlier epoch", extra={"epoch": epoch, "last": mark.epoch})
            return None
        if len(found) > _FEW or (found and now_ms > position.at_ms + _TOMBSTONES_MS):
            log.warning("redis is of another time", extra={"records": len(found), "since_ms": position.at_ms})
            return None
        return found

    def _replay_catalog(self, missing: list[Record] | None, now_ms: int) -> tuple[CommitMark | None, bool]:
        """Apply the missing records (None: all records of the catalog) to the working copy.

        Returns:
            The last mark among these records, and whether a record has changed the working copy.
        """
        replay = CatalogReplay(self._working)
        if missing is not None:
            new = replay.run(missing)
        else:
            with self._reader() as reader:
                replay.begin(reader.since(self._settings.topics.catalog, {0: 0}))
                new = replay.run(self._watched(reader, self._settings.topics.catalog, {0: 0}))
        if missing is None or missing:
            with self._connection.writing() as pipeline:
                pipeline.set(self._connection.keys.position, CatalogPosition.of(replay.following, now_ms).pack())
        return replay.mark, new

    def _keep_secret(self) -> None:
        """Read or make the secret key of members' tokens; the catalog has the key before any token is made."""
        key, name = self._connection.keys.secrets, "members"
        with mapped():
            secret = self._connection.redis.hget(key, name)
        if secret is None:
            secret = secrets.token_bytes(SECRET_BYTES)
            record = OutgoingRecord(self._settings.topics.catalog, CatalogKey.of("secret", name), secret, (), 0)
            self._commits.write_records([record])
            with self._connection.writing() as pipeline:
                pipeline.hset(key, name, secret)
        self._working.secret = secret

    # -- the last commit -----------------------------------------------------------------------------------------------

    def _finish_commit(self, mark: CommitMark | None, hung: Collection[Partition], now_ms: int) -> None:
        """Write the last unit's records to Kafka if Kafka lacks them, and set the position after the unit.

        Args:
            mark: The last mark among the catalog records that Redis lacked; None without one.
            hung: Partitions with an aborted transaction. Their records of the last unit are lost, even if Kafka
                reported the unit as written.
            now_ms: The present, epoch milliseconds.
        """
        number, journal = self._commits.pending()
        noted = self._noted(mark)
        reached = self._consumer.rewind(noted.offsets)
        if journal is not None and _is_written(journal, mark, reached):
            journal = _part(journal, lambda record: (record.topic, record.partition) in hung) if hung else None
        if journal is not None:
            log.info("finishing the last commit", extra={"records": len(journal.records)})
            topics = self._topics.names()
            # Records for deleted result topics are left out, because Kafka would never accept them.
            self._publish(_part(journal, lambda record: record.topic in topics), now_ms)
            noted = noted.then(journal.commands_read) if journal.offsets else noted
            reached = self._consumer.rewind({**reached, **journal.offsets})
        self._commits.resume(max(number, mark.number if mark else 0), noted.from_offsets(reached))

    def _publish(self, journal: Journal, now_ms: int) -> None:
        """Write a journal to Kafka, without the records that Kafka refuses because they are too large."""
        while True:
            try:
                return self._commits.publish(journal, now_ms)
            except RecordTooLarge:
                fitting = without_largest(journal, self._settings.topics.replies)
                if fitting is None:
                    raise
                journal = fitting

    def _noted(self, mark: CommitMark | None) -> CommandsRead:
        """Return the position on `cq.commands`, from the notes in Redis and on the catalog."""
        with mapped():
            body = self._connection.redis.get(self._connection.keys.commands_read)
        noted = CommandsRead.unpack(body)
        return noted if mark is None else noted.joined(mark.commands_read)

    # -- replies -------------------------------------------------------------------------------------------------------

    def _replay_replies(self, now_ms: int) -> None:
        """Store the places of the replies after the last stored place."""
        topic = self._settings.topics.replies
        partitions = self._topics.await_forms([topic])[topic].partitions
        with mapped():
            notes = self._connection.redis.mget(
                [self._connection.keys.replies_read(number) for number in range(partitions)]
            )
        beginnings = self._topics.offsets.beginnings([(topic, number) for number in range(partitions)])
        offsets = {number: max(int(note or 0), beginnings[topic, number]) for number, note in enumerate(notes)}
        with self._reader() as reader:
            records = self._watched(reader, topic, offsets)
            while chunk := list(islice(records, _CHUNK)):
                self._note_replies(chunk, now_ms)

    def _note_replies(self, chunk: list[Record], now_ms: int) -> None:
        """Store the places of replies to command ids that have no stored place yet."""
        places: dict[bytes, tuple[int, int]] = {}
        ends: dict[str, str] = {}
        for record in chunk:
            ends[self._connection.keys.replies_read(record.partition)] = str(record.offset + 1)
            if record.key and (command_id := remembered_id(record.headers)) is not None:
                places.setdefault(CommandIds.key(record.key, command_id), (record.partition, record.offset))
        known = self._commits.remembered.find(list(places), now_ms)
        fresh = {name: place for name, place in places.items() if name not in known}
        self._commits.remembered.settle(fresh, ends, now_ms)

    def _watched(self, reader: LogReader, topic: str, offsets: Mapping[int, int]) -> Iterator[Record]:
        """Yield the records of a topic from the given offsets (by partition), and report the progress."""
        ends = self._topics.offsets.ends([(topic, number) for number in offsets])
        found = {number: end for (_, number), end in ends.items()}
        return self.progress.watched(topic, offsets, found, reader.since(topic, offsets))

    @contextmanager
    def _reader(self) -> Iterator[LogReader]:
        reader = LogReader(self._settings)
        try:
            yield reader
        finally:
            reader.close()


def _part(journal: Journal, is_kept: Callable[[OutgoingRecord], bool]) -> Journal:
    """Return a journal with only the records that `is_kept` selects."""
    kept = [number for number, record in enumerate(journal.records) if is_kept(record)]
    replies = {at: journal.replies[number] for at, number in enumerate(kept) if number in journal.replies}
    return msgspec.structs.replace(journal, records=[journal.records[number] for number in kept], replies=replies)


def _is_written(journal: Journal, mark: CommitMark | None, reached: Mapping[int, int]) -> bool:
    """Tell whether Kafka has a journal: its mark, a later mark, or the committed offsets after its commands.

    The offsets alone do not show commands that were carried out before earlier ones (`ahead`), so a journal with such
    commands always has a mark.
    """
    if mark is not None and mark.number >= journal.number:
        return True
    by_offsets = bool(journal.offsets) and not journal.ahead
    return by_offsets and all(reached.get(number, -1) >= end for number, end in journal.offsets.items())
