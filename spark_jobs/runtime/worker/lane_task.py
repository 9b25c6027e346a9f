"""A task of the lane: it reads source partitions, evaluates one after the other, and tells Redis which is in hand."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache, partial
from typing import NamedTuple

import pyarrow as pa
from pyspark import Broadcast, TaskContext
from pyspark.sql import SparkSession

from grouping.model.errors import OperationalError
from grouping.model.ids import StreamId
from grouping.process.schema_registry import SchemaAway
from grouping.settings.settings import Settings
from grouping.store.fence import LeaseLost
from grouping.store.ownership import EvaluatorFences
from grouping.store.task_notes import LaneHand
from spark_jobs.runtime.kafka.positioned_consumer import PartitionUnreadable
from spark_jobs.runtime.kafka.range_reader import RangeReader, RecordUnreadable, SourceRange
from spark_jobs.runtime.kafka.record_writer import RecordsTooLarge, record_writer
from spark_jobs.runtime.kafka.sink import Produce, fence_watch
from spark_jobs.runtime.kafka.table_log import TableAway
from spark_jobs.runtime.worker.worker import BATCH_ID, PROCESS

__all__ = ["RANGES", "LaneStream", "LaneTask", "StreamFailed"]

RANGES = "cq.lane.ranges"
"""Spark's local property with the ranges of each task of a micro-batch, as JSON."""
_OF_ONE_STREAM = (LeaseLost, RecordsTooLarge, RecordUnreadable, SchemaAway, TableAway)
"""Failures of one stream; other operational errors, such as a broker that is away, concern all streams of the lane."""


class LaneStream(NamedTuple):
    """A stream of the lane, as a task evaluates it."""

    source_id: str
    """Its `Stream.source_id`."""
    stream_id: StreamId
    produce: Produce
    """Makes rows of the records of one source partition."""


class StreamFailed(Exception):
    """The evaluation of one stream of the lane raised; the driver finds the stream by the text."""

    def __init__(self, source_id: str, reason: BaseException) -> None:
        super().__init__(f"stream {source_id}: {type(reason).__name__}: {reason}")


class LaneTask:
    """The function that `mapInArrow` runs for the lane, the same for all micro-batches: workers keep the streams."""

    def __init__(
        self, spark: SparkSession, streams: Mapping[str, LaneStream], settings: Settings, fences: EvaluatorFences
    ) -> None:
        """Send the streams to the workers.

        Args:
            spark: The session.
            streams: The streams by topic.
            settings: The evaluator's settings.
            fences: The fences under which tasks write.
        """
        self.topics = list(streams)
        """The topics of the streams."""
        self._streams: Broadcast[Mapping[str, LaneStream]] = spark.sparkContext.broadcast(streams)
        self._settings = pickle.dumps(settings)  # JSON would mask its secrets
        self._fences = fences

    def forget(self) -> None:
        """Have the workers forget the streams."""
        self._streams.destroy()

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the results of a task's records; yields nothing, and ends when Kafka has all of them.

        Raises:
            StreamFailed: The evaluation of a stream raised, or its topic cannot be read.
            OperationalError: Kafka or Redis failed.
        """
        for _ in batches:
            pass  # the rows have nothing but the number of tasks
        task, batch, ranges = _work()
        stream_ids = {self._streams.value[each.topic].stream_id for each in ranges}
        with PROCESS.lane_task(stream_ids, batch, _unpickled(self._settings), self._fences):
            seconds = self._write(task, batch, ranges)
        # While Kafka is away, no stream is at fault.
        _hand(self._settings).done(task, seconds)
        record_writer(self._settings).flush()
        yield from ()

    def _write(self, task: int, batch: int, ranges: list[SourceRange]) -> dict[str, float]:
        """Write the results of the ranges' records, and return the CPU seconds of each stream by `source_id`."""
        hand, watch = _hand(self._settings), fence_watch(self._settings)
        writer = record_writer(self._settings)
        seconds: dict[str, float] = {}
        taken = ""
        for topic, records in self._read(ranges):
            source_id, stream_id, produce = self._streams.value[topic]
            began, used = time.monotonic(), time.process_time()
            fence = self._fences.stream(stream_id)
            if source_id != taken:
                watch.told(fence, hand.take(task, batch, source_id, fence), began)
                taken = source_id
            may_write = partial(watch.check, fence)
            try:
                may_write()
                for rows in produce(records):
                    writer.write(rows, may_write)
            except Exception as error:
                if isinstance(error, OperationalError) and not isinstance(error, _OF_ONE_STREAM):
                    raise
                raise StreamFailed(source_id, error) from error
            # A process of a busy machine waits for a core: by the clock, each stream would seem to need one.
            seconds[source_id] = seconds.get(source_id, 0.0) + time.process_time() - used
        return seconds

    def _read(self, ranges: list[SourceRange]) -> Iterator[tuple[str, Iterator[pa.RecordBatch]]]:
        """Yield the topic and the records of each source partition."""
        try:
            for each, records in _reader(self._settings).read(ranges):
                yield each.topic, records
        except PartitionUnreadable as error:
            raise StreamFailed(self._streams.value[error.topic].source_id, error) from error


@lru_cache(maxsize=4)
def _unpickled(settings: bytes) -> Settings:
    return pickle.loads(settings)  # type: ignore[no-any-return]


@lru_cache(maxsize=4)
def _hand(settings: bytes) -> LaneHand:
    """Return the worker's notes, which last as long as the process."""
    return LaneHand(_unpickled(settings))


@lru_cache(maxsize=1)
def _reader(settings: bytes) -> RangeReader:
    """Return the worker's reader, which stays connected as long as the process lasts."""
    return RangeReader(_unpickled(settings))


def _work() -> tuple[int, int, list[SourceRange]]:
    """Return the numbers of the task and of its micro-batch, and the ranges that the task reads."""
    context = TaskContext.get()
    assert context is not None, "a task runs it"
    task = context.partitionId()
    ranges = json.loads(context.getLocalProperty(RANGES) or "[]")[task]
    return task, int(context.getLocalProperty(BATCH_ID) or 0), [SourceRange(*each) for each in ranges]
