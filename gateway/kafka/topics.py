"""Topics: their forms and configurations; creates and deletes them through the admin interface."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
    TopicDescription,
)

from gateway.kafka.driver import (
    ANSWER_SECONDS,
    QUESTION_SECONDS,
    KafkaUnavailable,
    client_config,
    error_code,
    is_late,
    mapped,
)
from gateway.kafka.latest_records import LatestRecords
from gateway.kafka.offsets import Offsets
from gateway.kafka.topic_refusals import FORBIDDEN, KEPT, TopicRefusal, refusal_of
from grouping.process.renewed import RenewedClient
from grouping.settings.settings import Settings

__all__ = ["ExistingTopic", "Topics", "durability"]

log = logging.getLogger(__name__)

_Made = TypeVar("_Made")

_MADE_SECONDS = 10.0
"""Longest wait for a broker to make topics: thousands of topics take some seconds."""
_ALL_MADE_SECONDS = 40.0
"""How long other brokers are asked afterwards: a live broker may wait half a minute for a hanging controller although
there is a new controller. A deletion asks a single broker: a late deletion could hit a topic created anew."""


class ExistingTopic(NamedTuple):
    """A topic's id, partitions and replicas."""

    topic_id: str
    """Kafka's own id: a topic that is deleted and made again has another id."""
    partitions: int
    replicas: int
    """Number of replicas of the first partition."""


