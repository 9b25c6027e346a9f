"""The SDK's Kafka consumer: returns records without objects of the driver, and turns driver errors into SDK errors."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from gateway.sdk.doubts import Doubts
from gateway.sdk.driver_errors import CLIENT_OPTIONS, deleted, gone, mapped, passing, thrown, unknown
from gateway.sdk.errors import ClientClosed, TransportError
from gateway.sdk.records.record import ResultRecord
from gateway.sdk.silence import Silence
from schemas.record_headers import headers_of

__all__ = ["Inbox"]

log = logging.getLogger(__name__)

_LOOK_SECONDS = 5.0
"""The longest wait for Kafka's answer to a question about topics or partitions."""
_QUIET_SECONDS = 60.0
"""Time between two checks of topics without new records. librdkafka does not report that such a topic was deleted."""
_LATEST_MS = 253_402_300_799_999
"""The last instant that a `datetime` can have; a broker may let records with later times in."""
_FEW = 5
"""Up to this number of topics, Kafka is asked about each topic. For more topics, Kafka is asked for its whole list."""


class Inbox:
    """A consumer of assigned partitions, which joins no consumer group and stores no offsets at the broker.

    `fetch` and `close` may be called by different threads: `close` waits until a running `fetch` is done.
    """

    def __init__(self, bootstrap: str, extra: Mapping[str, str], clock: Callable[[], float] = time.monotonic) -> None:
        """Connect.

        Args:
            bootstrap: Kafka's bootstrap servers.
            extra: Further options of librdkafka.
            clock: Returns the present, in seconds of a monotonic clock.
        """
        options = {
            **CLIENT_OPTIONS,
            **extra,
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 100,
            "fetch.error.backoff.ms": 50,
            "queued.max.messages.kbytes": 32_768,
        }
        self._options = options
        self._consumer = Consumer(options)
        self._clock = clock
        self._silence = Silence(clock)
        self._look_at = clock() + _QUIET_SECONDS
        self._positions: dict[tuple[str, int], int] = {}
        """Topic and partition → offset of the next record, at the last check for deleted topics."""
        self._lock = threading.Lock()
        self._closed = False
        self._trouble: TransportError | None = None
        self.doubts = Doubts()
        """Assigned partitions whose topics the broker did not know."""
        self._begins: dict[tuple[str, int], int] = {}
        """Assigned topic and partition → offset at which reading began."""
        self.reached: dict[tuple[str, int], int] = {}
        """Topic and partition → the end offset of the partition when this partition was last read to its end."""
        self.lost: set[tuple[str, int]] = set()
        """Partitions of which records were deleted before they were read, until the caller forgets them."""

    def end(self, topic: str, partition: int, seconds: float) -> int:
        """Return the offset that the partition's next record will have; wait at most `seconds` for Kafka.

        Raises:
            TransportError: Kafka cannot be reached.
        """
        try:
            offsets = self._consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=seconds)
        except KafkaException as exc:
            raise thrown(exc, f'asking for the end of "{topic}"') from exc
        if offsets is None:
            raise TransportError(f'asking for the end of "{topic}": no answer in time')
        return int(offsets[1])

    def partitions(self, topic: str, seconds: float) -> int:
        """Return how many partitions a topic has now; wait at most `seconds` for Kafka.

        Raises:
            TransportError: Kafka cannot be reached.
        """
        try:
            return len(self._consumer.list_topics(topic, timeout=seconds).topics[topic].partitions)
        except KafkaException as exc:
            raise thrown(exc, f'asking for the partitions of "{topic}"') from exc

    def assign(self, positions: Mapping[tuple[str, int], int]) -> None:
        """Read these partitions from these offsets on, and stop reading all others."""
        self._begins = dict(positions)
        self._silence.begin(positions)
        self._consumer.assign([TopicPartition(*where, offset) for where, offset in positions.items()])

    def enter(self, positions: Mapping[tuple[str, int], int]) -> None:
        """Read these partitions in addition, from these offsets on."""
        self._begins |= positions
        self._silence.await_from(positions)
        self._consumer.incremental_assign([TopicPartition(*where, offset) for where, offset in positions.items()])

    def leave(self, places: Iterable[tuple[str, int]]) -> None:
        """Stop reading these partitions. From now on, their topics may be deleted without an error."""
        left = list(places)
        with self._lock:
            if not self._closed:
                for where in left:
                    self._begins.pop(where, None)
                self.doubts.forget(left)
                self._silence.heard(left)
                self._consumer.incremental_unassign([TopicPartition(*where) for where in left])

    def fetch(self, seconds: float, *, most: int = 2000, skip_lost: bool = True) -> list[ResultRecord]:
        """Return the next records, waiting at most `seconds` for the first.

        Args:
            seconds: The longest wait, in seconds.
            most: The largest number of records to return.
            skip_lost: Whether reading continues with the first record that Kafka still has, if the records at the
                requested offset were deleted.

        Raises:
            ClientClosed: The consumer was closed.
            ResultsGone: A topic was deleted, or records were deleted and `skip_lost` is False.
            TransportError: Kafka refuses the read.
        """
        return [_freed(message) for message in self._next(seconds, most, skip_lost, follow_new_topic=False)]

    def replies(self, seconds: float, key: bytes, *, most: int = 5000) -> list[tuple[bytes, dict[str, bytes | None]]]:
        """Return the values and headers of the next records with this key; skip other records. Wait like `fetch`."""
        found = (message for message in self._next(seconds, most, True, follow_new_topic=True) if message.key() == key)
        return [(message.value() or b"", dict(headers_of(message) or ())) for message in found]

    def _next(self, seconds: float, most: int, skip_lost: bool, *, follow_new_topic: bool) -> list[Message]:
        with self._lock:
            if self._closed:
                raise ClientClosed("the consumer was closed")
            try:
                # `consume` waits until it has all the records that it is asked for. Records that have come in must be
                # returned at once, so `poll` waits for the first record, and `consume` does not wait.
                first = self._consumer.poll(seconds)
                messages = [] if first is None else [first, *self._consumer.consume(most - 1, 0)]
            except KafkaException as exc:
                raise thrown(exc, "reading") from exc
            self._silence.heard(map(_place, filter(_tells, messages)))
            self._look_for_quiet_topics()
            self._resolve_doubts()
            sound = self.sound(messages, skip_lost, follow_new_topic=follow_new_topic)
            if self._silence.is_long():
                self._renew()
            return sound

    def _renew(self) -> None:
        """Replace the driver's consumer with a new one at the same positions; `silence.py` has the reason."""
        found = self._consumer.position([TopicPartition(*where) for where in self._begins])
        positions = {(one.topic, one.partition): one.offset for one in found if one.offset >= 0}
        self._consumer.close()
        self._consumer = Consumer(self._options)
        self._consumer.assign([TopicPartition(*where, offset) for where, offset in (self._begins | positions).items()])

    def close(self) -> None:
        """Close the consumer and end the driver's threads."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._consumer.close()

    def sound(self, messages: Iterable[Message], skip_lost: bool, *, follow_new_topic: bool = True) -> list[Message]:
        """Return the messages that are records. A lasting error is raised by the first call without a record to return.

        Args:
            messages: Messages from the driver: records, ends of partitions, and errors.
            skip_lost: Whether reading continues with the first record that Kafka still has, if the next records were
                deleted.
            follow_new_topic: With `skip_lost`: whether reading also continues in a topic that was deleted and created
                again.
        """
        sound = []
        for message in messages:
            error = message.error()
            if error is None:
                sound.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001  librdkafka's own code
                self.reached[_place(message)] = message.offset() or 0
            elif deleted(error) and skip_lost:
                where = TopicPartition(*_place(message), OFFSET_BEGINNING)
                if where not in self._consumer.assignment():
                    continue  # the error is about a partition that is no longer read
                if not follow_new_topic and self._ends_before(where):
                    # The partition is shorter than before, so the topic is a new one, with results of other queries.
                    self._trouble = gone(f'reading "{where.topic}"', "The topic was deleted and made again.")
                    continue
                log.warning("results were deleted before they were read", extra={"topic": where.topic})
                self.lost.add((where.topic, where.partition))
                self._consumer.incremental_unassign([where])
                self._consumer.incremental_assign([where])
            elif unknown(error):
                self.doubts.note(_place(message), self._clock())
            elif not passing(error):
                self._trouble = mapped(error, f'reading "{message.topic()}"')
        if self._trouble is not None and not sound:
            trouble, self._trouble = self._trouble, None
            raise trouble
        return sound

    def _look_for_quiet_topics(self) -> None:
        """Once a minute, check the topics of partitions that had no new records since the last check.

        If Kafka does not know such a topic, the partition is added to `doubts`.
        """
        if self._clock() < self._look_at or not self._begins:
            return
        self._look_at = self._clock() + _QUIET_SECONDS
        found = self._consumer.position([TopicPartition(*where) for where in tuple(self._begins)])
        before, self._positions = self._positions, {(one.topic, one.partition): one.offset for one in found}
        quiet = {where for where, offset in self._positions.items() if before.get(where) == offset}
        unknown_topics = self._unknown({topic for topic, _ in quiet})
        for where in quiet:
            if where[0] in unknown_topics:
                self.doubts.note(where, self._clock())

    def _unknown(self, topics: set[str]) -> set[str]:
        """Return the topics among these that Kafka does not know; an empty set if Kafka does not answer."""
        try:
            if len(topics) > _FEW:
                return topics - self._consumer.list_topics(timeout=_LOOK_SECONDS).topics.keys()
            answers = [self._consumer.list_topics(topic, timeout=_LOOK_SECONDS).topics[topic] for topic in topics]
        except KafkaException:
            return set()
        return {str(answer.topic) for answer in answers if answer.error is not None and unknown(answer.error)}

    def _ends_before(self, where: TopicPartition) -> bool:
        """Tell whether a partition ends before the next offset to read; False if this is unknown."""
        place = TopicPartition(where.topic, where.partition)
        try:
            [position] = self._consumer.position([place])
            ends = self._consumer.get_watermark_offsets(place, timeout=_LOOK_SECONDS)
        except KafkaException:
            return False
        next_offset = position.offset if position.offset >= 0 else self._begins.get((where.topic, where.partition), 0)
        return ends is not None and 0 <= ends[1] < next_offset

    def _resolve_doubts(self) -> None:
        """Ask again about doubtful topics: read on in a topic that exists, and note an error for a deleted topic.

        Without this method, librdkafka would read on in an existing topic only minutes later.
        """
        places = self.doubts.due(self._clock())
        if not places:
            return
        try:
            there = self._consumer.list_topics(timeout=_LOOK_SECONDS).topics
            positions = self._consumer.position([TopicPartition(*where) for where in places])
        except KafkaException:
            for where in places:
                self.doubts.note(where, self._clock())
            return
        for where, position in zip(places, positions, strict=True):
            if where not in self._begins:
                continue  # the partition is no longer read
            if where[0] not in there:
                self._trouble = gone(f'reading "{where[0]}"', "Kafka does not know the topic.")
                continue
            offset = position.offset if position.offset >= 0 else self._begins[where]
            self._consumer.incremental_unassign([TopicPartition(*where)])
            self._consumer.incremental_assign([TopicPartition(*where, offset)])


def _freed(message: Message) -> ResultRecord:
    kind, at = message.timestamp()
    headers, is_known = headers_of(message) or (), kind != TIMESTAMP_NOT_AVAILABLE and 0 <= at <= _LATEST_MS
    return ResultRecord(
        topic=message.topic() or "",
        partition=message.partition() or 0,
        offset=message.offset() or 0,
        key=message.key() or b"",
        value=message.value() or b"",
        headers={name: value.decode(errors="replace") for name, value in headers if isinstance(value, bytes)},
        written_at=datetime.fromtimestamp(at / 1000, UTC) if is_known else None,
    )


def _tells(message: Message) -> bool:
    """Tell whether a message is Kafka's answer for a partition: a record, the partition's end, or a lasting error."""
    error = message.error()
    return error is None or not passing(error)


def _place(message: Message) -> tuple[str, int]:
    return message.topic() or "", message.partition() or 0
