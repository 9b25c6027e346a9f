"""The query of the lane: micro-batches with events of many streams, one after the other. Each batch is a Spark job.

A thread of the driver asks Kafka for the ends of all topics in one request. If there are new events, the thread writes
the ends of a micro-batch to the offset log, runs a job with at most as many tasks as there are cores, and writes the
commit. The log has the same files as the logs of Spark's own queries. So when a stream leaves the lane, a query of the
stream's own can go on from a copy of the stream's entries.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from pyspark.sql import SparkSession

from grouping.model.errors import OperationalError
from grouping.process.pacing import look_seconds
from grouping.settings.settings import Settings
from spark_jobs.runtime.kafka.admin import open_admin
from spark_jobs.runtime.kafka.range_reader import SourceRange
from spark_jobs.runtime.kafka.sink import run_tasks
from spark_jobs.runtime.kafka.topic_offsets import TopicOffsets, TopicPartitions
from spark_jobs.runtime.states.log_states import StateClock
from spark_jobs.runtime.streams.checkpoint import Checkpoint
from spark_jobs.runtime.streams.idle_clock import IdleClock, TopicPlace
from spark_jobs.runtime.streams.progress import Committed
from spark_jobs.runtime.worker.lane_task import RANGES, TIMES, LaneTask
from spark_jobs.runtime.worker.worker import BATCH_ID, QUERY_ID

__all__ = ["LaneQuery", "TopicsAway", "bounded_ends", "spread"]

_FIRST_WAIT_SECONDS = 0.01
"""How long the query waits after the first answer without new events before it asks Kafka again."""
_LONGEST_WAIT_SECONDS = 0.15
"""The longest wait before Kafka is asked again."""
_WAIT_GROWTH = 1.3
"""The factor by which each further answer without new events lengthens the wait."""
_POOL = "lane"
"""The scheduler pool of the lane.

