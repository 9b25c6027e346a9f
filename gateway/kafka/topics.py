"""Topics: describes, configures, creates and deletes them through the driver's admin client."""

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
from gateway.kafka.topic_refusals import FORBIDDEN, KEPT, TopicRefusal, refusal_of, unreadable
from grouping.process.renewed import RenewedClient
from grouping.settings.settings import Settings

__all__ = ["ExistingTopic", "Topics", "durability"]

log = logging.getLogger(__name__)

_Made = TypeVar("_Made")

_MADE_SECONDS = 10.0
"""How long a single broker may take to make topics, in seconds. Thousands of topics take some seconds."""
_ALL_MADE_SECONDS = 40.0
"""How long the creation of topics is tried, with one broker after the other. A broker may wait half a minute for a
controller that hangs, although there is a new controller. A deletion is not tried again: a late deletion could delete a
new topic of the same name."""


class ExistingTopic(NamedTuple):
    """A topic's id, partitions and replicas."""

    topic_id: str
    """Kafka's own id of the topic. A topic that is deleted and made again has another id."""
    partitions: int
    replicas: int
    """The number of replicas of the first partition."""


class Topics:
    """The topics of a Kafka cluster, through the driver's admin client."""

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
        """Return topic → its id, partitions and replicas, for those of the topics that exist. No topic is created."""
        names = sorted(set(topics))
        if not names:
            return {}
        with mapped("describing topics"):
            return self._admin.ask(lambda admin: self._forms(admin, names), ANSWER_SECONDS)

    def _counts(self, topics: Iterable[str]) -> dict[str, int]:
        return {name: form.partitions for name, form in self.forms(topics).items()}

    def await_forms(self, topics: Iterable[str]) -> dict[str, ExistingTopic]:
        """Return the same as `forms`, but wait for missing topics: a broker may not know a very new topic yet.

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
        """Return the number of brokers in the cluster."""
        with mapped("describing the cluster"):
            return self._admin.ask(_count_brokers, ANSWER_SECONDS)

    def configs(self, topics: Iterable[str]) -> dict[str, dict[str, str]]:
        """Return topic → configuration, for those of the topics that exist."""
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
        if not resources:
            return {}
        with mapped("asking for configurations"):
            return self._admin.ask(lambda admin: _configs(admin, resources), ANSWER_SECONDS)

    def configure(self, topic: str, config: Mapping[str, str]) -> None:
        """Set some options of a topic, and leave the other options unchanged."""
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in config.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        with mapped("configuring a topic"):
            admin = self._reached()
            for future in admin.incremental_alter_configs([resource], request_timeout=ANSWER_SECONDS).values():
                future.result(ANSWER_SECONDS)

    def grow(self, topic: str, partitions: int) -> None:
        """Raise a topic's number of partitions to `partitions`, and return when brokers know of them.

        Raises:
            KafkaUnavailable: Kafka failed, or the new partitions did not appear.
        """
        with mapped("adding partitions"):
            futures = self._reached().create_partitions(
                [NewPartitions(topic, partitions)], operation_timeout=ANSWER_SECONDS
            )
            for future in futures.values():
                future.result(ANSWER_SECONDS)
        deadline = time.monotonic() + ANSWER_SECONDS
        while (form := self.forms([topic]).get(topic)) is not None and form.partitions < partitions:
            if time.monotonic() > deadline:
                raise KafkaUnavailable(f'the new partitions of topic "{topic}" did not appear')
            time.sleep(0.01)

    def sampled(self, topic: str, partitions: int, read: Callable[..., _Made], *arguments: object) -> _Made:
        """Call `read` with the values of a topic's latest records (`LatestRecords.read`) and the arguments."""
        return read(self._latest.read(topic, partitions), *arguments)

    def names(self) -> set[str]:
        """Return the names of all topics."""
        with mapped("listing topics"):
            return set(self._admin.client.list_topics(timeout=ANSWER_SECONDS).topics)

    def create(self, wanted: Mapping[str, int], config: Mapping[str, str] | None = None) -> set[str]:
        """Create topics, and return the new topics. Existing topics stay unchanged.

        Args:
            wanted: Topic → number of partitions.
            config: The configuration of new topics.

        Raises:
            TopicRefusal: Kafka refuses one or several of the topics. All other topics exist.
            KafkaUnavailable: Kafka failed. Some topics may have been created.
        """
        made, refused = self.create_each(wanted, config)
        for error in refused.values():
            raise error
        return made

    def create_each(
        self, wanted: Mapping[str, int], config: Mapping[str, str] | None = None
    ) -> tuple[set[str], dict[str, TopicRefusal]]:
        """Create topics. Existing topics stay unchanged.

        Args:
            wanted: Topic → number of partitions.
            config: The configuration of new topics.

        Returns:
            The new topics; and topic → refusal, for topics that Kafka refuses.

        Raises:
            KafkaUnavailable: Kafka failed. Some topics may have been created.
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
                    made.add(name)  # the first request, whose answer was late, may have made the topic
                elif (refusal := refusal_of(name, error)) is not None:
                    refused[name] = refusal
                elif error_code(error) != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise error
        self.await_forms(wanted.keys() - refused.keys())  # callers then ask for offsets of the new topics
        return made, refused

    def _creation_results(self, new: list[NewTopic]) -> tuple[dict[str, KafkaException | None], bool]:
        """Request new topics.

        Returns:
            Topic → its error, or None; and whether the request was repeated. If so, an earlier request may have made
            topics.
        """
        requests = 0

        def ask(admin: AdminClient) -> dict[str, KafkaException | None]:
            nonlocal requests
            _count_brokers(admin)  # this call fails if the client cannot reach its broker, before topics are requested
            requests += 1
            return {
                name: _error(answer)
                for name, answer in admin.create_topics(new, operation_timeout=_MADE_SECONDS).items()
            }

        return self._admin.ask(ask, _ALL_MADE_SECONDS), requests > 1

    def delete(self, names: Iterable[str]) -> set[str]:
        """Delete topics; return the topics that Kafka refuses to delete. Missing topics are skipped."""
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
        """Return an admin client that has just got an answer.

        Requests that change topics use it. They are sent only once, so the connection must work.
        """
        self._admin.ask(_count_brokers, ANSWER_SECONDS)
        return self._admin.client


def _error(answer: Future[None]) -> KafkaException | None:
    """Return the error of a change; None if the change was carried out. If no answer came in time, raise the error."""
    try:
        answer.result(ANSWER_SECONDS)
    except KafkaException as error:
        if is_late(error):
            raise
        return error
    return None


def _count_brokers(admin: AdminClient) -> int:
    described: Any = admin.describe_cluster(request_timeout=QUESTION_SECONDS)  # the driver annotates another type
    return len(described.result(ANSWER_SECONDS).nodes)


def _configs(admin: AdminClient, resources: Sequence[ConfigResource]) -> dict[str, dict[str, str]]:
    found = {}
    futures = admin.describe_configs(list(resources), request_timeout=QUESTION_SECONDS)
    for resource, future in futures.items():
        try:
            entries = future.result(ANSWER_SECONDS)
        except KafkaException as error:
            if error_code(error) in FORBIDDEN:
                raise unreadable(f'the configuration of topic "{resource.name}"', error) from error
            if error_code(error) != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
        else:
            found[resource.name] = {name: entry.value or "" for name, entry in entries.items()}
    return found


def durability(settings: Settings) -> dict[str, str]:
    """Return the topic option with the number of replicas that must have a record before Kafka acknowledges it."""
    least = settings.kafka.min_isr
    return {"min.insync.replicas": str(least)} if least > 0 else {}
