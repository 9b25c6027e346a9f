"""The progress of a stream, which is written to Redis after each micro-batch and compared with the broker's offsets."""

from __future__ import annotations

import ast
import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

from pyspark.sql.streaming.query import StreamingQuery

from grouping.model.catalog import Stream
from grouping.store.table_store import TableStore
from spark_jobs.runtime.kafka.broker import Broker
from spark_jobs.runtime.streams.checkpoint import StreamPosition

__all__ = ["Committed", "Progress", "last_committed"]

log = logging.getLogger(__name__)


class Committed(NamedTuple):
    """The last committed micro-batch of a query, as Spark reports it."""

    batch: int
    offsets: dict[str, dict[str, int]]
    """By topic and partition, where the micro-batch ends."""
    events: int | None
    """The number of its events; None if Spark reports only the offsets."""
    phases: dict[str, float]
    """By Spark's name of a phase of the micro-batch, the seconds that the phase took."""


def last_committed(query: StreamingQuery) -> Committed | None:
    """Return the last committed micro-batch of a query; None before the first.

    Spark reports after each micro-batch, and every 10 seconds while there are no new events. An idle report has the
    number of the *next* micro-batch, and the offsets of the last committed micro-batch.
    """
    last: Any = query.lastProgress
    if last is None or not last["sources"]:
        return None
    carried_out = "addBatch" in last["durationMs"]
    # pyspark decodes Spark's JSON and returns the offsets as the text of a Python dict.
    offsets = ast.literal_eval(last["sources"][0]["endOffset"]) or {}
    if not carried_out:
        return Committed(last["batchId"] - 1, offsets, None, {})
    phases = {phase: millis / 1000 for phase, millis in last["durationMs"].items()}
    return Committed(last["batchId"], offsets, last["numInputRows"], phases)


class Progress:
    """The progress of one stream."""

    def __init__(self, stream: Stream, position: StreamPosition, store: TableStore, broker: Broker) -> None:
        """Begin at the position of the checkpoint.

        Args:
            stream: The stream.
            position: The position of the checkpoint; batch -1 before the first commit.
            store: Redis, for the progress.
            broker: Kafka, with the topic.
        """
        self.stream = stream
        """The stream as the gateway declares it now; partitions may have been added to its topic."""
        self._store = store
        self._broker = broker
        self._position = position
        """The last committed position, in offsets of the topic, as Spark reports it."""
        self._noted: StreamPosition | None = None
        """The position last written to Redis."""
        self._deleted: dict[str, int] = {}
        """By partition, the offset before which all deleted ranges are reported."""
        self.events_deleted = 0
        """The number of offsets, since this process began, that the broker deleted before they were evaluated."""
        self.batch_events = 0
        """The number of events of the last committed micro-batch."""
        self.phases: dict[str, float] = {}
        """By Spark's name of a phase, the seconds that the phase took in the last committed micro-batch."""

    @property
    def batch(self) -> int:
        """The number of the last committed micro-batch; -1 before the first."""
        return self._position.batch

    @property
    def reached(self) -> int:
        """The sum over all partitions of the position before which all events are evaluated."""
        return sum(self.stream.evaluated(self.stream.positions(self._position.offsets)).values())

    def _next(self, partition: str) -> int:
        """Return the first offset of a partition that is not evaluated."""
        stream = self.stream
        return stream.evaluated(stream.positions(self._position.offsets)).get(partition, stream.base) - stream.base

    def look(self, query: StreamingQuery) -> None:
        """Take note of the micro-batch that a query has committed last, and write the position to Redis."""
        committed = last_committed(query)
        if committed is not None:
            self.take(committed)
        self.tell()

    def take(self, committed: Committed) -> None:
        """Take note of a committed micro-batch; `tell` writes the position to Redis."""
        if committed.batch < self._position.batch:
            return
        before, fresh = self.reached, committed.batch > self._position.batch
        if offsets := committed.offsets.get(self.stream.topic):
            self._position = StreamPosition(committed.batch, {**self._position.offsets, **offsets})
        if fresh and committed.events is not None:
            # `committed.events` is the number of events of all streams if the micro-batch is one of a lane.
            self.batch_events = committed.events if len(committed.offsets) == 1 else max(self.reached - before, 0)
            self.phases = committed.phases

    def tell(self) -> None:
        """Write the position to Redis, unless Redis has the position already."""
        if self._position.batch < 0:
            return
        # A micro-batch of a lane may have no events of this stream, so the offsets are compared, not the batches.
        if self._noted is None or self._position.offsets != self._noted.offsets:
            positions = self.stream.positions(self._position.offsets)
            self._store.committed(self.stream.stream_id, self._position.batch, positions)
            self._noted = self._position
            fields = {"stream": self.stream.name, "batch": self._position.batch, "events": self.batch_events}
            log.debug("micro-batch evaluated", extra=fields)

    def forget(self) -> None:
        """Make `tell` write the position again, since Redis has lost its data."""
        self._noted = None

    def report_deleted(self, earliest: Mapping[int, int]) -> None:
        """Write a dead letter, at least once, for each range that was deleted before its evaluation (docs/results.md).

        Args:
            earliest: By partition, the first offset that the broker still has.
        """
        for number, first in earliest.items():
            partition = str(number)
            due = max(self._next(partition), self._deleted.get(partition, 0))
            if first > due:
                self._broker.report_deleted(self.stream.topic, number, due, first - 1)
                self._deleted[partition] = first
                self.events_deleted += first - due
                log.error(
                    "events deleted before they were evaluated",
                    extra={"stream": self.stream.name, "partition": number, "first": due, "last": first - 1},
                )

    def behind(self, ends: Mapping[int, int]) -> int:
        """Return how many offsets are still to be evaluated.

        Args:
            ends: By partition, the offset after the topic's last record.
        """
        return sum(max(0, end - self._next(str(partition))) for partition, end in ends.items())
