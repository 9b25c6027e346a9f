"""A task of the lane evaluates source partitions one after the other, and notes in Redis the stream under way."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

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
from spark_jobs.runtime.kafka.sink import fence_watch
from spark_jobs.runtime.kafka.table_log import TableAway
from spark_jobs.runtime.states.log_states import StateClock
from spark_jobs.runtime.worker.range_clock import RangeBegin
from spark_jobs.runtime.worker.worker import BATCH_ID, PROCESS, Evaluation

__all__ = ["RANGES", "TIMES", "LaneRange", "LaneStream", "LaneTask", "StreamFailed"]

TIMES = "time string"
"""The schema of the rows that a task yields. A row is a topic, a partition and the fields of `RangeTime`, as JSON."""

RANGES = "cq.lane.ranges"
"""Spark's local property with the ranges of each task of a micro-batch, as JSON."""
_OF_ONE_STREAM = (LeaseLost, RecordsTooLarge, RecordUnreadable, SchemaAway, TableAway)
"""Operational errors that concern a single stream; others, such as an unreachable broker, concern the whole lane."""


class LaneStream(NamedTuple):
    """A stream of the lane, as a task evaluates it."""

    source_id: str
    """The `Stream.source_id` of the stream."""
    stream_id: StreamId
    produce: Evaluation
    """The function that makes rows of output from the records of a single source partition."""


class LaneRange(NamedTuple):
    """The records of a source partition that a task evaluates.

    The range is empty if the task must only make the results that a mark of the clock makes due.
    """

    records: SourceRange
    clock: StateClock | None = None
    """The marks of the clock at the first record."""

    @classmethod
    def of(cls, records: Sequence[Any], clock: Sequence[Any] | None) -> LaneRange:
        """Return the range whose fields were decoded from JSON."""
        return cls(SourceRange(*records), None if clock is None else StateClock(*clock))

    @property
    def begin(self) -> RangeBegin | None:
        """The beginning of the range; None if no marks are known, because the evaluation then uses the first record."""
        if self.clock is None:
            return None
        return RangeBegin(self.records.partition, self.records.first, self.clock)


class StreamFailed(Exception):
    """The evaluation of a stream of the lane raised an error. The driver finds the stream's id in the message."""

    def __init__(self, source_id: str, reason: BaseException) -> None:
        super().__init__(f"stream {source_id}: {type(reason).__name__}: {reason}")


class LaneTask:
    """The function that `mapInArrow` runs for the lane. All micro-batches share it, so workers get streams once."""

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
        """Free the memory of the streams in the driver and the workers. No task can run afterwards."""
        self._streams.destroy()

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the results of a task's records. The iterator ends when Kafka has all results.

        Yields:
            Rows of `TIMES`: the event times of the source partitions whose streams have event-time queries.

        Raises:
            StreamFailed: The evaluation of a stream raised an error, or the stream's topic cannot be read.
            OperationalError: Kafka or Redis failed.
        """
        for _ in batches:
            pass  # the input only makes Spark run this number of tasks
        task, batch, ranges = _work()
        stream_ids = {self._streams.value[each.records.topic].stream_id for each in ranges}
        with PROCESS.lane_task(stream_ids, batch, _unpickled(self._settings), self._fences):
            seconds, times = self._write(task, batch, ranges)
        # The note of the stream under way ends before the flush: a flush that fails is no stream's fault.
        _hand(self._settings).done(task, seconds)
        record_writer(self._settings).flush()
        if times:
            yield pa.RecordBatch.from_pylist([{"time": json.dumps(each)} for each in times])

    def _write(
        self, task: int, batch: int, ranges: list[LaneRange]
    ) -> tuple[dict[str, float], list[tuple[str, int, int, int | None]]]:
        """Write the results of the ranges' records.

        Returns:
            The CPU seconds of each stream, by `source_id`; and rows of a topic, a partition and a `RangeTime`'s fields.
        """
        hand, watch = _hand(self._settings), fence_watch(self._settings)
        writer = record_writer(self._settings)
        seconds: dict[str, float] = {}
        times: list[tuple[str, int, int, int | None]] = []
        taken = ""
        for each, records in self._read(ranges):
            topic = each.records.topic
            source_id, stream_id, produce = self._streams.value[topic]
            began, used = time.monotonic(), time.process_time()
            fence = self._fences.stream(stream_id)
            if source_id != taken:
                watch.note_holder(fence, hand.take(task, batch, source_id, fence), began)
                taken = source_id
            may_write = partial(watch.check, fence)
            try:
                may_write()
                for rows in produce(records, each.begin):
                    writer.write(rows, may_write)
                if (reported := PROCESS.take_time()) is not None:
                    times.append((topic, each.records.partition, *reported))
            except Exception as error:
                if isinstance(error, OperationalError) and not isinstance(error, _OF_ONE_STREAM):
                    raise
                raise StreamFailed(source_id, error) from error
            # CPU time, because wall-clock time includes waits for a core: on a busy machine each stream would seem to
            # need a core of its own.
            seconds[source_id] = seconds.get(source_id, 0.0) + time.process_time() - used
        return seconds, times

    def _read(self, ranges: list[LaneRange]) -> Iterator[tuple[LaneRange, Iterator[pa.RecordBatch]]]:
        """Yield each range with its records."""
        wanted = {each.records.place: each for each in ranges}
        for each in ranges:
            if each.records.first == each.records.end:
                yield each, iter(())
        try:
            some = [each.records for each in ranges if each.records.first < each.records.end]
            for found, records in _reader(self._settings).read(some) if some else ():
                yield wanted[found.place], records
        except PartitionUnreadable as error:
            raise StreamFailed(self._streams.value[error.topic].source_id, error) from error


@lru_cache(maxsize=4)
def _unpickled(settings: bytes) -> Settings:
    return pickle.loads(settings)  # type: ignore[no-any-return]


@lru_cache(maxsize=4)
def _hand(settings: bytes) -> LaneHand:
    """Return the worker's notes in Redis, which are kept as long as the process lasts."""
    return LaneHand(_unpickled(settings))


@lru_cache(maxsize=1)
def _reader(settings: bytes) -> RangeReader:
    """Return the worker's reader, which stays connected as long as the process lasts."""
    return RangeReader(_unpickled(settings))


def _work() -> tuple[int, int, list[LaneRange]]:
    """Return the numbers of the task and of its micro-batch, and the ranges that the task reads."""
    context = TaskContext.get()
    assert context is not None, "a task runs it"
    task = context.partitionId()
    ranges = json.loads(context.getLocalProperty(RANGES) or "[]")[task]
    return task, int(context.getLocalProperty(BATCH_ID) or 0), [LaneRange.of(*each) for each in ranges]
