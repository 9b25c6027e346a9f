"""Making Redis and Kafka agree again: on start, and whenever a server failed in the middle of something.

Kafka holds the record. Three things can be behind: Kafka behind the journal (the gateway died between the two halves of
a commit), Redis behind `cq.catalog` (it was killed, or lost), and the places of replies behind `cq.replies`.
"""

from __future__ import annotations

import json
import logging

import msgspec
from confluent_kafka import Message

from gateway.commit import FORMAT, Commits, Journal, Remembered, pack_position
from gateway.kafka import CommandConsumer, LogReader, Topics
from gateway.records import CatalogCq, TimedNote
from gateway.unit import CqKey
from gateway.working_copy import WorkingCopy
from grouping.catalog import Stream
from grouping.group import GroupPlan, SelectList
from grouping.redis_store import mapped
from grouping.settings import Settings

__all__ = ["Recovery"]

log = logging.getLogger(__name__)

_CHUNK = 5000


class Recovery:
    """Brings a working copy up to what Kafka has."""

    def __init__(
        self, settings: Settings, working: WorkingCopy, topics: Topics, consumer: CommandConsumer, commits: Commits
    ) -> None:
        self._settings = settings
        self._working = working
        self._topics = topics
        self._consumer = consumer
        self._commits = commits

    def run(self, now_ms: int, *, rebuild: bool = False) -> int:
        """Recover, and return the epoch that is confirmed afterwards.

        Args:
            now_ms: The present; a new epoch is never below it in seconds, so that it is new even if Redis forgot all.
            rebuild: Whether what Redis holds may not fit together and must go.

        Raises:
            OperationalError: A server does not answer; nothing is confirmed.
        """
        working = self._working
        with mapped():
            run_id = str(working.redis.info("server")["run_id"])
            body = working.redis.get(working.key("epoch"))
        old = json.loads(body) if body else {}
        if old and old["run_id"] != run_id:
            # No batch may meet these tables before they are complete.
            with mapped():
                working.redis.set(working.key("epoch"), json.dumps({**old, "run_id": ""}))
        self._commits.open()
        self._finish_journal(now_ms)
        # Without an epoch it was wiped: a position there would be of a commit that was under way.
        position = self._position() if old and not rebuild else None
        if position is None:
            working.wipe()
            position = 0
        working.open()
        replayed = self._replay_catalog(position)
        self._replay_replies(now_ms)
        self._commits.run_id = run_id
        self._consumer.rewind()
        epoch = int(old.get("epoch", 0))
        if old.get("run_id") != run_id or replayed or rebuild:
            epoch = max(epoch + 1, now_ms // 1000)
        working.epoch = epoch
        with mapped():
            working.redis.set(working.key("epoch"), json.dumps({"epoch": epoch, "run_id": run_id}))
        log.info("recovered", extra={"epoch": epoch, "replayed": replayed})
        return epoch

    def _finish_journal(self, now_ms: int) -> None:
        """Write the last unit's records to Kafka if its commands are not committed there."""
        committed = self._consumer.rewind()
        journal = self._commits.pending()
        if journal is None:
            return
        # Without commands there is nothing to tell by; written twice, its records have the same ids.
        behind = any(committed.get(partition, -1) < offset for partition, offset in journal.offsets.items())
        if behind or not journal.offsets:
            log.info("finishing the last commit", extra={"records": len(journal.records)})
            self._commits.publish(self._possible(journal), now_ms)

    def _possible(self, journal: Journal) -> Journal:
        """Leave out records for result topics that somebody has deleted: they would hold up everything for ever."""
        topics = self._topics.names()
        kept = [number for number, record in enumerate(journal.records) if record.topic in topics]
        replies = {at: journal.replies[number] for at, number in enumerate(kept) if number in journal.replies}
        return msgspec.structs.replace(journal, records=[journal.records[number] for number in kept], replies=replies)

    def _position(self) -> int | None:
        """Return up to where Redis has the catalog, None when it must be filled anew."""
        with mapped():
            body = self._working.redis.get(self._working.key("position"))
        found = json.loads(body) if body else None
        catalog = self._settings.topic("catalog")
        end = self._topics.ends([(catalog, 0)], committed=True)[catalog, 0]
        if found is None or found["format"] != FORMAT or found["next"] > end:
            return None
        return int(found["next"])

    def _replay_catalog(self, position: int) -> bool:
        """Apply what the catalog has since a position, and return whether anything was new."""
        reader = LogReader(self._settings)
        last, new = position - 1, False
        self._parts: dict[str, GroupPlan | SelectList] = {}
        self._timed: dict[str, TimedNote] = {}
        chunk: list[Message] = []
        try:
            for message in reader.since(self._settings.topic("catalog"), {0: position}):
                chunk.append(message)
                last = message.offset() or 0
                if len(chunk) == _CHUNK:
                    new |= self._apply(chunk)
                    chunk = []
            new |= self._apply(chunk)
            self._apply_timed()
        finally:
            reader.close()
        with mapped():
            self._working.redis.set(self._working.key("position"), pack_position(last + 1))
        return new

    def _apply(self, chunk: list[Message]) -> bool:
        """Bring catalog records into the working copy, in order; what it has already changes nothing."""
        working, new = self._working, False
        records = [_split(message) for message in chunk]
        cqs = [_decode_cq(rest, value) for kind, rest, value in records if kind == b"cq"]
        working.load((key for key, _ in cqs), [record.destination for _, record in cqs if record is not None])
        next_cq = iter(cqs)
        for kind, rest, value in records:
            if kind == b"cq":
                new |= self._apply_cq(*next(next_cq))
            else:
                new |= self._apply_other(kind.decode(), rest.decode(), value)
        working.commit({})
        return new

    def _apply_other(self, kind: str, name: str, value: bytes | None) -> bool:
        """Apply a record that is no CQ's, and return whether a stream came or went."""
        working = self._working
        match kind:
            case "stream" if value is None and name in working.streams:
                working.remove_stream(name)
                return True
            case "stream" if value is not None:
                stream = msgspec.json.decode(value, type=Stream)
                if stream == working.streams.get(name):
                    return False
                if name in working.streams:
                    working.replace_stream(stream)
                else:
                    working.add_stream(stream)
                return True
            case "part" if value is not None:
                part_id = name.partition("/")[2]
                part: type[GroupPlan] | type[SelectList] = GroupPlan if part_id.startswith("g_") else SelectList
                self._parts[part_id] = msgspec.json.decode(value, type=part)
            case "end":
                working.set_field("ends", name, value)
            case "timed" if value is None:
                self._timed.pop(name, None)
            case "timed" if value is not None:
                self._timed[name] = msgspec.json.decode(value, type=TimedNote)
        return False

    def _apply_timed(self) -> None:
        """Give timer-based destinations back what they have seen, at versions that are not replayed."""
        names = list(self._timed)
        for first in range(0, len(names), _CHUNK):
            chunk = names[first : first + _CHUNK]
            self._working.load_holders(chunk)
            for name in chunk:
                self._working.set_timed(name, self._timed[name])
            self._working.commit({})

    def _apply_cq(self, key: CqKey, record: CatalogCq | None) -> bool:
        have = self._working.cq(key)
        if have == (record.cq if record is not None else None):
            return False
        if record is None:
            self._working.remove(key)
        else:
            destination = record.destination
            names = (destination.group_id, destination.select_id)
            needed = [self._parts[name] for name in names if name in self._parts]
            self._working.put(key, record.cq, destination, *needed)
        return True

    def _replay_replies(self, now_ms: int) -> None:
        """Remember the places of replies that were written since they were last noted."""
        topic = self._settings.topic("replies")
        partitions = self._topics.partitions(topic) or 0
        with mapped():
            notes = self._working.redis.mget(
                [self._working.key(f"replies-read:{number}") for number in range(partitions)]
            )
        beginnings = self._topics.beginnings([(topic, number) for number in range(partitions)])
        offsets = {number: max(int(note or 0), beginnings[topic, number]) for number, note in enumerate(notes)}
        reader = LogReader(self._settings)
        chunk: list[Message] = []
        try:
            for message in reader.since(topic, offsets):
                chunk.append(message)
                if len(chunk) == _CHUNK:
                    self._note_replies(chunk, now_ms)
                    chunk = []
            self._note_replies(chunk, now_ms)
        finally:
            reader.close()

    def _note_replies(self, chunk: list[Message], now_ms: int) -> None:
        """Remember the places of replies, except for ids whose first reply is known."""
        places: dict[bytes, tuple[int, int]] = {}
        ends: dict[str, str] = {}
        for message in chunk:
            partition, offset = message.partition() or 0, message.offset() or 0
            ends[f"replies-read:{partition}"] = str(offset + 1)
            headers, key = message.headers(), message.key()
            if headers and key:
                name = Remembered.key(_bytes(key), _bytes(headers[0][1]).decode("utf-8", "surrogatepass"))
                places.setdefault(name, (partition, offset))
        known = self._commits.remembered.find(list(places), now_ms)
        fresh = {name: place for name, place in places.items() if name not in known}
        self._commits.remembered.settle(fresh, ends, now_ms)


def _split(message: Message) -> tuple[bytes, bytes, bytes | None]:
    """Return what a catalog record is about: its kind, the rest of its key, its value."""
    kind, _, rest = _bytes(message.key() or b"").partition(b"/")
    value = message.value()
    return kind, rest, None if value is None else _bytes(value)


def _decode_cq(rest: bytes, value: bytes | None) -> tuple[CqKey, CatalogCq | None]:
    return _KEY.decode(rest), None if value is None else _RECORD.decode(value)


_KEY = msgspec.json.Decoder(CqKey)
_RECORD = msgspec.json.Decoder(CatalogCq)


def _bytes(text: bytes | str) -> bytes:
    return text.encode() if isinstance(text, str) else text
