"""A consumer that reads committed records from given offsets on, and knows how far each partition is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from grouping.process.broker_errors import with_quiet_log
from grouping.settings.kafka_options import client_options
from grouping.settings.settings import Settings

__all__ = ["PartitionUnreadable", "SourcePlace", "PositionedConsumer"]

_AT_ONCE = 10_000
"""The largest number of records that are taken at a time."""
_ANSWER_SECONDS = 10.0
_RENEW_AFTER = (3, 15, 35)
"""When this many polls in a row have brought no record, a new consumer replaces the old one.

The new consumer looks the topics up again. A topic that was deleted and created again has a lower leader epoch. After a
restart of a broker, librdkafka may take this epoch for an outdated answer, and then never reads the topic again.
"""
_END_OF_PARTITION: int = KafkaError._PARTITION_EOF  # noqa: SLF001  # librdkafka's own codes begin with "_"

SourcePlace = tuple[str, int]
"""A topic and a partition."""


class PartitionUnreadable(KafkaException):
    """A partition cannot be read: its topic is gone, or may not be read."""

    def __init__(self, topic: str, error: KafkaError) -> None:
        super().__init__(error)
        self.topic = topic


class PositionedConsumer:
    """Reads partitions from given offsets on. Only a single thread of the process that made the object may use it."""

    def __init__(self, settings: Settings, group: str) -> None:
        """Connect.

        Args:
            settings: The evaluator's settings.
            group: The consumer's group, by which an operator sees what the consumer is for. No offset is committed.
        """
        self._settings = settings
        self._group = group
        self._consumer = self._connected()
        self.reached: dict[SourcePlace, int] = {}
        """For each partition that is being read, the offset of the next record."""
        self.shown: set[SourcePlace] = set()
        """The partitions that are read up to their present end."""
        self.rewound: set[SourcePlace] = set()
        """The partitions whose records came from an earlier offset than expected.

        Their topics were deleted and created again, and have fewer records.
        """
        self.silent = self.empty = 0
        """`silent` is the number of the last polls that brought no record. `empty` is the number of the last polls that
        brought no message: neither a record nor the end of a partition.
        """

    def _connected(self) -> Consumer:
        return Consumer(
            {
                **with_quiet_log(client_options(self._settings.kafka)),
                "group.id": self._group,
                "enable.auto.commit": False,
                # The last offsets of a partition may have no record: compaction removed it, or the offset is the marker
                # of a transaction. So only the end of the partition shows that all records are read.
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 20,
                "max.partition.fetch.bytes": 4_000_000,
                "queued.max.messages.kbytes": 32_768,
            }
        )

    def begin(self, offsets: Mapping[SourcePlace, int]) -> None:
        """Begin to read some partitions, each from an offset on; other partitions are no longer read.

        Raises:
            KafkaException: The client refuses the partitions.
        """
        self.reached, self.silent, self.empty = dict(offsets), 0, 0
        self.rewound.clear()
        self._assign()

    def _assign(self) -> None:
        self.shown.clear()
        self._consumer.assign([TopicPartition(*place, offset) for place, offset in self.reached.items()])

    def take(self, seconds: float) -> list[Message]:
        """Return the records that have come, in order within each partition; wait for the first message.

        Args:
            seconds: The longest time to wait.

        Raises:
            PartitionUnreadable: Kafka refuses a partition.
            KafkaException: Kafka failed.
        """
        # Wait for a single message, then take all that have come. A call for many messages would wait for all of them.
        messages = self._consumer.consume(1, seconds)
        messages += self._consumer.consume(_AT_ONCE, 0) if messages else []
        records: list[Message] = []
        for (place, is_record), run in groupby(messages, _sort):
            if is_record:
                records += self._noted(place, [*run])
            else:
                for message in run:
                    self._note_end(place, message)
        self.silent = 0 if records else self.silent + 1
        self.empty = 0 if messages else self.empty + 1
        if self.silent in _RENEW_AFTER and self.reached:
            self._consumer.close()
            self._consumer = self._connected()
            self._assign()
        return records

    def _noted(self, place: SourcePlace, records: list[Message]) -> list[Message]:
        """Note that the next records of a partition are read; return them, or none if the partition is not in use."""
        if place not in self.reached:
            return []  # the records were fetched before the consumer stopped reading their partition
        offsets = [int(record.offset() or 0) for record in records]
        if offsets[0] < self.reached[place] or offsets != sorted(offsets):
            self.rewound.add(place)
        self.reached[place] = offsets[-1] + 1
        self.shown.discard(place)
        return records

    def _note_end(self, place: SourcePlace, message: Message) -> None:
        """Note the end of a partition, or raise the error that a message has in place of a record."""
        offset, error = int(message.offset() or 0), message.error()
        assert error is not None, "the message is not a record"
        if not message.topic():
            raise KafkaException(error)
        if place not in self.reached:
            return
        if error.code() != _END_OF_PARTITION:
            raise PartitionUnreadable(place[0], error)
        if offset < self.reached[place]:
            self.rewound.add(place)
        self.reached[place] = offset
        self.shown.add(place)

    def check_topics(self) -> None:
        """Check that the topics of all partitions in use exist, since librdkafka does not report a missing topic.

        Raises:
            PartitionUnreadable: A topic is gone.
            KafkaException: No broker answers.
        """
        there = self._consumer.list_topics(timeout=_ANSWER_SECONDS).topics
        for topic, _ in self.reached:
            if topic not in there:
                raise PartitionUnreadable(topic, KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))

    def leave(self, places: Iterable[SourcePlace]) -> None:
        """Stop reading some partitions."""
        left = [place for place in places if place in self.reached]
        for place in left:
            del self.reached[place]
        self._consumer.incremental_unassign([TopicPartition(*place) for place in left])

    def end(self) -> None:
        """Stop reading all partitions; without this call the consumer would go on fetching later records."""
        self.reached.clear()
        self._consumer.unassign()

    def close(self) -> None:
        """Disconnect."""
        self._consumer.close()


def _sort(message: Message) -> tuple[SourcePlace, bool]:
    """Return a message's partition, and whether the message is a record."""
    return (str(message.topic()), message.partition() or 0), message.error() is None
