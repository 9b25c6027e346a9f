"""Offsets of partitions: asks for beginnings and ends, and deletes records, through the driver's admin client."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import tenacity
from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from gateway.kafka.driver import ANSWER_SECONDS, QUESTION_SECONDS, error_code, is_late, mapped, retriable
from grouping.process.renewed import RenewedClient

__all__ = ["Offsets", "Partition"]

Partition = tuple[str, int]
"""A topic and the number of its partition."""

_WAIT_SECONDS = 10.0
"""The longest time that the gateway's main loop may wait for the admin client. During a longer wait, the
supervisor would conclude that the gateway hangs."""
_NO_LEADERS = KafkaError._NOENT  # noqa: SLF001  # the driver's own code, which has a name with an underscore
_UNKNOWN_PARTITION = KafkaError._UNKNOWN_PARTITION  # noqa: SLF001  # likewise a code of the driver
"""The driver's code for a partition that is missing in the driver's copy of the cluster's metadata.

The driver does not renew its copy for a request, so the partition may exist if it was added a moment ago.
"""
_NEW_LEADER = (
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.OFFSET_NOT_AVAILABLE,
)
"""Errors shortly after a change of a partition's leader, while client and broker have different leader epochs."""
_SETTLING_SECONDS = 0.2

_OffsetOrError = int | KafkaException
"""The offset of a partition, or the reason why it is unknown."""


