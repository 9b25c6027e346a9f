"""How far each stream is: told to the store after each micro-batch, and compared with the broker's offsets."""

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
    """The last committed micro-batch of a query, as Spark tells it."""

    batch: int
    offsets: dict[str, dict[str, int]]
    """Where it ends, by topic and partition."""
    events: int | None
    """Its events, None where Spark tells only the offsets."""
    phases: dict[str, float]
    """Its seconds, by Spark's names of the phases."""


def last_committed(query: StreamingQuery) -> Committed | None:
    """Return the last committed micro-batch of a query, None before the first.

    Spark writes a progress after each micro-batch, and every 10 seconds of a query without new events. An idle
    progress has the number of the *next* micro-batch, and the offsets of the last committed one.
    """
    last: Any = query.lastProgress
    if last is None or not last["sources"]:
        return None
    carried_out = "addBatch" in last["durationMs"]
    # pyspark reads Spark's JSON, and gives the offsets back as the text of a Python dict.
    offsets = ast.literal_eval(last["sources"][0]["endOffset"]) or {}
    if not carried_out:
        return Committed(last["batchId"] - 1, offsets, None, {})
    phases = {phase: millis / 1000 for phase, millis in last["durationMs"].items()}
    return Committed(last["batchId"], offsets, last["numInputRows"], phases)


class Progress:
    """The progress of one stream."""

    def __init__(self, stream: Stream, position: StreamPosition, store: TableStore, broker: Broker) -> None:
        """Begin where the checkpoint ends.

        Args:
            stream: The stream.
            position: The position of the checkpoint; batch -1 before the first commit.
            store: Where it is told.
            broker: Where the topic is.
        """
        self.stream = stream
        """As the gateway knows it now: partitions may be added to its topic."""
        self._store = store
        self._broker = broker
        self._position = position
        """In offsets of the topic, as Spark has them."""
        self._told: StreamPosition | None = None
        self._deleted: dict[str, int] = {}
        self.events_deleted = 0
        """Offsets that were gone before they were evaluated, since this process began."""
        self.batch_events = 0
        """Events of the last committed micro-batch."""
        self.phases: dict[str, float] = {}
        """Its seconds, by Spark's names of the phases."""

    @property
    def batch(self) -> int:
        """The last committed micro-batch, -1 before the first."""
        return self._position.batch

    @property
    def reached(self) -> int:
        """Return the sum of the partitions' positions up to which all is evaluated."""
        return sum(self.stream.evaluated(self.stream.positions(self._position.offsets)).values())

    def _next(self, partition: str) -> int:
        """Return the first offset of a partition that is not evaluated."""
        stream = self.stream
        return stream.evaluated(stream.positions(self._position.offsets)).get(partition, stream.base) - stream.base

    def look(self, query: StreamingQuery) -> None:
        """Take over the last committed micro-batch from Spark's progress, and tell the store of it."""
        committed = last_committed(query)
        if committed is not None:
            self.take(committed)
        self.tell()

    def take(self, committed: Committed) -> None:
        """Take over a micro-batch that is committed; `tell` tells the store of it."""
        if committed.batch < self._position.batch:
            return
        before, fresh = self.reached, committed.batch > self._position.batch
        if offsets := committed.offsets.get(self.stream.topic):
            self._position = StreamPosition(committed.batch, {**self._position.offsets, **offsets})
        if fresh and committed.events is not None:
            # Spark tells the events of all streams of the micro-batch.
            self.batch_events = committed.events if len(committed.offsets) == 1 else max(self.reached - before, 0)
            self.phases = committed.phases

    def tell(self) -> None:
        """Tell the store the position, unless already known there."""
        if self._position.batch < 0:
            return
        # The micro-batches of a lane have events of some of its streams.
        if self._told is None or self._position.offsets != self._told.offsets:
            positions = self.stream.positions(self._position.offsets)
            self._store.committed(self.stream.stream_id, self._position.batch, positions)
            self._told = self._position
            told = {"stream": self.stream.name, "batch": self._position.batch, "events": self.batch_events}
            log.debug("micro-batch evaluated", extra=told)

    def forget(self) -> None:
        """Report anew next time: the store has lost the last report."""
        self._told = None

    def report_deleted(self, earliest: Mapping[int, int]) -> None:
        """Write a dead letter for each range that the broker deleted ahead of us (docs/results.md); at least once.

        Args:
            earliest: By partition the first offset that the broker still has.
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
        """Return how many offsets are not evaluated yet; `ends` are the topic's, by partition."""
        return sum(max(0, end - self._next(str(partition))) for partition, end in ends.items())
