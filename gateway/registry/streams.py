"""CREATE STREAM and DROP STREAM: a topic that is read as a table."""

from __future__ import annotations

import hashlib

from gateway.kafka import Topics
from gateway.model.records import instant
from gateway.registry.source_topics import check_declaration, check_name, source_form
from gateway.state.working_copy import WorkingCopy
from grouping.model.catalog import Catalog, Stream, StreamColumn
from grouping.model.errors import InputError
from grouping.model.ids import StreamId
from grouping.model.query import CreateStream, DropStream
from grouping.model.wording import are, counted
from grouping.settings import Settings

__all__ = ["create_stream", "describe_stream", "drop_stream"]


def create_stream(
    settings: Settings,
    working: WorkingCopy,
    catalog: Catalog,
    topics: Topics,
    statement: CreateStream,
    owner: str,
    position: str,
    now_ms: int,
) -> Stream:
    """Declare a stream; where it starts is fixed here, before the reply (design notes in README.md).

    Args:
        settings: The settings.
        working: The unit of work that it becomes part of.
        catalog: The live streams; the new one is added.
        topics: Kafka's topics.
        statement: What was asked.
        owner: The subscriber that asks, against whose limits it counts.
        position: The command's own place, which makes the stream's id unique and the same at every try.
        now_ms: The time of acceptance.

    Raises:
        InputError: stream-exists, stream-mismatch, not-allowed, quota-exceeded.
    """
    check_name(catalog, statement.name)
    check_declaration(settings, topics, statement)
    found = topics.forms([statement.topic]).get(statement.topic)
    _check_quota(settings, catalog, owner, statement.partitions or 0 if found is None else found.partitions)
    form = source_form(topics, statement, found, {})
    places = [(statement.topic, number) for number in range(form.partitions)]
    offsets = topics.beginnings(places) if statement.start == "earliest" else topics.ends(places)
    stream = Stream(
        stream_id=StreamId("s_" + hashlib.blake2b(f"{position}/{statement.name}".encode(), digest_size=6).hexdigest()),
        name=statement.name,
        columns=tuple(StreamColumn(name, str(kind)) for name, kind in statement.columns),
        topic=statement.topic,
        format=statement.format,
        start_offsets={str(number): offset for (_, number), offset in sorted(offsets.items())},
        created_at=instant(now_ms),
        avro_schema=statement.schema,
        framing=statement.framing,
        topic_id=form.topic_id,
        owner=owner,
    )
    working.unit.add_stream(stream)
    catalog.add(stream)
    return stream


def _check_quota(settings: Settings, catalog: Catalog, owner: str, partitions: int) -> None:
    """Raise the ``quota-exceeded`` of a subscriber that has enough streams; each costs the evaluator a query."""
    own = [stream for stream in catalog if stream.owner == owner]
    limits = settings.limits
    have = sum(len(stream.start_offsets) for stream in own)
    if len(own) >= limits.streams_per_subscriber:
        what, there, limit = "streams", f"There {are(len(own))} {len(own)}", limits.streams_per_subscriber
    elif have + partitions > limits.partitions_per_subscriber:
        what, limit = "partitions", limits.partitions_per_subscriber
        there = f"Its streams have {have}, and this one would have {partitions}"
    else:
        return
    raise InputError(
        f'subscriber "{owner}" has too many {what}',
        code="quota-exceeded",
        detail=f"{there}; the limit is {limit}.",
        hint="Drop streams that are not needed any more.",
    )


def drop_stream(working: WorkingCopy, catalog: Catalog, statement: DropStream) -> Stream:
    """Forget a stream that no CQ uses.

    Raises:
        InputError: unknown-stream, stream-in-use.
    """
    stream = catalog.stream(statement.name)
    groups = working.inventory.groups(stream.stream_id).values()
    views = sorted(view.name for view in working.inventory.views.values() if stream.name in view.reads)
    if views:
        raise InputError(
            f'stream "{stream.name}" is in use',
            code="stream-in-use",
            detail=f"It is read by {counted(len(views), 'view')}: {', '.join(views)}.",
            hint="Drop those views first.",
        )
    if groups:
        raise InputError(
            f'stream "{stream.name}" is in use',
            code="stream-in-use",
            detail=f"It has {counted(sum(groups), 'CQ')} in {counted(len(groups), 'group')}.",
            hint="Drop those CQs first.",
        )
    working.unit.remove_stream(stream.stream_id)
    catalog.remove(stream)
    return stream


def describe_stream(stream: Stream) -> dict[str, object]:
    """Return a stream as CREATE STREAM, DESCRIBE STREAM and SHOW STREAMS answer it."""
    return {
        "stream": stream.name,
        "id": stream.stream_id,
        "topic": stream.topic,
        "format": stream.format,
        "framing": stream.framing if stream.format == "avro" else None,
        "columns": [{"name": column.name, "type": column.type_text} for column in stream.columns],
        "start_offsets": stream.start_offsets,
        "generation": stream.generation,
        "created_at": stream.created_at,
    }
