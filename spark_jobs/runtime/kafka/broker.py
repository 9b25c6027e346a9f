"""Source topics at the broker: the first offset and the end of each partition, and dead letters for lost events."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import NewTopic

from grouping.model.errors import OperationalError
from grouping.process.broker_errors import with_quiet_log
from grouping.settings.kafka_options import client_options
from grouping.settings.settings import Settings
from spark_jobs.runtime.kafka.admin import ANSWER_SECONDS, open_admin
from spark_jobs.runtime.kafka.topic_offsets import PartitionOffsets, TopicOffsets

__all__ = ["Broker", "SourceForm"]

_LOOK_SECONDS = 0.02


class SourceForm(NamedTuple):
    """A source topic: its id, and the first and end offsets of its partitions."""

    topic_id: str
    """Kafka's own id of the topic: a topic that was deleted and created again has a new id."""
    earliest: PartitionOffsets
    """By partition, the first offset that the broker still has."""
    ends: PartitionOffsets
    """By partition, the offset after the last committed record."""

    @property
    def partitions(self) -> list[int]:
        """The numbers of the partitions, ascending."""
        return sorted(self.ends)


class Broker:
    """Reads the offsets of source topics, and writes dead letters for lost events. Only one thread may use a broker."""

    def __init__(self, settings: Settings) -> None:
        """Prepare to connect at the first use."""
        config = with_quiet_log(client_options(settings.kafka))
        self._admin = open_admin(settings)
        self._offsets = TopicOffsets(self._admin)
        self._producer = Producer({**config, "enable.idempotence": True, "partitioner": "murmur2_random"})
        self._dead_letters = settings.topics.deadletters

    def form(self, topic: str) -> SourceForm:
        """Return the id and the offsets of a topic. The request never creates a topic, whatever the broker's settings.

        Raises:
            OperationalError: There is no such topic, a partition has no leader, or no broker answers.
        """
        found = self.forms([topic]).get(topic)
        if found is None:
            raise OperationalError(f'topic "{topic}" cannot be read', detail=self._offsets.why_unreadable(topic))
        return found

    def forms(self, topics: Iterable[str]) -> dict[str, SourceForm]:
        """Return the ids and the offsets of many topics, by only three requests.

        Topics that cannot be read, or have a partition without a leader, are left out.

        Raises:
            OperationalError: No broker answers.
        """
        described = self._offsets.described(topics)
        places = [
            (topic, partition) for topic, description in described.items() for partition in description.partitions
        ]
        earliest, ends = self._offsets.earliest(places), self._offsets.ends(places)
        return {
            topic: SourceForm(description.topic_id, earliest[topic], ends[topic])
            for topic, description in described.items()
            if topic in earliest and topic in ends
        }

    def ends(self, topic: str) -> PartitionOffsets:
        """Return by partition the offset after the last committed record.

        Raises:
            OperationalError: There is no such topic, or no broker answers.
        """
        return self.form(topic).ends

    def report_deleted(self, topic: str, partition: int, first: int, last: int) -> None:
        """Write the dead letter for the offsets `first` to `last`, and wait until the broker has it.

        Raises:
            OperationalError: The broker did not acknowledge the letter.
        """
        detail = f"The broker deleted offsets {first} to {last} before they were evaluated."
        headers: list[tuple[str, str | bytes]] = [
            ("code", b"events-deleted"),
            ("detail", detail.encode()),
            ("source", f"{topic}/{partition}/{first}".encode()),
        ]
        self.write(self._dead_letters, None, headers)

    def report_unreadable(self, record: Message) -> None:
        """Write the dead letter of a record with an unreadable timestamp, and wait until the broker has the letter.

        Raises:
            OperationalError: The broker did not acknowledge the letter.
        """
        detail = (
            f"The record's timestamp, {record.timestamp()[1]} ms, is too large: Kafka's timestamps are milliseconds."
        )
        headers: list[tuple[str, str | bytes]] = [
            ("code", b"undecodable"),
            ("detail", detail.encode()),
            ("source", f"{record.topic()}/{record.partition()}/{record.offset()}".encode()),
        ]
        self.write(self._dead_letters, record.key(), headers, record.value())

    def write(
        self,
        topic: str,
        key: bytes | None,
        headers: list[tuple[str, str | bytes]] | None = None,
        value: bytes | None = None,
    ) -> None:
        """Write a record, and wait until the broker has it.

        Raises:
            OperationalError: The broker did not acknowledge the record.
        """
        failures: list[object] = []
        self._producer.produce(
            topic,
            value,
            key=key,
            headers=headers or [],
            on_delivery=lambda error, _message: failures.append(error) if error else None,
        )
        if self._producer.flush(ANSWER_SECONDS) or failures:
            raise OperationalError(f'a record was not written to "{topic}"', detail=str(failures))

    def ensure_topic(self, topic: str) -> None:
        """Create a topic with one partition, unless it exists, and return when it can be read.

        After the controller has answered, brokers may not know the topic for some time, on a busy machine for seconds.

        Raises:
            OperationalError: The topic cannot be made, or cannot be read within `ANSWER_SECONDS`.
        """
        try:
            self._admin.client.create_topics([NewTopic(topic, 1)])[topic].result()
        except KafkaException as exc:
            cause = exc.args[0]
            if not isinstance(cause, KafkaError) or cause.code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise OperationalError(f'topic "{topic}" cannot be made', detail=str(exc)) from exc
        deadline = time.monotonic() + ANSWER_SECONDS
        while not self._is_known(topic, deadline):
            time.sleep(_LOOK_SECONDS)

    def _is_known(self, topic: str, deadline: float) -> bool:
        try:
            self.ends(topic)
        except OperationalError:
            if time.monotonic() > deadline:
                raise
            return False
        return True
