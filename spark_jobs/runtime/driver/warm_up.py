"""Runs a few micro-batches before there are events, so that the first real micro-batch is as fast as the others.

The first micro-batch is slow (2 s or more on two cores), because workers start, Spark loads and compiles its planner,
and the Kafka clients connect. The warm-up reads and writes a topic of its own in the same way as the topics of streams.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from grouping.model.catalog import Stream, StreamColumn
from grouping.model.errors import OperationalError
from grouping.model.ids import StreamId
from grouping.settings.settings import Settings
from spark_jobs.engine.rows.headers import NO_HEADERS
from spark_jobs.engine.rows.output import OUTPUT
from spark_jobs.runtime.kafka.broker import Broker
from spark_jobs.runtime.kafka.sink import checkpoint_location, write_stream
from spark_jobs.runtime.kafka.source import read_stream
from spark_jobs.runtime.streams.files import files_of

__all__ = ["warm_up"]

log = logging.getLogger(__name__)

_EVENT, _RESULT = b"event", b"result"
_BATCHES = 3
_PATIENCE_SECONDS = 20.0
_LOOK_SECONDS = 0.02


def warm_up(spark: SparkSession, settings: Settings, broker: Broker) -> None:
    """Run some batches over the topic for warm-ups. This takes seconds; a failure is only logged."""
    topic = settings.topics.warm_up
    # Another evaluator may run a warm-up at the same time, with its checkpoints in the same folder.
    name = f"warm-up-{secrets.token_hex(4)}"
    location = checkpoint_location(name, settings)
    files = files_of(location, spark)
    try:
        files.remove(location)
        broker.ensure_topic(topic)
        start = {str(partition): end for partition, end in broker.ends(topic).items()}
        stream = Stream(StreamId(name), name, (StreamColumn("a", "STRING"),), topic, "json", start, "")
        events = read_stream(spark, stream, [0], settings)
        query = write_stream(events, partial(_answer, topic), name, settings)
        try:
            _feed(query, topic, broker)
        finally:
            query.stop()
    except OperationalError as error:
        log.warning("not warmed up", extra={"reason": error.line})
    except Exception as error:  # the exceptions of pyspark and py4j have no common base
        log.warning("not warmed up", extra={"reason": str(error).splitlines()[0]})
    with suppress(OperationalError):
        files.remove(location)


def _feed(query: StreamingQuery, topic: str, broker: Broker) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    for number in range(_BATCHES):
        broker.write(topic, _EVENT)
        while ((last := query.lastProgress) is None or last["batchId"] < number) and query.isActive:
            if time.monotonic() > deadline:
                return
            time.sleep(_LOOK_SECONDS)


def _answer(topic: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield a result for each warm-up event, to be written to the same topic.

    The results are read in turn by a further batch, which has no results.
    """
    for batch in batches:
        count = batch["key"].to_pylist().count(_EVENT)
        columns = [pa.repeat(pa.scalar(_RESULT), count), pa.nulls(count, pa.binary())]
        columns += [pa.repeat(pa.scalar(topic), count), pa.nulls(count, pa.int32())]
        columns.append(pa.repeat(pa.scalar(NO_HEADERS), count))
        yield pa.record_batch(columns, schema=OUTPUT)
