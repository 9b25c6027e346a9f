"""The topics that there must be: the gateway's own, those of destinations, and those of sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gateway.doctor.catalog import CatalogState
from gateway.doctor.finding import Finding
from gateway.kafka import Topics
from gateway.model.membership import Membership
from gateway.state.end_notices import EndNotices
from gateway.topics.own_topics import misformed
from gateway.topics.positions import topic_of
from grouping.model.ids import DestinationId
from grouping.settings.settings import Settings

__all__ = ["check_topics"]


def check_topics(
    settings: Settings,
    topics: Topics,
    catalog: CatalogState,
    memberships: Mapping[DestinationId, Membership],
    notices: EndNotices,
) -> Iterator[Finding]:
    """Yield topics that are missing, left over, or not in the form that they must have.

    Raises:
        KafkaUnavailable: Kafka does not answer.
    """
    for topic, wrong in misformed(settings, topics).items():
        yield Finding(
            "own-topic", topic, wrong, "The gateway brings it into form at its start.", "bring the topics into form"
        )
    there = topics.names()
    names = settings.topics
    wanted = {topic_of(settings, each.destination) for each in memberships.values()} - {names.results}
    ended = {topic_of(settings, each.destination) for each in (*notices.open.values(), *notices.lingering.values())}
    for topic in sorted(wanted - there):
        hint = "Without it a result has nowhere to go: the stream stands still."
        yield Finding(
            "result-topic-missing", topic, "A CQ publishes to it, and Kafka has no such topic.", hint, "make the topic"
        )
    for topic in sorted(there - wanted - ended):
        if names.owner_kind(topic) is not None:
            hint = "It is of nobody, and costs the brokers partitions."
            yield Finding(
                "result-topic-unknown", topic, "No CQ publishes to it, or did lately.", hint, "delete the topic"
            )
    for kind in ("stream", "table"):
        for source in catalog.sources[kind].values():
            if source.topic not in there:
                hint = f"Make the topic again, or drop the {kind}."
                yield Finding("source-missing", f"{kind} {source.name}", f'Its topic "{source.topic}" is gone.', hint)
