"""Kafka for the gateway: the one module of its roles that knows the driver."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import tenacity
from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from grouping.errors import OperationalError
from grouping.settings import Settings

__all__ = [
    "LARGEST_RECORD",
    "CommandConsumer",
    "Fenced",
    "KafkaUnavailable",
    "LogReader",
    "Outgoing",
    "TailReader",
    "Topics",
    "TransactionalWriter",
]

_ANSWER_SECONDS = 30.0

# The driver's own codes, which have names with an underscore.
_FENCED = (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH)  # noqa: SLF001
_NOT_YET = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
)
_NO_LEADERS = KafkaError._NOENT  # noqa: SLF001
_END_OF_PARTITION = KafkaError._PARTITION_EOF  # noqa: SLF001


_SOME = 5
_GAP_SECONDS = 0.01
"""Commands come one after another when so many are there, and the next within this time."""

LARGEST_RECORD = 16 << 20
"""Bytes of the largest record of the gateway's own topics: the longest statement, escaped twice, and its constants."""


class KafkaUnavailable(OperationalError):
    """Kafka did not do what was asked."""


class Fenced(OperationalError):
    """Another gateway has taken over; this one must stop."""


@contextmanager
def _mapped(doing: str) -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        cause = error.args[0]
        if isinstance(cause, KafkaError) and cause.code() in _FENCED:
            raise Fenced("another gateway has taken over", hint="Stop one of the two.") from error
        raise KafkaUnavailable(f"kafka failed at {doing}", detail=str(cause)) from error


def _config(settings: Settings, **typed: object) -> dict[str, object]:
    """Merge raw options under typed ones, which win (option names with dots for underscores)."""
    named = {name.replace("_", "."): value for name, value in typed.items()}
    return {**settings.kafka.extra, "bootstrap.servers": settings.kafka.bootstrap, **named}


def _code(error: BaseException) -> int | None:
    cause = error.args[0] if isinstance(error, KafkaException) else None
    return cause.code() if isinstance(cause, KafkaError) else None


_retriable = tenacity.Retrying(
    retry=tenacity.retry_if_exception(lambda error: _code(error) in _NOT_YET),
    wait=tenacity.wait_fixed(0.02),
    stop=tenacity.stop_after_delay(_ANSWER_SECONDS),
    reraise=True,
)
"""Calls again what fails only because a topic was made a moment ago."""


class Outgoing(NamedTuple):
    """A record to be written."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()
    partition: int = -1
    """-1: Kafka's murmur2 of the key."""


class Topics:
    """Topics and their offsets, through the admin interface."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._admin = AdminClient(_config(settings))

    def partitions(self, topic: str) -> int | None:
        """Return how many partitions a topic has, None when it does not exist."""
        with _mapped("listing topics"):
            metadata = self._admin.list_topics(topic, timeout=_ANSWER_SECONDS).topics.get(topic)
        if metadata is None or metadata.error is not None or not metadata.partitions:
            return None
        return len(metadata.partitions)

    def names(self) -> set[str]:
        """Return the names of all topics."""
        with _mapped("listing topics"):
            return set(self._admin.list_topics(timeout=_ANSWER_SECONDS).topics)

    def create(self, wanted: Mapping[str, int], config: Mapping[str, str] | None = None) -> None:
        """Create topics with so many partitions each; those that exist are left as they are."""
        if not wanted:
            return
        new = [NewTopic(name, partitions, config=dict(config or {})) for name, partitions in wanted.items()]
        with _mapped("creating topics"):
            futures = self._admin.create_topics(new, operation_timeout=_ANSWER_SECONDS)
            for future in futures.values():
                try:
                    future.result(_ANSWER_SECONDS)
                except KafkaException as error:
                    if _code(error) != KafkaError.TOPIC_ALREADY_EXISTS:
                        raise
        # A broker knows of a new topic a moment later than the controller: its offsets are asked for next.
        deadline = time.monotonic() + _ANSWER_SECONDS
        while missing := wanted.keys() - self.names():
            if time.monotonic() > deadline:
                raise KafkaUnavailable(f'topic "{min(missing)}" did not appear')
            time.sleep(0.01)

    def delete(self, names: Iterable[str]) -> None:
        """Delete topics; those that do not exist are passed over."""
        doomed = list(names)
        if not doomed:
            return
        with _mapped("deleting topics"):
            for future in self._admin.delete_topics(doomed, operation_timeout=_ANSWER_SECONDS).values():
                try:
                    future.result(_ANSWER_SECONDS)
                except KafkaException as error:
                    if _code(error) != KafkaError.UNKNOWN_TOPIC_OR_PART:
                        raise

    def ends(self, places: Sequence[tuple[str, int]], *, committed: bool = False) -> dict[tuple[str, int], int]:
        """Return the end offset of each (topic, partition); of committed records only, when asked so."""
        return self._offsets(places, OffsetSpec.latest(), committed)

    def known_ends(self, places: Sequence[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """Return the ends of committed records; topics that do not exist (any more) are left out, at no wait."""
        latest: OffsetSpec = OffsetSpec.latest()
        wanted = {TopicPartition(topic, partition): latest for topic, partition in places}
        with _mapped("asking for offsets"):
            try:
                found = self._list_offsets(wanted, IsolationLevel.READ_COMMITTED)
            except KafkaException as error:
                if _code(error) not in (*_NOT_YET, _NO_LEADERS):
                    raise
                there = self._admin.list_topics(timeout=_ANSWER_SECONDS).topics
                wanted = {place: spec for place, spec in wanted.items() if place.topic in there}
                found = self._list_offsets(wanted, IsolationLevel.READ_COMMITTED) if wanted else {}
        return {(place.topic, place.partition): info.offset for place, info in found.items()}

    def beginnings(self, places: Sequence[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """Return the first offset still there of each (topic, partition)."""
        return self._offsets(places, OffsetSpec.earliest(), False)

    def _list_offsets(self, wanted: dict[TopicPartition, OffsetSpec], level: IsolationLevel) -> dict[Any, Any]:
        futures = self._admin.list_offsets(wanted, isolation_level=level, request_timeout=_ANSWER_SECONDS)
        return {place: future.result() for place, future in futures.items()}

    def delete_before(self, topic: str, offsets: Mapping[int, int]) -> None:
        """Delete a topic's records below those offsets, by partition."""
        places = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
        with _mapped("deleting records"):
            for future in self._admin.delete_records(places, operation_timeout=_ANSWER_SECONDS).values():
                future.result(_ANSWER_SECONDS)

    def _offsets(
        self, places: Sequence[tuple[str, int]], spec: OffsetSpec, committed: bool
    ) -> dict[tuple[str, int], int]:
        if not places:
            return {}
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        with _mapped("asking for offsets"):
            wanted = {TopicPartition(topic, partition): spec for topic, partition in places}
            found = _retriable(lambda: self._list_offsets(wanted, level))
        return {(place.topic, place.partition): info.offset for place, info in found.items()}


