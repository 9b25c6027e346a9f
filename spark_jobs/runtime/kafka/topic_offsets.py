"""The first offset and the end of each partition of many topics, by a single request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec, TopicDescription

from grouping.model.errors import OperationalError
from spark_jobs.runtime.kafka.admin import ANSWER_SECONDS, QUESTION_SECONDS, Admin, is_late

__all__ = ["DescribedTopic", "PartitionOffsets", "TopicPartitions", "TopicOffsets"]

_EARLIEST: OffsetSpec = OffsetSpec.earliest()
_LATEST: OffsetSpec = OffsetSpec.latest()

PartitionOffsets = dict[int, int]
"""Offsets of one topic, by partition."""

_UNKNOWN_PARTITION = KafkaError._UNKNOWN_PARTITION  # noqa: SLF001  # the driver's own
TopicPartitions = list[tuple[str, int]]
"""Topics and partitions."""


class DescribedTopic(NamedTuple):
    """A topic as Kafka describes it."""

    topic_id: str
    """Kafka's own id of the topic: a topic that was deleted and created again has a new id."""
    partitions: list[int]


class TopicOffsets:
    """Asks the broker for the offsets of topics."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

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
        """Return why a topic cannot be read; if Kafka has refused the request, the text of Kafka's error."""
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
        return self._ask(places, _EARLIEST)

    def ends(self, places: TopicPartitions, *, committed: bool = True) -> dict[str, PartitionOffsets]:
        """Return by topic where the partitions end; topics that cannot be read are left out.

        Args:
            places: The partitions.
            committed: If true, a partition with open transactions ends at the first record of the first of them, as
                for readers of committed records. Otherwise, and without open transactions, a partition ends after its
                last record.

        Raises:
            OperationalError: No broker answers.
        """
        return self._ask(places, _LATEST, committed=committed)

    def _ask(self, places: TopicPartitions, spec: OffsetSpec, *, committed: bool = True) -> dict[str, PartitionOffsets]:
        """Return by topic and partition the offset of the beginning or the end, as `spec` says."""
        if not places:
            return {}
        wanted = {TopicPartition(topic, partition): spec for topic, partition in places}
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        try:
            found, failed = self._admin.ask(lambda admin: _offsets(admin, wanted, level), ANSWER_SECONDS)
            if _UNKNOWN_PARTITION in failed.values():  # the client's metadata may be older than the partition
                self._admin.renew()
                found, failed = self._admin.ask(lambda admin: _offsets(admin, wanted, level), ANSWER_SECONDS)
        except (KafkaException, TimeoutError) as exc:
            raise OperationalError("kafka did not answer", detail=str(exc)) from exc
        return {topic: offsets for topic, offsets in found.items() if topic not in failed}


def _described(admin: AdminClient, topics: list[str]) -> dict[str, TopicDescription]:
    """Return the descriptions of the readable topics; raise an error if an answer is late."""
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


def _offsets(
    admin: AdminClient, wanted: dict[TopicPartition, OffsetSpec], level: IsolationLevel
) -> tuple[dict[str, PartitionOffsets], dict[str, int]]:
    """Return the offsets by topic; and the error code for each topic with a partition that failed."""
    found: dict[str, PartitionOffsets] = {}
    failed: dict[str, int] = {}
    for place, future in admin.list_offsets(wanted, isolation_level=level, request_timeout=QUESTION_SECONDS).items():
        try:
            listed: Any = future.result()  # the annotation of its class is empty
        except KafkaException as error:
            if is_late(error):
                raise
            cause = error.args[0]
            failed[place.topic] = cause.code() if isinstance(cause, KafkaError) else KafkaError.UNKNOWN
            continue
        if listed.offset < 0:  # the driver has no other sign of a leader that did not answer in time
            raise TimeoutError(f'the leader of partition {place.partition} of topic "{place.topic}" did not answer')
        found.setdefault(place.topic, {})[place.partition] = int(listed.offset)
    return found, failed
