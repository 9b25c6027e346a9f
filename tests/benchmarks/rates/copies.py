"""The comparison for evaluation: the same topic copied by Spark through a `mapInArrow` that matches nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from grouping.model.catalog import Stream
from grouping.settings.settings import Settings
from spark_jobs.engine.rows.events import Events
from spark_jobs.engine.rows.headers import event_ids, event_times, match_headers
from spark_jobs.runtime.kafka.sink import checkpoint_location
from spark_jobs.runtime.kafka.source import read_stream
from tests.benchmarks.rates.pipeline import Side, Start, through
from tests.benchmarks.rates.spark_sink import HEADERS, ROWS, header_lists, write_by_spark

__all__ = ["headers_copy", "own_copy", "plain_copy", "tuned_copy"]


def plain_copy(source: str, topic: str) -> Start:
    """Return a naive copy: keys and values, an identity, and the defaults of Spark and Kafka.

    Only the size of a micro-batch is the evaluator's.
    """

    def start(spark: SparkSession, settings: Settings) -> StreamingQuery:
        kafka = {"kafka.bootstrap.servers": settings.kafka.bootstrap}
        batch = {"maxOffsetsPerTrigger": str(settings.evaluator.events_per_batch), "startingOffsets": "earliest"}
        read = spark.readStream.format("kafka").options(subscribe=source, **kafka, **batch).load()
        copied = read.select("key", "value").mapInArrow(lambda batches: batches, "key binary, value binary")
        write = copied.writeStream.format("kafka").options(topic=topic, **kafka)
        return write.option("checkpointLocation", checkpoint_location("s_plain", settings)).start()

    return start


def tuned_copy(stream: Stream, topic: str) -> Start:
    """Return a copy of keys and values by the evaluator's source and Spark's sink, with all that makes these fast."""

    def copy(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield _copied(batch, topic, pa.nulls(batch.num_rows, HEADERS))

    return _by_spark(stream, copy)


def headers_copy(stream: Stream, topic: str) -> Start:
    """Return a tuned copy that has the five headers of a match."""

    def copy(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield _copied(batch, topic, header_lists(stream.name, *_identity(stream, batch)))

    return _by_spark(stream, copy)


def own_copy(stream: Stream, topic: str) -> Start:
    """Return a copy with the five headers that is written as the evaluator writes."""

    def copy(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            copied = _copied(batch, topic, match_headers(stream.name, *_identity(stream, batch)))
            yield copied.set_column(3, "partition", batch["partition"])

    return through(stream, copy)


def _by_spark(stream: Stream, side: Side) -> Start:
    def start(spark: SparkSession, settings: Settings) -> StreamingQuery:
        source = read_stream(spark, stream, range(len(stream.start_offsets)), settings)
        return write_by_spark(source.mapInArrow(side, ROWS), stream.stream_id, settings)

    return start


def _identity(stream: Stream, batch: pa.RecordBatch) -> tuple[pa.StringArray, pa.StringArray]:
    """Return ids and times of the records."""
    rows = np.arange(batch.num_rows, dtype=np.int32)
    events = Events(stream, batch, lambda _: [])
    return event_ids(stream.name, events, rows), event_times(events, rows)


def _copied(batch: pa.RecordBatch, topic: str, headers: pa.Array) -> pa.RecordBatch:
    count = batch.num_rows
    return pa.record_batch(
        {
            "key": batch["key"],
            "value": batch["value"],
            "topic": pa.repeat(pa.scalar(topic), count),
            "partition": pa.nulls(count, pa.int32()),
            "headers": headers,
        }
    )
