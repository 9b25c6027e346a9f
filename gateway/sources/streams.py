"""CREATE STREAM and DROP STREAM: a stream is the typed columns of a topic's records."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import msgspec

from gateway.access.source_rights import SourceRights
from gateway.model.records import instant
from gateway.sources.declarations import (
    Declaration,
    describe_topic,
    in_use,
    listed_views,
    reading_views,
)
from gateway.sources.inferred_columns import InferredColumns, infer_columns
from gateway.sources.schema_columns import columns_of_statement, registry_columns
from gateway.sources.topics_read import MadeTopics, admitted_topic
from gateway.state.working_copy import WorkingCopy
from gateway.topics.topic_desk import TopicQuestions
from grouping.model.catalog import Catalog, Stream
from grouping.model.column import EventTime
from grouping.model.ids import StreamId
from grouping.model.query import CreateStream
from grouping.model.source_access import Access
from grouping.model.wording import counted
from grouping.settings.registries import login_of
from grouping.statements.stream_declaration import declared_fields
from grouping.values.times import format_interval

__all__ = ["create_stream", "describe_stream", "drop_stream"]

_SCHEMA_OPTIONS = ("schemas", "registry", "descriptor", "message")


def create_stream(
    declaration: Declaration, topics: TopicQuestions, made: MadeTopics, statement: CreateStream
) -> tuple[Stream, tuple[str, ...]]:
    """Declare a stream. Its start offsets are determined here, so all events published after the reply are evaluated.

    Args:
        declaration: The command and the live sources.
        topics: Kafka's topics. While Kafka has not answered, the command waits (`NotYet`).
        made: The topics that were made for subscribers; a topic that is made here is added.
        statement: The parsed command.

    Returns:
        The stream, and warnings about columns that were inferred from the topic.

    Raises:
        InputError: stream-exists, stream-mismatch, not-allowed, quota-exceeded.
        NotYet: Kafka has not answered.
    """
    form, origin = admitted_topic(declaration, topics, made, statement, {}), declaration.origin
    warnings: tuple[str, ...] = ()
    if statement.from_topic:
        found = _inferred(declaration, topics, form.partitions, statement)
        statement, warnings = replace(statement, columns=found.columns, places=found.places), found.warnings
    places = [(statement.topic, number) for number in range(form.partitions)]
    offsets = topics.offsets.beginnings(places) if statement.start == "earliest" else topics.offsets.ends(places)
    stream = Stream(
        stream_id=StreamId(origin.source_id("s", statement.name)),
        name=statement.name,
        start_offsets={str(number): offset for (_, number), offset in sorted(offsets.items())},
        created_at=instant(origin.accepted_ms),
        topic_id=form.topic_id,
        owner=origin.owner,
        access=Access(statement.access),
        **declared_fields(statement),
    )
    declaration.working.unit.sources.add_stream(stream)
    declaration.catalog.whole.add(stream)
    return stream, warnings


def _inferred(
    declaration: Declaration, topics: TopicQuestions, partitions: int, statement: CreateStream
) -> InferredColumns:
    """Return the columns of a CREATE STREAM … FROM TOPIC.

    Raises:
        InputError: stream-mismatch, unavailable.
        NotYet: Kafka or the registry has not answered yet.
    """
    if (known := columns_of_statement(statement)) is not None:
        return known
    topic = statement.topic
    if statement.registry is not None:
        login = login_of(declaration.settings, statement.registry)
        return topics.sampled(topic, partitions, registry_columns, topic, statement.registry, login)
    return topics.sampled(topic, partitions, infer_columns, topic, statement.explode, statement.framing)


def drop_stream(rights: SourceRights, working: WorkingCopy, catalog: Catalog, name: str, subscriber: str) -> Stream:
    """Drop a stream that no CQ and no view reads.

    Raises:
        InputError: unknown-stream, not-allowed, stream-in-use.
    """
    stream = catalog.stream(name)
    rights.check_owner(subscriber, stream, "DROP STREAM")
    groups = working.inventory.groups(stream.stream_id).values()
    if views := reading_views(working.inventory, stream.name):
        readers = f"The stream is read by {listed_views(catalog, views)}."
        raise in_use("stream", stream.name, readers, "Drop those views first.")
    if groups:
        readers = f"The stream has {counted(sum(groups), 'CQ')} in {counted(len(groups), 'group')}."
        raise in_use("stream", stream.name, readers, "Drop those CQs first.")
    working.unit.sources.remove_stream(stream.stream_id)
    catalog.whole.remove(stream)
    return stream


def describe_stream(stream: Stream) -> dict[str, object]:
    """Return the description of a stream for the replies to CREATE STREAM, DESCRIBE STREAM and SHOW STREAMS."""
    return {
        "stream": stream.name,
        "id": stream.stream_id,
        **describe_topic(stream),
        **({"lenient": True} if stream.lenient else {}),
        **({"timestamps": stream.timestamps} if stream.timestamps else {}),
        **({"explode": stream.explode} if stream.explode else {}),
        **({"decimals": stream.decimals} if stream.decimals else {}),
        **{name: value for name in _SCHEMA_OPTIONS if (value := getattr(stream, name))},
        **({} if stream.schema_id is msgspec.UNSET else {"schema_id": stream.schema_id}),
        **({"partition_key": stream.partition_key} if stream.partition_key else {}),
        **_described_time(stream.event_time),
        "start_offsets": stream.start_offsets,
        "generation": stream.generation,
        "created_at": stream.created_at,
    }


def _described_time(time: EventTime) -> dict[str, object]:
    found: dict[str, object] = {}
    if time.delay_ms is not None:
        delay = format_interval(timedelta(milliseconds=time.delay_ms))
        found["event_time"] = {"column": time.column or "_time", "delay": delay}
    if time.idle_ms is not None:
        found["idle"] = format_interval(timedelta(milliseconds=time.idle_ms))
    return found
