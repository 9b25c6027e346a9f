"""Offsets of partitions: beginnings, ends, and deleting the records before one, through the admin interface."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import tenacity
from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from gateway.kafka.driver import ANSWER_SECONDS, NOT_YET, QUESTION_SECONDS, error_code, mapped, retriable
from gateway.kafka.topic_refusals import FORBIDDEN
from grouping.process.renewed import RenewedClient

__all__ = ["Offsets", "Partition"]

Partition = tuple[str, int]
"""A topic and the number of its partition."""

_WAIT_SECONDS = 10.0
"""How long the gateway's loop asks one client after the other: if it waits longer it looks as if it hung."""
_NO_LEADERS = KafkaError._NOENT  # noqa: SLF001  # the driver's own code, which has a name with an underscore
_UNKNOWN_PARTITION = KafkaError._UNKNOWN_PARTITION  # noqa: SLF001  # the driver's own
"""The driver does not look again when a topic has grown since it looked its partitions up."""
_NEW_LEADER = (
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.OFFSET_NOT_AVAILABLE,
)
"""Answers about a partition whose leader has just changed, to a client that has heard of it too late or too early."""
_SETTLING_SECONDS = 0.2


class Offsets:
    """Offsets of partitions."""

    def __init__(self, admin: RenewedClient[AdminClient], counts: Callable[[Iterable[str]], Mapping[str, int]]) -> None:
        """Ask by that client.

        Args:
            admin: Kafka's admin client.
            counts: Tells how many partitions those of the topics have that exist, and notes their leaders here.
        """
        self._admin = admin
        self._counts = counts
        self._unanswerable: set[Partition] = set()
        """Partitions of which Kafka tells no offsets: without a leader, or of a topic that we may not read."""
        self._last_ends: dict[Partition, int] = {}

    def note_leader(self, place: Partition, *, there: bool) -> None:
        """Note whether a partition has a leader, and so an end that can be asked for."""
        (self._unanswerable.discard if there else self._unanswerable.add)(place)

    def note_forbidden(self, topic: str) -> None:
        """Note that a topic may not be read (any more)."""
        self._unanswerable |= {place for place in list(self._last_ends) if place[0] == topic}

    def beginnings(self, places: Sequence[Partition]) -> dict[Partition, int]:
        """Return the first offset still there of each partition."""
        return self._of_all(places, OffsetSpec.earliest(), False)

    def ends(self, places: Sequence[Partition], *, committed: bool = False) -> dict[Partition, int]:
        """Return the end offset of each partition; of committed records only, when asked so."""
        return self._of_all(places, OffsetSpec.latest(), committed)

    def known_ends(self, places: Sequence[Partition], *, committed: bool = True) -> dict[Partition, int]:
        """Return the ends, of committed records only unless told; partitions that do not exist (any more) are left out.

        One without a leader, or one that may not be read, has the end that it had last: nothing comes to it meanwhile,
        or nothing that anybody here will see.
        """
        wanted = self._answerable(places)
        with mapped("asking for offsets"):
            try:
                found = self._asked(wanted, committed)
            except KafkaException as error:
                if error_code(error) not in (*NOT_YET, _NO_LEADERS, *FORBIDDEN):
                    raise
                counts = self._counts(place.topic for place in wanted)
                there = self._answerable(places)
                there = {place: spec for place, spec in there.items() if place.partition < counts.get(place.topic, 0)}
                found = self._asked(there, committed)
        self._last_ends |= found
        return found | {place: self._last_ends[place] for place in self.silent(places) if place in self._last_ends}

    def silent(self, places: Iterable[Partition]) -> set[Partition]:
        """Return those of which Kafka told no end when it was asked last: what came to them of late is not known."""
        return self._unanswerable & set(places)

    def delete_before(self, topic: str, offsets: Mapping[int, int]) -> None:
        """Delete a topic's records below those offsets, by partition; to ask for it twice does no more than once."""
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
                return retriable(lambda: self._asked(wanted, committed))
            except KafkaException as error:
                if error_code(error) == _NO_LEADERS:
                    self._admin.renew()  # the broker that the client asks may be behind the others
                raise

    def _asked(self, wanted: dict[TopicPartition, OffsetSpec], committed: bool) -> dict[Partition, int]:
        if not wanted:
            return {}
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED

        def asked(admin: AdminClient) -> dict[Partition, int]:
            answers = admin.list_offsets(wanted, isolation_level=level, request_timeout=QUESTION_SECONDS)
            return {(place.topic, place.partition): _offset(answer.result()) for place, answer in answers.items()}

        settled = tenacity.Retrying(
            retry=tenacity.retry_if_exception(lambda error: error_code(error) in _NEW_LEADER),
            wait=tenacity.wait_fixed(_SETTLING_SECONDS),
            stop=tenacity.stop_after_delay(_WAIT_SECONDS),
            before_sleep=lambda _: self._admin.renew(),
            reraise=True,
        )
        try:
            return settled(self._admin.ask, asked, _WAIT_SECONDS)
        except KafkaException as error:
            if error_code(error) != _UNKNOWN_PARTITION:
                raise
            self._admin.renew()
            return settled(self._admin.ask, asked, _WAIT_SECONDS)


def _offset(told: Any) -> int:  # the annotation of its class is empty
    """Return an offset; without an answer of its leader's a partition has one below zero, and the driver no error."""
    if told.offset < 0:
        raise TimeoutError
    return int(told.offset)


def _delete_before(admin: AdminClient, places: list[TopicPartition]) -> None:
    for future in admin.delete_records(places, request_timeout=QUESTION_SECONDS).values():
        future.result(ANSWER_SECONDS)