class TransactionalWriter:
    """Writes the records of one commit, and the commands that they answer, all or none."""

    def __init__(self, settings: Settings) -> None:
        self._producer = Producer(
            _config(
                settings,
                transactional_id=settings.topic("gateway"),
                partitioner="murmur2_random",
                linger_ms=0,
                compression_type="lz4",
                queue_buffering_max_messages=2_000_000,
                queue_buffering_max_kbytes=2_000_000,
                batch_num_messages=100_000,
                message_max_bytes=LARGEST_RECORD,
                transaction_timeout_ms=60_000,
            )
        )
        with _mapped("starting transactions"):
            self._producer.init_transactions(_ANSWER_SECONDS)

    def write(
        self,
        records: Iterable[Outgoing],
        reads: tuple[CommandConsumer, Mapping[int, int]] | None = None,
        watched: Collection[int] = (),
    ) -> dict[int, int]:
        """Write records in one transaction.

        Args:
            records: What to write.
            reads: The consumer, and by partition the offset after the last command that the records answer.
            watched: Numbers of records.

        Returns:
            The offsets that those records got.

        Raises:
            Fenced: Another gateway has taken over.
            KafkaUnavailable: Nothing was written.
        """
        producer = self._producer
        offsets: dict[int, int] = {}

        def report(number: int) -> Callable[[KafkaError | None, Message], None]:
            def delivered(_: KafkaError | None, message: Message) -> None:
                offsets[number] = message.offset() or 0

            return delivered

        with _mapped("writing a commit"):
            producer.begin_transaction()
            try:
                # A record that cannot be written fails the transaction, so that most need no report of their own.
                for number, (topic, key, value, headers, partition) in enumerate(records):
                    if number in watched:
                        producer.produce(topic, value, key, partition, report(number), headers=list(headers) or None)
                    elif headers:
                        producer.produce(topic, value, key, partition, headers=list(headers))
                    else:
                        producer.produce(topic, value, key, partition)
                if reads is not None:
                    consumer, ends = reads
                    producer.send_offsets_to_transaction(consumer.positions(ends), consumer.membership(), 30)
                producer.flush(_ANSWER_SECONDS)
                producer.commit_transaction(_ANSWER_SECONDS)
            except KafkaException:
                producer.abort_transaction(_ANSWER_SECONDS)
                raise
        return offsets


