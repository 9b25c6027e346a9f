"""A source topic as a streaming DataFrame."""

from __future__ import annotations

import json
from collections.abc import Iterable

from pyspark.sql import DataFrame, SparkSession

from grouping.model.catalog import Stream
from grouping.settings.kafka_options import java_options
from grouping.settings.settings import Settings

__all__ = ["FETCHES", "read_stream"]

_EARLIEST = -2
FETCHES = {"kafka.fetch.max.wait.ms": "10"}
"""How long a fetch of an executor's consumer waits at the broker for new records.

Before each read, Spark's consumer asks for the bounds of its partition. This request waits until the consumer's own
prefetch on the same connection ends. With Kafka's default of 500 ms, a single event would wait for half a second.
"""


def read_stream(
    spark: SparkSession, stream: Stream, partitions: Iterable[int], settings: Settings, *, headers: bool = False
) -> DataFrame:
    """Return the stream's records: key, value, partition, offset, timestamp, and headers if `headers` is set.

    Only committed records are read, in bounded batches, from the stream's `start_offsets` on. A task reads whole
    partitions, one after the other, since ``minPartitions`` is not set. So the results of a partition are written in
    the order of its records.

    Args:
        spark: The session.
        stream: The stream.
        partitions: The topic's partitions now; a partition newer than the stream is read from its beginning.
        settings: The evaluator's settings.
        headers: Whether to read headers.
    """
    starts = {partition: position - stream.base for partition, position in stream.start_offsets.items()}
    begins = {str(partition): starts.get(str(partition), _EARLIEST) for partition in partitions}
    options = java_options(settings.kafka) | {
        "subscribe": stream.topic,
        "startingOffsets": json.dumps({stream.topic: begins}),
        "kafka.isolation.level": "read_committed",
        # Otherwise, asking for a deleted topic might create it again.
        "kafka.allow.auto.create.topics": "false",
        # Spark asks the broker for the topic's bounds at every poll. By default, a poll has only 500 records, and takes
        # two round trips.
        "kafka.max.poll.records": "10000",
        **FETCHES,
        "maxOffsetsPerTrigger": str(settings.evaluator.events_per_batch),
        # Deleted events are reported by `progress`, and the stream goes on (docs/results.md).
        "failOnDataLoss": "false",
    }
    columns = ["key", "value", "partition", "offset", "timestamp"]
    if headers:
        options["includeHeaders"] = "true"
        columns.append("headers")
    return spark.readStream.format("kafka").options(**options).load().select(*columns)
