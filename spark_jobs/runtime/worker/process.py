"""The state of a worker process between tasks: connections, tables, and observations of each stream."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import NamedTuple

import pyarrow as pa

from grouping.model.catalog import Stream
from grouping.model.errors import OperationalError
from grouping.model.ids import StreamId
from grouping.settings.settings import Settings
from grouping.store.fence import LeaseLost
from grouping.store.notes import PartitionWatermark, Pin, TableVersion
from grouping.store.ownership import EvaluatorFences
from grouping.store.snapshot_notes import SnapshotNote
from grouping.store.table_store import BatchCommitted, TableStore
from grouping.store.task_counts import TaskCount
from spark_jobs.engine.constants.constant_cache import ConstantTables, Snapshot
from spark_jobs.engine.match.key_source import KeySource
from spark_jobs.engine.operators.log_state import LogState
from spark_jobs.engine.operators.lookup_join.table_view import TableView
from spark_jobs.engine.operators.timed_state import BEGINNING
from spark_jobs.engine.rows.cpu_budget import CpuExceeded
from spark_jobs.engine.rows.faults import FAULTS
from spark_jobs.runtime.kafka.pin_log import MicroBatch
from spark_jobs.runtime.kafka.table_log import TableAway
from spark_jobs.runtime.states.clock_marks import ClockMarks
from spark_jobs.runtime.states.log_states import LogStates, StateClock
from spark_jobs.runtime.states.state_notes import StateNotes
from spark_jobs.runtime.worker.garbage import GarbagePolicy
from spark_jobs.runtime.worker.joined_tables import JoinedTables
from spark_jobs.runtime.worker.range_clock import RangeBegin, RangeTime, time_of
from spark_jobs.runtime.worker.watch import StreamWatch

__all__ = ["WAIT_SECONDS", "BatchTables", "WorkerProcess"]

log = logging.getLogger(__name__)

WAIT_SECONDS = 0.2
_IDLE_SECONDS = 600.0
"""A stream's tables are forgotten after this time without a task, since the stream may be dropped.