class CommandConsumer:
    """Reads a topic of commands from where the last commit left it, once it is rewound to there."""

    def __init__(self, settings: Settings, topic: str, partitions: int) -> None:
        self._topic = topic
        self._partitions = partitions
        self._consumer = Consumer(
            _config(
                settings,
                group_id=settings.topic("gateway"),
                enable_auto_commit=False,
                isolation_level="read_committed",
                auto_offset_reset="earliest",
                fetch_wait_max_ms=100,
                queued_min_messages=20_000,
                max_partition_fetch_bytes=4_000_000,
                fetch_message_max_bytes=4_000_000,
            )
        )

    def rewind(self) -> dict[int, int]:
        """Go back to what is committed, and return it: by partition the next offset (-1001: none yet)."""
        with _mapped("reading committed offsets"):
            places = [TopicPartition(self._topic, partition) for partition in range(self._partitions)]
            committed = self._consumer.committed(places, timeout=_ANSWER_SECONDS)
            self._consumer.assign(committed)
        return {place.partition: place.offset for place in committed}

    def read(self, most: int, wait_seconds: float, gather_seconds: float = 0.0) -> list[Message]:
        """Return the commands that are there, at most so many; wait so long for the first one.

        Where some come at once, more are gathered as long as they keep coming, at most for `gather_seconds`: each
        commit has costs of its own.
        """
        with _mapped("reading commands"):
            first = self._consumer.poll(wait_seconds)
            if first is None:
                return []
            messages = [first, *self._consumer.consume(most - 1, timeout=0)] if most > 1 else [first]
            deadline = time.monotonic() + gather_seconds
            while _SOME <= len(messages) < most and time.monotonic() < deadline:
                more = self._consumer.consume(most - len(messages), timeout=_GAP_SECONDS)
                if not more:
                    break
                messages += more
        for message in messages:
            if (error := message.error()) is not None:
                raise KafkaUnavailable("kafka failed at reading commands", detail=str(error))
        return messages

    def positions(self, offsets: Mapping[int, int]) -> list[TopicPartition]:
        """Return offsets by partition in the driver's form."""
        return [TopicPartition(self._topic, partition, offset) for partition, offset in offsets.items()]

    def membership(self) -> object:
        """Return what a transaction needs in order to commit offsets for this consumer."""
        return self._consumer.consumer_group_metadata()

    def close(self) -> None:
        """Leave."""
        self._consumer.close()


class LogReader:
    """Reads committed records of a topic by position."""

    def __init__(self, settings: Settings) -> None:
        self._consumer = Consumer(
            _config(
                settings,
                group_id=settings.topic("gateway-log"),
                enable_auto_commit=False,
                enable_partition_eof=True,
                isolation_level="read_committed",
                auto_offset_reset="earliest",
                fetch_wait_max_ms=20,
                max_partition_fetch_bytes=4_000_000,
            )
        )

    def since(self, topic: str, offsets: Mapping[int, int]) -> Iterator[Message]:
        """Yield the records from those offsets (by partition) to the end that there is now."""
        places = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
        left = set(offsets)
        with _mapped("reading a log"):
            self._consumer.assign(places)
            while left:
                for message in self._consumer.consume(10_000, timeout=0.1):
                    error = message.error()
                    if error is None:
                        yield message
                    elif error.code() == _END_OF_PARTITION:
                        left.discard(message.partition())
                    else:
                        raise KafkaException(error)

    def span(self, topic: str, partition: int, first: int, last: int) -> Iterator[Message]:
        """Yield a partition's records from one offset to another, that one included."""
        for message in self.since(topic, {partition: first}):
            offset = message.offset()
            if offset is not None and offset <= last:
                yield message
            if offset is None or offset >= last:
                return

    def at(self, topic: str, partition: int, offset: int) -> Message | None:
        """Return the record at a position, None when it is not there any more."""
        for message in self.since(topic, {partition: offset}):
            return message if message.offset() == offset else None
        return None

    def close(self) -> None:
        """Leave."""
        self._consumer.close()


class TailReader:
    """Follows all partitions of a topic, without ever waiting."""

    def __init__(self, settings: Settings, topic: str, offsets: Mapping[int, int]) -> None:
        """Begin at those offsets, by partition."""
        self.reached = dict(offsets)
        """By partition: everything before was read."""
        self._consumer = Consumer(
            _config(
                settings,
                group_id=settings.topic("gateway-tail"),
                enable_auto_commit=False,
                enable_partition_eof=True,
                auto_offset_reset="earliest",
                fetch_wait_max_ms=50,
                queued_max_messages_kbytes=32_768,
                max_partition_fetch_bytes=4_000_000,
            )
        )
        with _mapped("following a log"):
            self._consumer.assign([TopicPartition(topic, number, offset) for number, offset in offsets.items()])

    def read(self, most: int) -> list[Message]:
        """Return the records that are there, at most so many."""
        found = []
        with _mapped("following a log"):
            for message in self._consumer.consume(most, timeout=0):
                error, partition, offset = message.error(), message.partition(), message.offset()
                if error is not None and error.code() != _END_OF_PARTITION:
                    raise KafkaException(error)
                if partition is None or offset is None:
                    continue
                self.reached[partition] = max(self.reached.get(partition, 0), offset + (error is None))
                if error is None:
                    found.append(message)
        return found

    def close(self) -> None:
        """Leave."""
        self._consumer.close()