Spark gives the next free core to the pool with the fewest running tasks. So quiet streams wait at most for a single
task of a busy stream, not for all tasks of its micro-batch."""
_MOST_EVENTS = 20_000
"""The largest number of events of a micro-batch of several streams: all streams wait until the micro-batch ends."""
_AWAY_LOOKS = 3
"""If this many look-ups in a row do not find a topic, the query fails. During an election, one may not find it."""
_STOP_SECONDS = 1.0
"""How long `LaneQuery.stop` waits for the micro-batch under way."""

_LaneEnds = dict[str, dict[int, int]]


class LaneQuery:
    """Carries out micro-batches in a separate thread, until the query is stopped or fails."""

    def __init__(
        self,
        spark: SparkSession,
        settings: Settings,
        checkpoint: Checkpoint,
        task: LaneTask,
        tasks: int,
        clock: IdleClock,
    ) -> None:
        """Prepare to go on where the log ends.

        Args:
            spark: The session.
            settings: The evaluator's settings.
            checkpoint: The checkpoint. Its log must already have entries for all topics.
            task: The function of the tasks, with the streams by topic.
            tasks: The largest number of tasks of a micro-batch.
            clock: The clock of idle partitions.
        """
        self._spark = spark
        self._clock = clock
        self._settings = settings
        self._checkpoint = checkpoint
        self._task = task
        self._tasks = tasks
        self._topics = sorted(task.topics)
        self._offsets = TopicOffsets(open_admin(settings))
        self._places: TopicPartitions = []
        self._places_at = float("-inf")
        self._away_looks = 0
        self._batch, reached, self._under_way = checkpoint.bounds()
        self._reached = {topic: _numbered(reached.get(topic, {})) for topic in self._topics}
        self._stopping = threading.Event()
        self._is_cancelled = False
        self._query_id = checkpoint.query_id()
        self._group = f"lane {self._query_id} {id(self)}"
        self._thread = threading.Thread(target=self._run, name="lane", daemon=True)
        self.failure: str | None = None
        """Why the query has failed; None while it runs, or if it was stopped."""
        self.committed: Committed | None = None
        """The last micro-batch that this query carried out."""

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    @property
    def is_active(self) -> bool:
        """Whether the query's thread runs."""
        return self._thread.is_alive()

    def stop(self, *, cancel: bool) -> bool:
        """Let the query end after the micro-batch under way, and return whether the query has ended by now.

        Args:
            cancel: Whether to cancel the job of a micro-batch that does not end within a second. Spark kills the
                workers of a cancelled job, so new workers must read tables and states again.
        """
        self._stopping.set()
        self._thread.join(_STOP_SECONDS)
        while cancel and self._thread.is_alive():  # a job that begins only now needs a cancel of its own
            self._is_cancelled = True
            self._spark.sparkContext.cancelJobGroup(self._group)
            self._thread.join(_STOP_SECONDS)
        return not self._thread.is_alive()

    def _run(self) -> None:
        context = self._spark.sparkContext
        try:
            context.setJobGroup(self._group, "a micro-batch of the lane", interruptOnCancel=True)
            context.setLocalProperty("spark.scheduler.pool", _POOL)
            context.setLocalProperty(QUERY_ID, self._query_id)
            self._clock.load(self._reached, self._is_committed)
            if self._under_way is not None:
                ends = {topic: _numbered(self._under_way.get(topic, {})) for topic in self._topics}
                self._carry_out(self._batch + 1, ends, self._clock.open_marks(self._reached))
            wait = _FIRST_WAIT_SECONDS
            while not self._stopping.is_set():
                if self._advance():
                    wait = _FIRST_WAIT_SECONDS
                else:
                    self._stopping.wait(wait)
                    wait = min(wait * _WAIT_GROWTH, _LONGEST_WAIT_SECONDS)
        except Exception as exc:  # the exceptions of pyspark and py4j have no common base
            if not self._is_cancelled:
                self.failure = str(exc) or type(exc).__name__
        finally:
            with suppress(Exception):  # py4j raises one if the JVM has ended
                self._task.forget()

    def _advance(self) -> bool:
        """Carry out a micro-batch if there are new events, or results that are due by the clock; return whether so."""
        try:
            ends = self._ends()
        except OperationalError:
            return False  # Kafka does not answer; `Streams` logs this when it compares the streams with their topics
        batch = self._batch + 1
        idle = {
            topic: {partition: offset for partition, offset in reached.items() if ends[topic][partition] == offset}
            for topic, reached in self._reached.items()
        }
        due = self._clock.due(idle, f"{self._query_id}/{batch}")
        if not due and all(ends[topic] == self._reached[topic] for topic in self._topics):
            return False
        self._checkpoint.begin(batch, ends)
        self._carry_out(batch, ends, due)
        return True

    def _is_committed(self, name: str) -> bool:
        """Tell whether this query has committed a micro-batch, given the name of the micro-batch."""
        query_id, _, batch = name.rpartition("/")
        return query_id == self._query_id and int(batch) <= self._batch

    def _ends(self) -> _LaneEnds:
        """Return where the next micro-batch ends. No end is before the end of the last micro-batch.

        Raises:
            OperationalError: No broker answers.
            TopicsAway: Several look-ups in a row have not found a topic.
        """
        if (now := time.monotonic()) - self._places_at >= look_seconds(len(self._topics)):
            self._places, self._places_at = self._offsets.places(self._topics), now
            away = set(self._topics).difference(topic for topic, _ in self._places)
            self._away_looks = self._away_looks + 1 if away else 0
            if self._away_looks >= _AWAY_LOOKS:
                raise TopicsAway(away)
        limit = self._settings.evaluator.events_per_batch
        most = limit if len(self._topics) == 1 else min(limit, _MOST_EVENTS)
        return bounded_ends(self._reached, self._offsets.ends(self._places), most)

    def _carry_out(self, batch: int, ends: _LaneEnds, due: Mapping[TopicPlace, StateClock]) -> None:
        """Carry out a micro-batch.

        Args:
            batch: The number of the micro-batch.
            ends: Where the micro-batch ends.
            due: The partitions without new events that need a task: the clock makes results due there, or no task has
                reported their event time yet.
        """
        ranges, clocks, reports = list(self._ranges(ends)), dict(due), list[Any]()
        for each in ranges:
            if (clock := self._clock.at(each.place, each.first)) is not None:
                clocks[each.place] = clock
        for topic, partition in clocks.keys() - {each.place for each in ranges}:
            reached = self._reached[topic][partition]
            ranges.append(SourceRange(topic, partition, reached, reached))
        began = time.monotonic()
        if ranges:
            context: Any = self._spark.sparkContext
            tasks = [[(each, clocks.get(each.place)) for each in task] for task in spread(ranges, self._tasks)]
            context.setLocalProperty(BATCH_ID, str(batch))
            context.setLocalProperty(RANGES, json.dumps(tasks))
            found = run_tasks(self._spark, self._task, len(tasks), TIMES, collect=self._clock.is_used)
            reports = [json.loads(each) for each in found]
        self._checkpoint.commit(batch)
        self._batch, self._reached = batch, ends
        times = [((topic, partition), watermark, due_at) for topic, partition, watermark, due_at in reports]
        self._clock.carried_out((each.place for each in ranges if each.first < each.end), clocks, times)
        offsets = {topic: {str(number): end for number, end in own.items()} for topic, own in ends.items()}
        events = sum(each.end - each.first for each in ranges)
        self.committed = Committed(batch, offsets, events, {"addBatch": time.monotonic() - began})

    def _ranges(self, ends: Mapping[str, Mapping[int, int]]) -> Iterator[SourceRange]:
        for topic, own in ends.items():
            for partition, end in own.items():
                first = self._reached[topic].get(partition, 0)
                if end > first:
                    yield SourceRange(topic, partition, first, end)


