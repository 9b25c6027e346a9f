"""Checks the topics: the gateway's own topics, and the topics of destinations and sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from gateway.doctor.catalog import CatalogState
from gateway.doctor.finding import Finding
from gateway.kafka import Topics
from gateway.model.membership import Membership
from gateway.topics.own_topics import misformed
from gateway.topics.positions import topic_of
from grouping.model.ids import DestinationId
from grouping.settings.settings import Settings

__all__ = ["check_topics", "unknown_topics"]


def check_topics(
    settings: Settings,
    topics: Topics,
    catalog: CatalogState,
    memberships: Mapping[DestinationId, Membership],
) -> Iterator[Finding]:
    """Yield findings about topics that are missing, that are left over, or that do not have the required form.

    Raises:
        KafkaUnavailable: Kafka does not answer.
    """
    for topic, wrong in misformed(settings, topics).items():
        yield Finding("own-topic", topic, wrong, "The gateway repairs it when it starts.", "bring the topics into form")
    there = topics.names()
    for topic in sorted(_wanted(settings, memberships) - there):
        hint = "The evaluator cannot write a result to it, so the stream is not evaluated any further."
        yield Finding(
            "result-topic-missing", topic, "A CQ publishes to it, and Kafka has no such topic.", hint, "make the topic"
        )
    for topic in sorted(_unknown(settings, there, catalog, memberships)):
        detail, hint = "No CQ publishes to it or has done so recently.", "The topic uses partitions of the brokers."
        yield Finding("result-topic-unknown", topic, detail, hint, "delete the topic")
    for kind in ("stream", "table"):
        for source in catalog.sources[kind].values():
            if source.topic not in there:
                hint = f"Make the topic again, or drop the {kind}."
                yield Finding("source-missing", f"{kind} {source.name}", f'Its topic "{source.topic}" is gone.', hint)


def unknown_topics(settings: Settings, topics: Topics, catalog: CatalogState) -> set[str]:
    """Return result topics for which the catalog has neither a live destination nor one that has ended recently.

    Raises:
        KafkaUnavailable: Kafka does not answer.
    """
    return _unknown(settings, topics.names(), catalog, catalog.memberships())


def _unknown(
    settings: Settings, there: Set[str], catalog: CatalogState, memberships: Mapping[DestinationId, Membership]
) -> set[str]:
    ended = {topic_of(settings, notice.destination) for some in catalog.ends.values() for notice in some}
    own = {topic for topic in there if settings.topics.owner_kind(topic) is not None}
    return own - _wanted(settings, memberships) - ended


def _wanted(settings: Settings, memberships: Mapping[DestinationId, Membership]) -> set[str]:
    """Return the topics of dedicated and virtual destinations."""
    return {topic_of(settings, each.destination) for each in memberships.values()} - {settings.topics.results}
