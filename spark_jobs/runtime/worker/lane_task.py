"""A task of the lane: its streams are evaluated one after the other, and Redis is told which one is in hand."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from grouping.model.errors import OperationalError
from grouping.model.ids import StreamId
from grouping.store.fence import LeaseLost
from grouping.store.lane_hand import LaneHand
from grouping.store.ownership import EvaluatorFences
from spark_jobs.runtime.kafka.record_writer import RecordsTooLarge, record_writer
from spark_jobs.runtime.kafka.sink import Produce, fence_watch
from spark_jobs.runtime.kafka.table_log import TableAway

__all__ = ["LaneStream", "LaneTask", "StreamFailed", "by_source_partition"]

_BATCH_ID = "streaming.sql.batchId"
_OF_ONE_STREAM = (LeaseLost, RecordsTooLarge, TableAway)
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


@dataclass(frozen=True, slots=True)
class LaneTask:
    """The function that `mapInArrow` runs for the lane. Spark pickles the function for each task: no tables here."""

    streams: Mapping[str, LaneStream]
    """By topic."""
    settings: bytes
    """The `Settings`, pickled, since JSON would mask its secrets."""
    fences: EvaluatorFences

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the results of a task's records; yields nothing, and ends when Kafka has all of them.

        Raises:
            StreamFailed: The evaluation of a stream raised.
            OperationalError: Kafka or Redis failed.
        """
        hand, watch = _hand(self.settings), fence_watch(self.settings)
        writer = record_writer(self.settings)
        task, batch = _place()
        seconds: dict[str, float] = {}
        for topic, records in by_source_partition(batches):
            source_id, stream_id, produce = self.streams[topic]
            hand.take(task, batch, source_id)
            began = time.monotonic()
            may_write = partial(watch.check, self.fences.stream(stream_id))
            try:
                may_write()
                for rows in produce(records):
                    writer.write(rows, may_write)
            except Exception as error:
                if isinstance(error, OperationalError) and not isinstance(error, _OF_ONE_STREAM):
                    raise
                raise StreamFailed(source_id, error) from error
            seconds[source_id] = seconds.get(source_id, 0.0) + time.monotonic() - began
        # While Kafka is away, no stream is at fault.
        hand.done(task, seconds)
        writer.flush()
        yield from ()


def by_source_partition(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, Iterator[pa.RecordBatch]]]:
    """Yield the topic and the records of each source partition; a task has each source partition whole.

    Args:
        batches: Columns of Spark's Kafka source, topic among them.
    """
    for (topic, _), parts in groupby(_parts(batches), itemgetter(0)):
        yield topic, (records for _, records in parts)


def _parts(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[tuple[str, int], pa.RecordBatch]]:
    """Cut batches where the source partition changes."""
    for batch in batches:
        if not batch.num_rows:
            continue
        ends = np.union1d(*(pc.run_end_encode(batch[name]).run_ends for name in ("topic", "partition")))
        starts = (0, *(int(end) for end in ends[:-1]))
        records = batch.drop_columns(["topic"])
        for start, end in zip(starts, ends, strict=True):
            place = (batch["topic"][start].as_py(), batch["partition"][start].as_py())
            yield place, records.slice(start, int(end) - start)


@lru_cache(maxsize=4)
def _hand(settings: bytes) -> LaneHand:
    """Return the worker's notes, which last as long as the process."""
    return LaneHand(pickle.loads(settings))


def _place() -> tuple[int, int]:
    """Return the numbers of the task and of its micro-batch."""
    context = TaskContext.get()
    assert context is not None, "a task runs it"
    return context.partitionId(), int(context.getLocalProperty(_BATCH_ID) or 0)