class TopicsAway(Exception):
    """Topics are gone, or have no leader."""

    def __init__(self, topics: set[str]) -> None:
        super().__init__(f"topics cannot be read: {', '.join(sorted(topics))}")


def bounded_ends(
    reached: Mapping[str, Mapping[int, int]], ends: Mapping[str, Mapping[int, int]], most: int
) -> _LaneEnds:
    """Return where a micro-batch ends. Partitions have equal shares; those with few events leave the rest to others.

    Args:
        reached: By topic and partition, the offset up to which events are evaluated.
        ends: By topic and partition, the offset after the last record.
        most: The largest number of events; each partition gets at least one event.

    Example:
        >>> bounded_ends({"x": {0: 5, 1: 7}, "y": {0: 0}}, {"x": {0: 5, 1: 9}, "y": {0: 900, 1: 900}}, 30)
        {'x': {0: 5, 1: 9}, 'y': {0: 14, 1: 14}}
        >>> bounded_ends({"x": {0: 5, 1: 7}}, {"x": {0: 4, 1: 9}}, 1)
        {'x': {0: 5, 1: 8}}
    """
    bounded: _LaneEnds = {topic: dict(own) for topic, own in reached.items()}
    news = sorted(
        (end - bounded[topic].get(partition, 0), topic, partition)
        for topic, own in ends.items()
        for partition, end in own.items()
        if end > bounded[topic].get(partition, 0)
    )
    left = most
    for place, (waiting, topic, partition) in enumerate(news):
        taken = min(waiting, max(left // (len(news) - place), 1))
        bounded[topic][partition] = bounded[topic].get(partition, 0) + taken
        left -= taken
    return bounded


def spread(ranges: list[SourceRange], tasks: int) -> list[list[SourceRange]]:
    """Return the ranges of each task, sorted by topic and partition. Tasks get about equally many records.

    Args:
        ranges: All ranges, at least one.
        tasks: The largest number of tasks.

    Example:
        >>> a, b, c = SourceRange("x", 0, 0, 5), SourceRange("x", 1, 0, 1), SourceRange("y", 0, 7, 10)
        >>> [[(each.topic, each.partition) for each in task] for task in spread([a, b, c], 2)]
        [[('x', 0)], [('x', 1), ('y', 0)]]
        >>> len(spread([a], 2))
        1
    """
    own: list[list[SourceRange]] = [[] for _ in range(min(tasks, len(ranges)))]
    records = [0] * len(own)
    for each in sorted(ranges, key=lambda each: each.first - each.end):
        task = records.index(min(records))
        own[task].append(each)
        records[task] += max(each.end - each.first, 1)
    return [sorted(each) for each in own]


def _numbered(offsets: Mapping[str, int]) -> dict[int, int]:
    return {int(partition): offset for partition, offset in offsets.items()}