Loading the tables again is quick.
"""


class BatchTables(NamedTuple):
    """The tables under which a micro-batch is evaluated."""

    version: TableVersion
    constants: Snapshot
    views: dict[str, TableView]
    """By table id, the tables that queries join, as they were when the batch was first evaluated."""
    stream: Stream
    """The stream, as it was declared when the batch was first evaluated."""


class WorkerProcess:
    """The state of a worker, empty when the worker is forked. No lock is needed: a worker runs one task at a time."""

    def __init__(
        self,
        open_store: Callable[[Settings, EvaluatorFences | None], TableStore] = TableStore,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._open_store = open_store
        self._sleep = sleep
        self._stores: dict[str, TableStore] = {}
        """The worker's connections to Redis, by URL."""
        self._fences: EvaluatorFences | None = None
        """The fences of the evaluator to which this worker belongs."""
        self._tables: dict[str, ConstantTables] = {}
        """The constant tables by stream id."""
        self._watches: dict[str, StreamWatch] = {}
        """By stream id: the measurements and counts of the stream's tasks."""
        self._altered: dict[str, Stream] = {}
        """By stream id: the stream with its latest declaration, if it was altered after the start of its query."""
        self._used_at: dict[str, float] = {}
        """By stream id: the time at which the stream's tables were last used, in monotonic seconds."""
        self._joined_tables: JoinedTables | None = None
        """The tables that any stream joins."""
        self._log_states: LogStates | None = None
        """The states of operators of all streams; None until a stream has a computation with a state."""
        self._state_notes = StateNotes(time.time)
        self._time: RangeTime | None = None
        """The event time of the source partition of the last task; None for a stream without event-time queries."""
        self._garbage = GarbagePolicy()
        self._in_lane = False
        """Whether the present task is a task of the lane."""
        self._pins: dict[StreamId, Pin] = {}
        """By stream: the pins that a task of the lane has asked for in a single request."""
        self._counts: list[TaskCount] = []
        """The counts that are written when the lane's task ends."""

    def begin(self, stream: Stream, settings: Settings, fences: EvaluatorFences | None = None) -> StreamWatch:
        """Begin a task: forget streams that had no task for a long time, and return the observations of this stream."""
        self._fences, self._time = fences, None
        now = time.monotonic()
        self._used_at[stream.stream_id] = now
        for stream_id in [name for name, at in self._used_at.items() if now - at > _IDLE_SECONDS]:
            for kept in (self._used_at, self._tables, self._watches, self._altered):
                kept.pop(stream_id, None)
            if self._log_states is not None:
                self._log_states.forget(stream_id)
            self._state_notes.forget(StreamId(stream_id))
        if self._joined_tables is not None:
            self._joined_tables.forget_idle(_IDLE_SECONDS)
        watch = self._watches.get(stream.stream_id)
        if watch is None:
            watch = self._watches[stream.stream_id] = StreamWatch(stream, settings, fences)
        return watch

    def end(self) -> None:
        """End a task."""
        self._garbage.task_done()

    def tables(self, stream: Stream, batch: MicroBatch, settings: Settings) -> BatchTables:
        """Return the tables, and the declaration of the stream, that a micro-batch sees; waits until Redis has them.

        Raises:
            TableAway: A table that the stream joins cannot be read. A task that waited for the table would take a core
                from streams that do not join it. So the task fails, and the stream's query is started again.
            BatchCommitted: Another attempt of the task was carried out and committed while this task was suspended.
            LeaseLost: Another evaluator has taken over.
        """
        waits, stream_id = 0, stream.stream_id
        while True:
            try:
                store = self.store(settings)
                pin = self._pins.get(stream_id) or store.pin(stream_id, batch.number)
                version, paused, revision = pin
                snapshot = self._tables.setdefault(stream_id, ConstantTables(stream_id)).at(version, store)
                if paused:
                    snapshot = snapshot.without(paused)
                views = self._with_views(stream_id, batch, snapshot, store, settings)
                return BatchTables(version, *views, self._declared(stream, revision, store))
            except (BatchCommitted, LeaseLost, TableAway):
                raise
            except OperationalError as error:
                if waits % 50 == 0:
                    log.warning("no tables yet", extra={"stream": stream_id, "reason": error.message})
                self._stores.clear()
                self._pins.clear()
                waits += 1
                self._sleep(WAIT_SECONDS)

    def due_snapshots(self, stream_id: StreamId, settings: Settings) -> dict[str, SnapshotNote]:
        """Return by destination the snapshots (WITH SNAPSHOT) that are still to be written; waits for Redis."""
        while True:
            try:
                return self.store(settings).snapshots.due(stream_id)
            except OperationalError as error:
                log.warning("due snapshots not read", extra={"stream": stream_id, "reason": error.message})
                self._stores.clear()
                self._sleep(WAIT_SECONDS)

    def clock(self, tables: BatchTables, begin: RangeBegin, settings: Settings) -> StateClock | None:
        """Return the marks of the clock where a task begins; None for a stream without event-time computations.

        Raises:
            OperationalError: The file system with the marks does not answer.
        """
        if all(each.timed is None for each in tables.constants.computations):
            return None
        if begin.clock is not None:
            return begin.clock
        position = begin.first + tables.stream.base
        marks = ClockMarks(settings).of(tables.stream.source_id, begin.partition)
        return StateClock(None, next((mark.watermark for mark in marks if mark.position == position), None))

    def note_time(self, snapshot: Snapshot, states: Mapping[str, LogState], watch: StreamWatch) -> None:
        """Note the event time of the task's source partition, for `take_time` and for the driver."""
        self._time = time_of(snapshot.computations, states)
        if self._time is not None:
            watch.note_clock(time.monotonic())

    def watermark(self, idle_ms: int) -> PartitionWatermark | None:
        """Return the watermark that `note_time` has noted; None if no watermark is known.

        Args:
            idle_ms: The time without events after which the clock moves the watermark on.
        """
        if self._time is None or self._time.watermark == BEGINNING:
            return None
        return PartitionWatermark(self._time.watermark, time.time_ns() // 1_000_000 + idle_ms)

    def take_time(self) -> RangeTime | None:
        """Return the note that `note_time` made in the last task, and clear the note; None without one."""
        taken, self._time = self._time, None
        return taken

    def log_states(self, settings: Settings) -> LogStates:
        """Return the states of operators, for a stream with computations that have states."""
        if self._log_states is None:
            self._log_states = LogStates(settings)
        return self._log_states

    def tell_states(
        self, stream: Stream, snapshot: Snapshot, partition: int, states: Mapping[str, LogState], settings: Settings
    ) -> None:
        """Report the states of operators after a task to the gateway, unless the last report is recent."""
        report = self._state_notes.report(stream, snapshot.computations, partition, states)
        if report is None:
            return
        try:
            self.store(settings).tell_states(stream.stream_id, partition, *report)
        except OperationalError as error:
            self._stores.clear()
            log.warning("states not reported", extra={"stream": stream.stream_id, "reason": error.message})

    def _declared(self, stream: Stream, revision: int, store: TableStore) -> Stream:
        """Return a task's stream as a revision declares it. A query that began before ALTER STREAM has the old one."""
        if revision == stream.revision:
            return stream
        known = self._altered.get(stream.stream_id, stream)
        if known.revision < revision and (found := store.stream(stream.stream_id)) is not None:
            known = self._altered[stream.stream_id] = found
        return stream.declared_as(known, revision)

    def _with_views(
        self, stream_id: StreamId, batch: MicroBatch, snapshot: Snapshot, store: TableStore, settings: Settings
    ) -> tuple[Snapshot, dict[str, TableView]]:
        """Return the snapshot and its joined tables, without groups over dropped tables whose topics are gone."""
        try:
            return snapshot, self._views(stream_id, batch, snapshot, store, settings)
        except TableAway:
            lost = store.lost_tables(
                sorted({table_id for each in snapshot.computations for table_id in each.table_ids})
            )
            if not lost:
                raise
            plans = [table.shape.plan for table in snapshot.tables]
            kept = snapshot.without({plan.group_id for plan in plans if not lost.isdisjoint(plan.table_ids)})
            return kept, self._views(stream_id, batch, kept, store, settings)

    def _views(
        self, stream_id: StreamId, batch: MicroBatch, snapshot: Snapshot, store: TableStore, settings: Settings
    ) -> dict[str, TableView]:
        if not snapshot.computations:
            return {}
        return self._joined(settings).views(stream_id, batch, snapshot.computations, store)

    def table_letters(self, settings: Settings) -> Iterator[pa.RecordBatch]:
        """Yield the dead letters of joined tables, if no worker has written them yet; none if Redis does not answer."""
        try:
            yield from self._joined(settings).letters(self.store(settings))
        except OperationalError as error:
            self._stores.clear()
            log.warning("dead letters of tables wait", extra={"reason": error.message})

    def observe(
        self, watch: StreamWatch, version: TableVersion, snapshot: Snapshot, settings: Settings, *, review: bool
    ) -> None:
        """Write statistics of a task's events; if `review` is true, also review the choice of indexes.

        The task must not use the snapshot afterwards.
        """
        events, stream_id = watch.take_last(), watch.stream_id
        if events is None:
            return
        try:
            if review:
                watch.choice.revise(self._tables[stream_id], snapshot.over(""), KeySource(events), watch.sampler.loads)
        except CpuExceeded:
            log.warning("index not chosen again", extra={"stream": stream_id, "reason": "its keys take too long"})
        except FAULTS:
            log.exception("index not chosen again", extra={"stream": stream_id})
        statistics = watch.sampler.take(events, version, snapshot)
        if statistics is None:
            return
        try:
            self.store(settings).tell_statistics(stream_id, *statistics)
        except OperationalError as error:
            self._stores.clear()
            log.warning("statistics not reported", extra={"stream": stream_id, "reason": error.message})

    def count(self, counts: TaskCount, settings: Settings) -> None:
        """Count the matches and output of a task in a source partition. A task of the lane writes counts at its end."""
        self._counts.append(counts)
        if not self._in_lane:
            self._write_counts(settings)

    def _write_counts(self, settings: Settings) -> None:
        """Write the counts of tasks to Redis. If Redis does not answer, the counts are lost."""
        counts, self._counts = self._counts, []
        try:
            self.store(settings).counts.add(counts)
        except OperationalError as error:
            self._stores.clear()
            log.warning("matches not counted", extra={"tasks": len(counts), "reason": error.message})

    @contextmanager
    def lane_task(
        self, stream_ids: Iterable[StreamId], batch: int, settings: Settings, fences: EvaluatorFences
    ) -> Iterator[None]:
        """Carry out a task of the lane within the block.

        A single request asks Redis for the pins of all streams, and a single request writes their counts at the end.

        Args:
            stream_ids: The streams.
            batch: The number of their micro-batch.
            settings: The evaluator's settings.
            fences: The evaluator's fences.
        """
        self._fences, self._in_lane = fences, True
        try:
            with suppress(OperationalError):  # if this fails, each stream asks for its own pin
                self._pins = self.store(settings).pin_together(stream_ids, batch)
            yield
            self._write_counts(settings)
        finally:
            self._in_lane, self._pins, self._counts = False, {}, []

    def _joined(self, settings: Settings) -> JoinedTables:
        if self._joined_tables is None:
            self._joined_tables = JoinedTables(settings)
        return self._joined_tables

    def store(self, settings: Settings) -> TableStore:
        """Return the worker's access to the tables in Redis."""
        url = settings.redis.url.get_secret_value()
        if url not in self._stores:
            self._stores[url] = self._open_store(settings, self._fences)
        return self._stores[url]