class Topics:
    """Topics, through the admin interface."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._admin = RenewedClient(lambda: AdminClient(client_config(settings)), is_late)
        self.offsets = Offsets(self._admin, self._counts)
        """Offsets of the topics' partitions."""
        self._latest = LatestRecords(settings, self.offsets)

    def partitions(self, topic: str) -> int | None:
        """Return how many partitions a topic has; None if it does not exist."""
        form = self.forms([topic]).get(topic)
        return None if form is None else form.partitions

    def forms(self, topics: Iterable[str]) -> dict[str, ExistingTopic]:
        """Return the forms of the existing topics; asking never creates a topic."""
        names = sorted(set(topics))
        if not names:
            return {}
        with mapped("describing topics"):
            return self._admin.ask(lambda admin: self._forms(admin, names), ANSWER_SECONDS)

    def _counts(self, topics: Iterable[str]) -> dict[str, int]:
        return {name: form.partitions for name, form in self.forms(topics).items()}

    def await_forms(self, topics: Iterable[str]) -> dict[str, ExistingTopic]:
        """Return the forms of existing topics; wait for new topics, which a broker learns of after the controller.

        Raises:
            KafkaUnavailable: A topic did not appear.
        """
        wanted = set(topics)
        deadline = time.monotonic() + ANSWER_SECONDS
        while missing := wanted - (found := self.forms(wanted)).keys():
            if time.monotonic() > deadline:
                raise KafkaUnavailable(f'topic "{min(missing)}" did not appear')
            time.sleep(0.01)
        return found

    def _forms(self, admin: AdminClient, names: list[str]) -> dict[str, ExistingTopic]:
        found = {}
        futures = admin.describe_topics(TopicCollection(names), request_timeout=QUESTION_SECONDS)
        for name, future in futures.items():
            try:
                description = future.result(ANSWER_SECONDS)
            except KafkaException as error:
                if error_code(error) in FORBIDDEN:
                    self.offsets.note_forbidden(name)
                elif error_code(error) != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise
            else:
                if description.partitions:
                    found[name] = self._form(description)
        return found

    def _form(self, description: TopicDescription) -> ExistingTopic:
        for partition in description.partitions:
            self.offsets.note_leader((description.name, partition.id), there=partition.leader is not None)
        return ExistingTopic(
            str(description.topic_id), len(description.partitions), len(description.partitions[0].replicas)
        )

    def brokers(self) -> int:
        """Return how many brokers the cluster has."""
        with mapped("describing the cluster"):
            return self._admin.ask(_count_brokers, ANSWER_SECONDS)

    def configs(self, topics: Iterable[str]) -> dict[str, dict[str, str]]:
        """Return the configurations of the topics, without topics that do not exist."""
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
        if not resources:
            return {}
        with mapped("asking for configurations"):
            return self._admin.ask(lambda admin: _configs(admin, resources), ANSWER_SECONDS)

    def configure(self, topic: str, config: Mapping[str, str]) -> None:
        """Set some options of a topic, and leave its other options."""
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in config.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        with mapped("configuring a topic"):
            admin = self._reached()
            for future in admin.incremental_alter_configs([resource], request_timeout=ANSWER_SECONDS).values():
                future.result(ANSWER_SECONDS)

    def grow(self, topic: str, partitions: int) -> None:
        """Raise a topic's number of partitions to `partitions`."""
        with mapped("adding partitions"):
            futures = self._reached().create_partitions(
                [NewPartitions(topic, partitions)], operation_timeout=ANSWER_SECONDS
            )
            for future in futures.values():
                future.result(ANSWER_SECONDS)

    def sampled(self, topic: str, partitions: int, read: Callable[..., _Made], *arguments: object) -> _Made:
        """Return `read` of the values of a topic's latest records (`LatestRecords.read`) and of the arguments."""
        return read(self._latest.read(topic, partitions), *arguments)

    def names(self) -> set[str]:
        """Return the names of all topics."""
        with mapped("listing topics"):
            return set(self._admin.client.list_topics(timeout=ANSWER_SECONDS).topics)

    def create(self, wanted: Mapping[str, int], config: Mapping[str, str] | None = None) -> set[str]:
        """Create topics with the given numbers of partitions, and return the new ones; existing topics stay unchanged.

        Raises:
            TopicRefusal: Kafka refuses one of the topics; the others exist.
            KafkaUnavailable: Some topics may have been created.
        """
        made, refused = self.create_each(wanted, config)
        for error in refused.values():
            raise error
        return made

    def create_each(
        self, wanted: Mapping[str, int], config: Mapping[str, str] | None = None
    ) -> tuple[set[str], dict[str, TopicRefusal]]:
        """Create topics with a number of partitions each; return the new topics, and why Kafka refuses others.

        Raises:
            KafkaUnavailable: Some topics may have been created.
        """
        if not wanted:
            return set(), {}
        made, refused = set[str](), {}
        copies, durable = self._settings.kafka.replication, durability(self._settings)
        new = [NewTopic(name, count, copies, config={**(config or {}), **durable}) for name, count in wanted.items()]
        with mapped("creating topics"):
            results, again = self._creation_results(new)
            for name, error in results.items():
                if error is None or (again and error_code(error) == KafkaError.TOPIC_ALREADY_EXISTS):
                    made.add(name)  # an earlier request, to the broker asked first, may have made the topic
                elif (refusal := refusal_of(name, error)) is not None:
                    refused[name] = refusal
                elif error_code(error) != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise error
        self.await_forms(wanted.keys() - refused.keys())  # the offsets of the new topics are asked for next
        return made, refused

    def _creation_results(self, new: list[NewTopic]) -> tuple[dict[str, KafkaException | None], bool]:
        """Request topics; return topic → error or None, and whether an earlier request may have made some."""
        requests = 0

        def ask(admin: AdminClient) -> dict[str, KafkaException | None]:
            nonlocal requests
            _count_brokers(admin)  # the client has just reached this broker
            requests += 1
            return {
                name: _error(answer)
                for name, answer in admin.create_topics(new, operation_timeout=_MADE_SECONDS).items()
            }

        return self._admin.ask(ask, _ALL_MADE_SECONDS), requests > 1

    def delete(self, names: Iterable[str]) -> set[str]:
        """Delete topics, skip missing ones, and return the topics that Kafka will not delete."""
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

    def _reached(self) -> AdminClient:
        """Return a client that has just reached the controller, because requests for changes are not repeated."""
        self._admin.ask(_count_brokers, ANSWER_SECONDS)
        return self._admin.client


def _error(answer: Future[None]) -> KafkaException | None:
    """Return the error of a change, None if it was carried out; raise if no answer came in time."""
    try:
        answer.result(ANSWER_SECONDS)
    except KafkaException as error:
        if is_late(error):
            raise
        return error
    return None


def _count_brokers(admin: AdminClient) -> int:
    described: Any = admin.describe_cluster(request_timeout=QUESTION_SECONDS)  # its annotation is wrong
    return len(described.result(ANSWER_SECONDS).nodes)


def _configs(admin: AdminClient, resources: Sequence[ConfigResource]) -> dict[str, dict[str, str]]:
    found = {}
    futures = admin.describe_configs(list(resources), request_timeout=QUESTION_SECONDS)
    for resource, future in futures.items():
        try:
            entries = future.result(ANSWER_SECONDS)
        except KafkaException as error:
            if error_code(error) != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
        else:
            found[resource.name] = {name: entry.value or "" for name, entry in entries.items()}
    return found


def durability(settings: Settings) -> dict[str, str]:
    """Return the option of the gateway's topics that says how many replicas must have a record before it is written."""
    least = settings.kafka.min_isr
    return {"min.insync.replicas": str(least)} if least > 0 else {}
