"""Source topics as a streaming DataFrame: the topic of one stream, or those of the lane's streams."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping

from pyspark.sql import DataFrame, SparkSession

from grouping.model.catalog import Stream
from grouping.settings.kafka_options import java_options
from grouping.settings.settings import Settings

__all__ = ["FETCHES", "read_lane", "read_stream"]

_EARLIEST = -2
FETCHES = {"kafka.fetch.max.wait.ms": "10"}
"""How long a fetch of an executor's consumer waits at the broker for new records.

Before each read Spark's consumer asks for the bounds of its partition, on the connection on which its own fetch ahead
waits. By Kafka's default, 500 ms, an event that comes alone waits for half a second.
"""


def read_stream(
    spark: SparkSession, stream: Stream, partitions: Iterable[int], settings: Settings, *, headers: bool = False
) -> DataFrame:
    """Return the stream's records: key, value, partition, offset, timestamp, and headers if asked for.

    Only committed ones, from the offsets that CREATE STREAM fixed, in bounded batches. A task reads a single partition
    (no ``minPartitions``), so results of a partition are written in its order.

    Args:
        spark: The session.
        stream: The stream.
        partitions: The topic's partitions now; a partition newer than the stream is read from its beginning.
        settings: The evaluator's settings.
        headers: Whether to ask Kafka for headers.
    """
    starts = {partition: position - stream.base for partition, position in stream.start_offsets.items()}
    offsets = {stream.topic: _starts(starts, partitions)}
    return _read(spark, offsets, settings, FETCHES, headers).select(*_columns(headers))


def read_lane(
    spark: SparkSession,
    streams: Collection[Stream],
    starts: Mapping[str, Mapping[str, int]],
    partitions: Mapping[str, Iterable[int]],
    tasks: int,
    settings: Settings,
    *,
    headers: bool,
) -> DataFrame:
    """Return the records of many streams, with a column topic, in few tasks: a task has source partitions whole.

    Args:
        spark: The session.
        streams: The streams, each with a topic of its own.
        starts: By topic and partition the first offset, where there is no checkpoint yet.
        partitions: By topic the partitions that there are now.
        tasks: How many tasks a micro-batch has at most.
        settings: The evaluator's settings.
        headers: Whether to ask Kafka for headers.
    """
    offsets = {each.topic: _starts(starts[each.topic], partitions[each.topic]) for each in streams}
    # With a group of its own the executors' consumers stay connected when the query is started again.
    fetches = {"kafka.fetch.max.wait.ms": "0", "kafka.group.id": settings.clients.evaluator_lane}
    source = _read(spark, offsets, settings, fetches, headers)
    return source.select("topic", *_columns(headers)).coalesce(tasks)


def _starts(starts: Mapping[str, int], partitions: Iterable[int]) -> dict[str, int]:
    return {str(partition): starts.get(str(partition), _EARLIEST) for partition in partitions}


def _columns(headers: bool) -> list[str]:
    return ["key", "value", "partition", "offset", "timestamp", *(["headers"] if headers else [])]


def _read(
    spark: SparkSession,
    offsets: Mapping[str, Mapping[str, int]],
    settings: Settings,
    fetches: Mapping[str, str],
    headers: bool,
) -> DataFrame:
    options = java_options(settings.kafka) | {
        "subscribe": ",".join(offsets),
        "startingOffsets": json.dumps(offsets),
        "kafka.isolation.level": "read_committed",
        # A deleted topic is reported, not created again by asking for it.
        "kafka.allow.auto.create.topics": "false",
        # Spark asks the broker for the topic's bounds at every poll: two round trips for 500 records by default.
        "kafka.max.poll.records": "10000",
        **fetches,
        "maxOffsetsPerTrigger": str(settings.evaluator.events_per_batch),
        # Deleted events are reported by `progress`, and the stream goes on (docs/results.md).
        "failOnDataLoss": "false",
    }
    if headers:
        options["includeHeaders"] = "true"
    return spark.readStream.format("kafka").options(**options).load()