class Offsets:
    """Offsets of partitions."""

    def __init__(self, admin: RenewedClient[AdminClient], counts: Callable[[Iterable[str]], Mapping[str, int]]) -> None:
        """Begin without offsets.

        Args:
            admin: Kafka's admin client.
            counts: For topics, returns topic → number of partitions; missing topics are left out. The function calls
                `note_leader` for each partition.
        """
        self._admin = admin
        self._counts = counts
        self._unanswerable: set[Partition] = set()
        """Partitions without a leader, or of a topic that may not be read. Kafka is not asked for their ends."""
        self._silent: set[Partition] = set()
        """Partitions whose last answer was an error. Kafka is asked for their ends again."""
        self._last_ends: dict[Partition, int] = {}

    def note_leader(self, place: Partition, *, there: bool) -> None:
        """Note whether a partition has a leader. Only the leader knows the end."""
        (self._unanswerable.discard if there else self._unanswerable.add)(place)

    def note_forbidden(self, topic: str) -> None:
        """Note that a topic may not be read."""
        self._unanswerable |= {place for place in list(self._last_ends) if place[0] == topic}

    def beginnings(self, places: Sequence[Partition]) -> dict[Partition, int]:
        """Return, for each partition, the lowest offset that Kafka still has."""
        return self._of_all(places, OffsetSpec.earliest(), False)

    def ends(self, places: Sequence[Partition], *, committed: bool = False) -> dict[Partition, int]:
        """Return the end offset of each partition; with `committed`, the end of its committed records."""
        return self._of_all(places, OffsetSpec.latest(), committed)

    def known_ends(self, places: Sequence[Partition], committed: bool = True) -> dict[Partition, int]:
        """Return the ends of partitions. An error of one partition does not affect the others.

        A partition that does not exist is left out. If an existing partition has no leader, or may not be read, Kafka
        returns no end. The partition is then `silent`, and its last known end is returned, if any.

        Args:
            places: Partitions of any topics, including users' topics.
            committed: Whether to return the end of the committed records.

        Raises:
            KafkaUnavailable: A broker does not answer.
        """
        with mapped("asking for offsets"):
            answers = self._answers(self._answerable(places), committed)
            failed = [place for place, answer in answers.items() if not isinstance(answer, int)]
            if failed:
                # The client's metadata may be outdated, so only a description of the topic shows whether a partition
                # exists.
                counts = self._counts({topic for topic, _ in failed})
                gone = {place for place in failed if place[1] >= counts.get(place[0], 0)}
                answers = {place: answer for place, answer in answers.items() if place not in gone}
                there = self._answerable([place for place in failed if place not in gone])
                if there:
                    self._admin.renew()
                    answers |= self._answers(there, committed)
        found = {place: answer for place, answer in answers.items() if isinstance(answer, int)}
        self._silent = (self._silent - set(places)) | (answers.keys() - found.keys())
        self._last_ends |= found
        return found | {place: self._last_ends[place] for place in self.silent(places) if place in self._last_ends}

    def silent(self, places: Iterable[Partition]) -> set[Partition]:
        """Return the partitions for which the last `known_ends` got no answer, so their present ends are unknown."""
        return (self._unanswerable | self._silent) & set(places)

    def delete_before(self, topic: str, offsets: Mapping[int, int]) -> None:
        """Delete a topic's records below the given offsets: partition → offset. A repeated call does no harm."""
        places = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
        with mapped("deleting records"):
            self._admin.ask(lambda admin: _delete_before(admin, places), _WAIT_SECONDS)

    def _answerable(self, places: Sequence[Partition]) -> dict[TopicPartition, OffsetSpec]:
        latest: OffsetSpec = OffsetSpec.latest()
        return {TopicPartition(*place): latest for place in places if place not in self._unanswerable}

    def _of_all(self, places: Sequence[Partition], spec: OffsetSpec, committed: bool) -> dict[Partition, int]:
        wanted = {TopicPartition(*place): spec for place in places}
        with mapped("asking for offsets"):
            try:
                return retriable(lambda: self._read(wanted, committed))
            except KafkaException as error:
                if error_code(error) == _NO_LEADERS:
                    self._admin.renew()  # the client's broker may have older metadata than other brokers
                raise

    def _answers(self, wanted: dict[TopicPartition, OffsetSpec], committed: bool) -> dict[Partition, _OffsetOrError]:
        """Return the answer of each partition.

        Raises:
            KafkaException, TimeoutError: A broker does not answer.
        """
        if not wanted:
            return {}
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED

        def ask(admin: AdminClient) -> dict[Partition, _OffsetOrError]:
            answers = admin.list_offsets(wanted, isolation_level=level, request_timeout=QUESTION_SECONDS)
            return {(place.topic, place.partition): _answer(future) for place, future in answers.items()}

        return self._admin.ask(ask, _WAIT_SECONDS)

    def _read(self, wanted: dict[TopicPartition, OffsetSpec], committed: bool) -> dict[Partition, int]:
        """Return the offsets of all partitions; the error of any partition is raised."""

        def ask() -> dict[Partition, int]:
            return {place: _offset(answer) for place, answer in self._answers(wanted, committed).items()}

        settled = tenacity.Retrying(
            retry=tenacity.retry_if_exception(lambda error: error_code(error) in _NEW_LEADER),
            wait=tenacity.wait_fixed(_SETTLING_SECONDS),
            stop=tenacity.stop_after_delay(_WAIT_SECONDS),
            before_sleep=lambda _: self._admin.renew(),
            reraise=True,
        )
        try:
            return settled(ask)
        except KafkaException as error:
            if error_code(error) != _UNKNOWN_PARTITION:
                raise
            self._admin.renew()
            return settled(ask)


def _answer(future: Future[Any]) -> _OffsetOrError:
    """Return a partition's offset or its error. If the error means that a broker did not answer in time, raise it."""
    try:
        answer = future.result()
    except KafkaException as error:
        if is_late(error):
            raise
        return error
    if answer.offset < 0:  # the leader did not answer; the driver reports this in no other way
        raise TimeoutError
    return int(answer.offset)


def _offset(answer: _OffsetOrError) -> int:
    if isinstance(answer, KafkaException):
        raise answer
    return answer


def _delete_before(admin: AdminClient, places: list[TopicPartition]) -> None:
    for future in admin.delete_records(places, request_timeout=QUESTION_SECONDS).values():
        future.result(ANSWER_SECONDS)
