"""The first offset and the end of each partition, for many topics in one request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, TopicDescription

from grouping.model.errors import OperationalError
from grouping.process.broker_errors import with_quiet_log
from grouping.process.renewed import RenewedClient
from grouping.settings.kafka_options import client_options
from grouping.settings.settings import Settings
from spark_jobs.runtime.kafka.admin import ANSWER_SECONDS, QUESTION_SECONDS, is_late, open_admin

__all__ = ["DescribedTopic", "PartitionOffsets", "TopicPartitions", "TopicOffsets"]

PartitionOffsets = dict[int, int]
"""Offsets of one topic, by partition."""

_UNKNOWN_PARTITION = KafkaError._UNKNOWN_PARTITION  # noqa: SLF001  # the driver's own
TopicPartitions = list[tuple[str, int]]
"""Topics and partitions."""


class DescribedTopic(NamedTuple):
    """A topic as Kafka describes it."""

    topic_id: str
    """Kafka's own id: a topic deleted and created again has a new id."""
    partitions: list[int]


class TopicOffsets:
    """Asks the broker for the offsets of topics."""

    def __init__(self, settings: Settings, *, committed: bool = True) -> None:
        """Connect when first used.

        Args:
            settings: The evaluator's settings.
            committed: Whether the end of a partition is the end for readers of committed records: the first record of
                its first open transaction. Otherwise, and without an open transaction, the end is after its last
                record.
        """
        self._admin = open_admin(settings)
        options = {
            **with_quiet_log(client_options(settings.kafka)),
            "group.id": settings.clients.evaluator_log,
            "isolation.level": "read_committed" if committed else "read_uncommitted",
        }
        # A consumer asks for the offsets of a thousand partitions in a third of the time that the admin client takes.
        self._consumer = RenewedClient(lambda: Consumer(options), is_late)

    def described(self, topics: Iterable[str]) -> dict[str, DescribedTopic]:
        """Return the readable topics: they exist and have a leader for each partition.

        Raises:
            OperationalError: No broker answers.
        """
        wanted = sorted(set(topics))
        if not wanted:
            return {}
        try:
            described = self._admin.ask(lambda admin: _described(admin, wanted), ANSWER_SECONDS)
        except (KafkaException, TimeoutError) as exc:
            raise OperationalError("kafka did not answer", detail=str(exc)) from exc
        return {
            topic: DescribedTopic(str(description.topic_id), [partition.id for partition in description.partitions])
            for topic, description in described.items()
            if all(partition.leader is not None for partition in description.partitions)
        }

    def why_unreadable(self, topic: str) -> str:
        """Return why a topic cannot be read; if Kafka refuses the topic, in Kafka's words."""
        try:
            self._admin.ask(lambda admin: _description(admin, topic), ANSWER_SECONDS)
        except (KafkaException, TimeoutError) as exc:
            return str(exc)
        return "A partition has no leader."

    def places(self, topics: Iterable[str], ids: Mapping[str, str] | None = None) -> TopicPartitions:
        """Return the partitions of the readable topics.

        Args:
            topics: The names of the topics.
            ids: Kafka's ids, by topic name; a topic that was created again with another id is left out.

        Raises:
            OperationalError: No broker answers.
        """
        return [
            (topic, partition)
            for topic, description in self.described(topics).items()
            if ids is None or ids.get(topic, "") in ("", description.topic_id)
            for partition in description.partitions
        ]

    def earliest(self, places: TopicPartitions) -> dict[str, PartitionOffsets]:
        """Return by topic the first offsets that the broker still has; topics that cannot be read are left out.

        Raises:
            OperationalError: No broker answers.
        """
        return self._ask(places, OFFSET_BEGINNING)

    def ends(self, places: TopicPartitions) -> dict[str, PartitionOffsets]:
        """Return by topic where the partitions end; topics that cannot be read are left out.

        Raises:
            OperationalError: No broker answers.
        """
        return self._ask(places, OFFSET_END)

    def _ask(self, places: TopicPartitions, logical: int) -> dict[str, PartitionOffsets]:
        """Return by topic the offsets that a logical offset (the beginning or the end) stands for."""
        if not places:
            return {}
        wanted = [TopicPartition(topic, partition, logical) for topic, partition in places]
        try:
            found, failed = self._consumer.ask(lambda consumer: _offsets(consumer, wanted), ANSWER_SECONDS)
            if _UNKNOWN_PARTITION in failed.values():  # the client's metadata may be older than the partition
                self._consumer.renew()
                found, failed = self._consumer.ask(lambda consumer: _offsets(consumer, wanted), ANSWER_SECONDS)
        except (KafkaException, TimeoutError) as exc:
            raise OperationalError("kafka did not answer", detail=str(exc)) from exc
        return {topic: offsets for topic, offsets in found.items() if topic not in failed}


def _described(admin: AdminClient, topics: list[str]) -> dict[str, TopicDescription]:
    """Return the descriptions of the readable topics; a late answer is an error."""
    found = {}
    for topic, future in admin.describe_topics(TopicCollection(topics), request_timeout=QUESTION_SECONDS).items():
        try:
            found[topic] = future.result(ANSWER_SECONDS)
        except KafkaException as error:
            if is_late(error):
                raise
    return found


def _description(admin: AdminClient, topic: str) -> TopicDescription:
    answer = admin.describe_topics(TopicCollection([topic]), request_timeout=QUESTION_SECONDS)
    return answer[topic].result(ANSWER_SECONDS)


def _offsets(consumer: Consumer, wanted: list[TopicPartition]) -> tuple[dict[str, PartitionOffsets], dict[str, int]]:
    """Return the offsets by topic; for topics with a failed partition, return the error codes."""
    try:
        answers = consumer.offsets_for_times(wanted, timeout=QUESTION_SECONDS)
    except KafkaException as error:
        cause = error.args[0]
        if not isinstance(cause, KafkaError) or cause.code() != _UNKNOWN_PARTITION:
            raise
        return {}, dict.fromkeys((place.topic for place in wanted), _UNKNOWN_PARTITION)  # no partition is known
    found: dict[str, PartitionOffsets] = {}
    failed: dict[str, int] = {}
    for place in answers:
        if place.error is not None:
            if is_late(refusal := KafkaException(place.error)):
                raise refusal
            failed[place.topic] = place.error.code()
        elif place.offset < 0:  # the leader has not answered
            raise TimeoutError(f'the leader of partition {place.partition} of topic "{place.topic}" did not answer')
        else:
            found.setdefault(place.topic, {})[place.partition] = place.offset
    return found, failed
