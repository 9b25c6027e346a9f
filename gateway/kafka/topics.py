"""Topics and their offsets, through the admin interface."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import tenacity
from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
    TopicDescription,
)

from gateway.kafka.driver import (
    ANSWER_SECONDS,
    NOT_YET,
    QUESTION_SECONDS,
    KafkaUnavailable,
    client_config,
    error_code,
    is_late,
    mapped,
    retriable,
)
from gateway.kafka.topic_refusals import FORBIDDEN, KEPT, TopicRefusal, refusal_of
from grouping.process.renewed import RenewedClient
from grouping.settings.settings import Settings

__all__ = ["TopicForm", "Topics", "durability"]

log = logging.getLogger(__name__)

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


class TopicForm(NamedTuple):
    """A topic's id, partitions and replicas."""

    topic_id: str
    """Kafka's own id: a topic that is deleted and made again has another one."""
    partitions: int
    replicas: int
    """Copies of its first partition."""


class Topics:
    """Topics and their offsets, through the admin interface."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._admin = RenewedClient(lambda: AdminClient(client_config(settings)), is_late)
        self._unanswerable: set[tuple[str, int]] = set()
        """Partitions of which Kafka tells no offsets: without a leader, or of a topic that we may not read."""
        self._last_ends: dict[tuple[str, int], int] = {}

    def partitions(self, topic: str) -> int | None:
        """Return how many partitions a topic has, None when it does not exist."""
        form = self.forms([topic]).get(topic)
        return None if form is None else form.partitions

    def forms(self, topics: Iterable[str]) -> dict[str, TopicForm]:
        """Return the forms of those topics that exist; asking never makes one, whatever the broker's settings."""
        asked = sorted(set(topics))
        if not asked:
            return {}
        with mapped("describing topics"):
            return self._admin.ask(lambda admin: self._forms(admin, asked), ANSWER_SECONDS)

    def await_forms(self, topics: Iterable[str]) -> dict[str, TopicForm]:
        """Return the forms of topics that were just made: each broker knows of them a moment after the controller.

        Raises:
            KafkaUnavailable: One of them did not appear.
        """
        wanted = set(topics)
        deadline = time.monotonic() + ANSWER_SECONDS
        while missing := wanted - (found := self.forms(wanted)).keys():
            if time.monotonic() > deadline:
                raise KafkaUnavailable(f'topic "{min(missing)}" did not appear')
            time.sleep(0.01)
        return found

    def _forms(self, admin: AdminClient, asked: list[str]) -> dict[str, TopicForm]:
        found = {}
        futures = admin.describe_topics(TopicCollection(asked), request_timeout=QUESTION_SECONDS)
        for name, future in futures.items():
            try:
                told = future.result(ANSWER_SECONDS)
            except KafkaException as error:
                if error_code(error) in FORBIDDEN:
                    self._unanswerable |= {place for place in list(self._last_ends) if place[0] == name}
                elif error_code(error) != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise
            else:
                if told.partitions:
                    found[name] = self._form(told)
        return found

    def _form(self, told: TopicDescription) -> TopicForm:
        for partition in told.partitions:
            place = (told.name, partition.id)
            (self._unanswerable.discard if partition.leader is not None else self._unanswerable.add)(place)
        return TopicForm(str(told.topic_id), len(told.partitions), len(told.partitions[0].replicas))

    def brokers(self) -> int:
        """Return how many brokers the cluster has."""
        with mapped("describing the cluster"):
            return self._admin.ask(_count_brokers, ANSWER_SECONDS)

    def configs(self, topics: Iterable[str]) -> dict[str, dict[str, str]]:
        """Return the configurations of those topics that exist."""
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
        if not resources:
            return {}
        with mapped("asking for configurations"):
            return self._admin.ask(lambda admin: _configs(admin, resources), ANSWER_SECONDS)

    def configure(self, topic: str, config: Mapping[str, str]) -> None:
        """Set some of a topic's configuration, and leave the rest."""
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in config.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        with mapped("configuring a topic"):
            admin = self._reached()
            for future in admin.incremental_alter_configs([resource], request_timeout=ANSWER_SECONDS).values():
                future.result(ANSWER_SECONDS)

    def grow(self, topic: str, partitions: int) -> None:
        """Give a topic so many partitions; it has fewer."""
        with mapped("adding partitions"):
            futures = self._reached().create_partitions(
                [NewPartitions(topic, partitions)], operation_timeout=ANSWER_SECONDS
            )
            for future in futures.values():
                future.result(ANSWER_SECONDS)

    def names(self) -> set[str]:
        """Return the names of all topics."""
        with mapped("listing topics"):
            return set(self._admin.client.list_topics(timeout=ANSWER_SECONDS).topics)

    def create(self, wanted: Mapping[str, int], config: Mapping[str, str] | None = None) -> set[str]:
        """Create topics with so many partitions each, and return which; those that exist are left as they are.

        Raises:
            TopicRefusal: Kafka will not have one of them; the others are there.
            KafkaUnavailable: Some may have been created.
        """
        made, refused = self.create_each(wanted, config)
        for error in refused.values():
            raise error
        return made

    def create_each(
        self, wanted: Mapping[str, int], config: Mapping[str, str] | None = None
    ) -> tuple[set[str], dict[str, TopicRefusal]]:
        """Create topics with so many partitions each; return which were not there, and why Kafka will not have others.

        Raises:
            KafkaUnavailable: Some may have been created.
        """
        if not wanted:
            return set(), {}
        made, refused = set(wanted), {}
        copies, durable = self._settings.kafka.replication, durability(self._settings)
        new = [NewTopic(name, count, copies, config={**(config or {}), **durable}) for name, count in wanted.items()]
        with mapped("creating topics"):
            futures = self._reached().create_topics(new, operation_timeout=ANSWER_SECONDS)
            for name, future in futures.items():
                try:
                    future.result(ANSWER_SECONDS)
                except KafkaException as error:
                    if (refusal := refusal_of(name, error)) is not None:
                        refused[name] = refusal
                    elif error_code(error) != KafkaError.TOPIC_ALREADY_EXISTS:
                        raise
                    made.discard(name)
        self.await_forms(wanted.keys() - refused.keys())  # their offsets are asked for next
        return made, refused

    def delete(self, names: Iterable[str]) -> set[str]:
        """Delete topics, pass over those that do not exist, and return those that Kafka will not delete."""
        doomed = list(names)
        kept: set[str] = set()
        if not doomed:
            return kept
        with mapped("deleting topics"):
            for name, future in self._reached().delete_topics(doomed, operation_timeout=ANSWER_SECONDS).items():
                try:
                    future.result(ANSWER_SECONDS)
                except KafkaException as error:
                    if error_code(error) in KEPT:
                        log.warning("a topic cannot be deleted", extra={"topic": name, "reason": str(error)})
                        kept.add(name)
                    elif error_code(error) != KafkaError.UNKNOWN_TOPIC_OR_PART:
                        raise
        return kept

    def ends(self, places: Sequence[tuple[str, int]], *, committed: bool = False) -> dict[tuple[str, int], int]:
        """Return the end offset of each (topic, partition); of committed records only, when asked so."""
        return self._offsets(places, OffsetSpec.latest(), committed)

    def known_ends(self, places: Sequence[tuple[str, int]], *, committed: bool = True) -> dict[tuple[str, int], int]:
        """Return the ends, of committed records only unless told; partitions that do not exist (any more) are left out.

        One without a leader, or one that may not be read, has the end that it had last: nothing comes to it meanwhile,
        or nothing that anybody here will see.
        """
        latest: OffsetSpec = OffsetSpec.latest()
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        asked = [place for place in places if place not in self._unanswerable]
        wanted = {TopicPartition(topic, partition): latest for topic, partition in asked}
        with mapped("asking for offsets"):
            try:
                found = self._list_offsets(wanted, level) if wanted else {}
            except KafkaException as error:
                if error_code(error) not in (*NOT_YET, _NO_LEADERS, *FORBIDDEN):
                    raise
                forms = self.forms(place.topic for place in wanted)
                there = {
                    place: spec
                    for place, spec in wanted.items()
                    if place.topic in forms
                    and place.partition < forms[place.topic].partitions
                    and (place.topic, place.partition) not in self._unanswerable
                }
                found = self._list_offsets(there, level) if there else {}
        self._last_ends |= found
        silent = self._unanswerable & set(places)
        return found | {place: self._last_ends[place] for place in silent if place in self._last_ends}

    def silent(self, places: Iterable[tuple[str, int]]) -> set[tuple[str, int]]:
        """Return those of which Kafka told no end when it was asked last: what came to them of late is not known."""
        return self._unanswerable & set(places)

    def beginnings(self, places: Sequence[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """Return the first offset still there of each (topic, partition)."""
        return self._offsets(places, OffsetSpec.earliest(), False)

    def _list_offsets(
        self, wanted: dict[TopicPartition, OffsetSpec], level: IsolationLevel
    ) -> dict[tuple[str, int], int]:
        def asked(admin: AdminClient) -> dict[tuple[str, int], int]:
            futures = admin.list_offsets(wanted, isolation_level=level, request_timeout=QUESTION_SECONDS)
            return {(place.topic, place.partition): _offset(future.result()) for place, future in futures.items()}

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

    def delete_before(self, topic: str, offsets: Mapping[int, int]) -> None:
        """Delete a topic's records below those offsets, by partition; to ask for it twice does no more than once."""
        places = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
        with mapped("deleting records"):
            self._admin.ask(lambda admin: _delete_before(admin, places), _WAIT_SECONDS)

    def _reached(self) -> AdminClient:
        """Return a client that has just reached the broker that carries out changes: these are not asked for twice."""
        self._admin.ask(_count_brokers, ANSWER_SECONDS)
        return self._admin.client

    def _offsets(
        self, places: Sequence[tuple[str, int]], spec: OffsetSpec, committed: bool
    ) -> dict[tuple[str, int], int]:
        if not places:
            return {}
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        with mapped("asking for offsets"):
            wanted = {TopicPartition(topic, partition): spec for topic, partition in places}
            try:
                return retriable(lambda: self._list_offsets(wanted, level))
            except KafkaException as error:
                if error_code(error) == _NO_LEADERS:
                    self._admin.renew()  # the broker that the client asks may be behind the others
                raise


def _count_brokers(admin: AdminClient) -> int:
    told: Any = admin.describe_cluster(request_timeout=QUESTION_SECONDS)  # its annotation is wrong
    return len(told.result(ANSWER_SECONDS).nodes)


def _offset(told: Any) -> int:  # the annotation of its class is empty
    """Return an offset; without an answer of its leader's a partition has one below zero, and the driver no error."""
    if told.offset < 0:
        raise TimeoutError
    return int(told.offset)


def _delete_before(admin: AdminClient, places: list[TopicPartition]) -> None:
    for future in admin.delete_records(places, request_timeout=QUESTION_SECONDS).values():
        future.result(ANSWER_SECONDS)


def _configs(admin: AdminClient, resources: Sequence[ConfigResource]) -> dict[str, dict[str, str]]:
    found = {}
    futures = admin.describe_configs(list(resources), request_timeout=QUESTION_SECONDS)
    for resource, future in futures.items():
        try:
            told = future.result(ANSWER_SECONDS)
        except KafkaException as error:
            if error_code(error) != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
        else:
            found[resource.name] = {name: entry.value or "" for name, entry in told.items()}
    return found


def durability(settings: Settings) -> dict[str, str]:
    """Return the option of every topic that the gateway makes: by how many copies a record counts as written."""
    least = settings.kafka.min_isr
    return {"min.insync.replicas": str(least)} if least > 0 else {}
