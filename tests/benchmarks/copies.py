"""What evaluation is compared with: the same topic copied by Spark through a `mapInArrow` that matches nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from grouping.catalog import Stream
from grouping.settings import Settings
from spark_jobs.events import Events
from spark_jobs.headers import event_ids, event_times, match_headers
from spark_jobs.output import HEADERS, OUTPUT
from spark_jobs.sink import checkpoint_location
from tests.benchmarks.pipeline import Start, through

__all__ = ["headers_copy", "plain_copy", "tuned_copy"]


def plain_copy(source: str, topic: str) -> Start:
    """Return the copy that one writes down: keys and values, an identity, and the defaults of Spark and Kafka.

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
    """Return a copy of keys and values by the evaluator's own source and sink, with all that makes these fast."""

    def copy(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield _copied(batch, topic, pa.nulls(batch.num_rows, HEADERS))

    return through(stream, copy)


def headers_copy(stream: Stream, topic: str) -> Start:
    """Return a tuned copy that has the five headers of a match."""

    def copy(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = np.arange(batch.num_rows, dtype=np.int32)
            events = Events(stream, batch, lambda _: [])
            ids, times = event_ids(stream.name, events, rows), event_times(events, rows)
            yield _copied(batch, topic, match_headers(stream.name, ids, times))

    return through(stream, copy)


def _copied(batch: pa.RecordBatch, topic: str, headers: pa.ListArray) -> pa.RecordBatch:
    count = batch.num_rows
    topics = pa.repeat(pa.scalar(topic), count)
    return pa.record_batch([batch["key"], batch["value"], topics, pa.nulls(count, pa.int32()), headers], schema=OUTPUT)
