"""The evaluation of a task: the task decodes, matches and splits its records under one version of the tables."""

from __future__ import annotations

import pickle
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import msgspec
import pyarrow as pa
from pyspark import TaskContext

from grouping.model.catalog import Stream
from grouping.model.errors import InternalError
from grouping.settings.settings import Settings
from grouping.store.notes import TableVersion
from grouping.store.ownership import EvaluatorFences
from grouping.store.task_counts import TaskCount
from grouping.store.work_units import FULL, SLOW
from spark_jobs.engine.constants.constant_cache import Snapshot
from spark_jobs.engine.isolation.hang_guard import HangGuard
from spark_jobs.engine.isolation.not_evaluated import NotEvaluatedLetters
from spark_jobs.engine.isolation.step import AnyStep
from spark_jobs.engine.isolation.unit_guard import UnitGuard
from spark_jobs.engine.isolation.watchdog import BudgetWatchdog
from spark_jobs.engine.operators.framed_states import missed_events
from spark_jobs.engine.operators.log_state import LogState
from spark_jobs.engine.pipeline import CLOCK, ROWS, TABLE_ROWS, end_records, evaluate
from spark_jobs.engine.rows.cpu_budget import CpuBudget
from spark_jobs.engine.rows.edge_rows import EdgeRows
from spark_jobs.engine.rows.events import Events
from spark_jobs.engine.rows.output import dead_letter_code
from spark_jobs.engine.stages.operator_stage import ClockMark
from spark_jobs.engine.stages.task import GroupRows, Task
from spark_jobs.runtime.kafka.pin_log import MicroBatch
from spark_jobs.runtime.states.log_states import StateClock
from spark_jobs.runtime.worker import digest_task
from spark_jobs.runtime.worker.event_traces import EventTraces
from spark_jobs.runtime.worker.process import WAIT_SECONDS, BatchTables, WorkerProcess
from spark_jobs.runtime.worker.range_clock import RangeBegin
from spark_jobs.runtime.worker.table_snapshots import TableSnapshots
from spark_jobs.runtime.worker.task_observer import TaskObserver
from spark_jobs.runtime.worker.watch import StreamWatch

__all__ = ["BATCH_ID", "PROCESS", "QUERY_ID", "Evaluation", "TaskRun", "complete_snapshots", "table_task"]

QUERY_ID = "sql.streaming.queryId"
BATCH_ID = "streaming.sql.batchId"
"""Spark's local properties with the id of the streaming query, as in its checkpoint, and the micro-batch's number."""

PROCESS = WorkerProcess()
"""The state of this worker process; global, because Spark unpickles a new `Evaluation` for each task."""
WATCHDOG = BudgetWatchdog()
"""The watchdog of this worker."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The function that `mapInArrow` runs. Spark pickles it for each task, so it holds no tables."""

    stream: bytes
    """The `Stream`, as JSON."""
    settings: bytes
    """The `Settings`, pickled, since JSON would mask its secrets."""
    cautious: bool = False
    """Whether tasks ask Redis for quarantined work units from the start, not only after a quarantine of their own."""
    ends: tuple[tuple[int, int], ...] = ()
    """Source partitions, and for each a position: a query with another checkpoint may have evaluated earlier events."""
    fences: EvaluatorFences | None = None
    """The fences of the evaluator: its tasks stop writing when another evaluator has taken the stream."""
    begun: MicroBatch | None = None
    """A micro-batch that a query with another checkpoint began, and this query repeats with the pins stored for it."""

    @classmethod
    def of(
        cls,
        stream: Stream,
        settings: Settings,
        *,
        cautious: bool = False,
        ends: Mapping[str, int] | None = None,
        fences: EvaluatorFences | None = None,
        begun: MicroBatch | None = None,
    ) -> Evaluation:
        """Return the evaluation of a stream."""
        until = tuple((int(partition), end) for partition, end in (ends or {}).items())
        return cls(msgspec.json.encode(stream), pickle.dumps(settings), cautious, until, fences, begun)

    def __call__(self, batches: Iterable[pa.RecordBatch], begin: RangeBegin | None = None) -> Iterator[pa.RecordBatch]:
        """Evaluate a task's records; yield rows of `spark_jobs.engine.rows.output.OUTPUT`.

        Args:
            batches: The records.
            begin: Where the records begin, and the marks of the clock there; None to begin at the first record.
        """
        stream, settings = _unpacked(self.stream, self.settings)
        micro_batch = self._micro_batch(stream)
        watch = PROCESS.begin(stream, settings, self.fences)
        digest_task.MEMORY.forget_idle(time.monotonic())
        task: TaskRun | None = None
        states: Mapping[str, LogState] = {}
        for batch in _with_records(batches, begin):
            if task is None:
                tables = PROCESS.tables(stream, micro_batch, settings)
                stream = tables.stream
                watch.declare(stream)
                complete_snapshots(stream, watch, self.settings, self.fences)
                traces = EventTraces.of(settings, stream, micro_batch.number, tables.version.version)
                begin = begin or RangeBegin(batch["partition"][0].as_py(), batch["offset"][0].as_py())
                clock = PROCESS.clock(tables, begin, settings)
                states = _states(tables, begin, clock, watch, settings)
                task = TaskRun(stream, settings, tables, watch, self.cautious, dict(self.ends), traces, states, begin)
                yield from task.letters()
                if clock is not None and clock.mark is not None:
                    yield from task.marked(clock.mark)
            if batch.num_rows:
                yield from task.records(batch)
        if task is not None:
            yield from task.groups()
            if states:
                partition, end = task.end_of_records
                PROCESS.log_states(settings).ended(stream, partition, end, states)
                _stop_full(states, tables, watch, settings)
                PROCESS.tell_states(stream, tables.constants, partition, states, settings)
                PROCESS.note_time(tables.constants, states, watch)
            task.end(micro_batch, states)
        PROCESS.end()

    def _micro_batch(self, stream: Stream) -> MicroBatch:
        context = TaskContext.get()
        query_id = context.getLocalProperty(QUERY_ID) if context is not None else None
        number = context.getLocalProperty(BATCH_ID) if context is not None else None
        if query_id is None or number is None:
            raise InternalError("evaluated outside of a micro-batch")
        if self.begun is not None and self.begun.number == int(number):
            return self.begun
        return MicroBatch(stream.source_id, query_id, int(number))


class TaskRun:
    """The evaluation of one task's records, under one version of the tables."""

    def __init__(
        self,
        stream: Stream,
        settings: Settings,
        tables: BatchTables,
        watch: StreamWatch,
        cautious: bool,
        singly_until: Mapping[int, int],
        traces: EventTraces | None,
        states: Mapping[str, LogState] | None,
        begin: RangeBegin | None = None,
    ) -> None:
        self._settings = settings
        self._begin = begin
        self._is_marked = False
        self._last: pa.RecordBatch | None = None
        self._version, self._snapshot, self._views, _ = tables
        self._watch = watch
        self._observer = TaskObserver(watch, traces)
        self._letters: Counter[str] = Counter()
        watch.schemas.begin_task()
        notes = watch.notes
        self._hang_guard = guard = HangGuard(settings.evaluator.hang_seconds, self._watch_budget, WATCHDOG.rest)
        ask = cautious or notes.quarantined
        selection = notes.shared_selection(_task_number(), guard, WAIT_SECONDS) if ask else notes.selection(guard)
        self._budget = CpuBudget(
            settings.evaluator.group_seconds, settings.limits.residual_micros / 1e6, part_of=notes.part_of_budget
        )
        self.guard = UnitGuard(selection, NotEvaluatedLetters(stream, settings), notes.failed, self._budget)
        self._task = Task.of(
            stream,
            settings,
            self._version,
            self.guard,
            self._snapshot,
            self._views,
            singly_until=singly_until,
            loads=watch.sampler.loads,
            observer=self._observer,
            states=states,
        )

    def records(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the output of a batch of records."""
        self._last = batch
        batch = self._watch.headers.completed(batch, self._snapshot)
        for stream, part in self._watch.schemas.parts(self._task.stream, batch):
            task = replace(self._task, stream=stream)
            self._observer.begin()
            yield from self._counted(self._hang_guard.pieces(evaluate(task, part)))
            self._observer.end()

    def snapshot(self, rows: EdgeRows) -> Iterator[pa.RecordBatch]:
        """Yield the results for the rows of a table; the task's constant tables must be those of a single query."""
        [joined] = self._task.joins
        with self.guard.batch(rows.count):
            given = GroupRows(rows, joined.snapshot)
            yield from self._counted(self._hang_guard.pieces(evaluate(self._task, given, ROWS)))
        self._report_letters()

    def matches(self, rows: Events) -> Iterator[pa.RecordBatch]:
        """Yield the matches of a table's rows, and the partial aggregates of the rows, as records of `cq.pending`."""
        yield from self._counted(self._hang_guard.pieces(evaluate(self._task, rows, TABLE_ROWS)))
        yield from self.groups()
        self._report_letters()

    def of_rows(self, step: AnyStep, rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the records of a step over the matches of a table's rows; `rows`, their number, sets the CPU budget."""
        with self.guard.batch(rows):
            yield from self._hang_guard.pieces(self.guard.run(step))

    def _report_letters(self) -> None:
        if self._letters:
            self._watch.notes.report_task(self._letters, self.guard.not_evaluated.reasons)
            self._letters.clear()

    def marked(self, watermark: int) -> Iterator[pa.RecordBatch]:
        """Yield the results that a mark of the clock makes due. The call must precede the first record."""
        self._observer.begin()
        assert self._begin is not None, "only a range of a source partition has marks"
        self._is_marked = True
        mark = ClockMark(self._begin.partition, watermark)
        yield from self._counted(self._hang_guard.pieces(evaluate(self._task, mark, CLOCK)))
        self._observer.end()

    @property
    def end_of_records(self) -> tuple[int, int]:
        """The source partition, and the position after the last record."""
        base = self._task.stream.base
        if self._last is None:
            assert self._begin is not None, "without records, a task has the begin of its range"
            return self._begin.partition, self._begin.first + base
        return self._last["partition"][-1].as_py(), self._last["offset"][-1].as_py() + base + 1

    def _watch_budget(self) -> None:
        """End the worker if a step exceeds its budget and does not return."""
        quarantine = partial(self._watch.notes.quarantine, SLOW)
        WATCHDOG.watch(self._budget, partial(self.guard.quarantine_stopped, quarantine=quarantine))

    def groups(self) -> Iterator[pa.RecordBatch]:
        """Yield the task's partial aggregates."""
        yield from self._counted(self._hang_guard.pieces(end_records(self._task)))

    def letters(self) -> Iterator[pa.RecordBatch]:
        """Yield dead letters about records of the joined tables, unless a worker has written these letters before."""
        if self._views:
            yield from self._counted(PROCESS.table_letters(self._settings))

    def _counted(self, output: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield output, and count the dead letters in it."""
        for rows in output:
            if (code := dead_letter_code(rows)) is not None:
                self._letters[code] += rows.num_rows
            yield rows

    def end(self, batch: MicroBatch, states: Mapping[str, LogState]) -> None:
        """Write the task's statistics and counts to Redis; `states` are the states of operators at the task's end."""
        # A review of indexes evaluates keys of all units. While a unit is suspected, it could end the worker there.
        review = not self.guard.selection.concerns(self.guard.failed)
        with self._hang_guard.armed(), self._budget.batch(0):
            PROCESS.observe(self._watch, self._version, self._snapshot, self._settings, review=review)
        counts, stream = self._observer.counts, self._task.stream
        late, future = missed_events(states.values())
        output = counts.output()._replace(late=late, future=future)
        moving = self._is_marked and self._last is None
        watermark = PROCESS.watermark(0 if moving else stream.event_time.idle_or(self._settings.evaluator.idle_seconds))
        if any(output) or watermark is not None:
            name, partition = f"{batch.query_id}/{batch.number}", self.end_of_records[0]
            count = TaskCount(stream.stream_id, counts.tally(), partition, name, output, watermark)
            PROCESS.count(count, self._settings)
        self._report_letters()
        if misfits := self._observer.misfits:
            self._watch.notes.report_misfits(misfits)
        self._watch.first.report()


def complete_snapshots(stream: Stream, watch: StreamWatch, settings: bytes, fences: EvaluatorFences | None) -> None:
    """Write the snapshots that queries over a table's changes must get before any change.

    Args:
        stream: The stream; only streams of tables' changes have such queries.
        watch: The observations of the stream.
        settings: The evaluator's settings, pickled.
        fences: The fences of the evaluator.

    Raises:
        OperationalError: Kafka or Redis failed.
    """
    if not stream.changes_of:
        return
    unpacked: Settings = pickle.loads(settings)
    if not (notes := PROCESS.due_snapshots(stream.stream_id, unpacked)):
        return
    fence = None if fences is None else fences.stream(stream.stream_id)
    snapshots = TableSnapshots(
        stream, unpacked, PROCESS.store(unpacked), lambda tables: table_task(stream, tables, unpacked, watch).snapshot
    )
    snapshots.complete(notes, settings, fence)


def table_task(stream: Stream, constants: Snapshot, settings: Settings, watch: StreamWatch) -> TaskRun:
    """Return a task that evaluates a table's rows with the given constant tables, which need not be the stream's."""
    tables = BatchTables(TableVersion(0, 0), constants, {}, stream)
    return TaskRun(stream, settings, tables, watch, True, {}, None, None)


@lru_cache(maxsize=1024)
def _unpacked(stream: bytes, settings: bytes) -> tuple[Stream, Settings]:
    """Decode a task's stream and settings; cached, since decoding takes 5 ms, which is long for a small batch."""
    return msgspec.json.decode(stream, type=Stream), pickle.loads(settings)


def _with_records(batches: Iterable[pa.RecordBatch], begin: RangeBegin | None) -> Iterator[pa.RecordBatch]:
    """Yield batches with records. If `begin` is given, an empty batch precedes them: a mark needs no records."""
    if begin is not None:
        yield pa.record_batch({})
    yield from (batch for batch in batches if batch.num_rows)


def _states(
    tables: BatchTables, begin: RangeBegin, clock: StateClock | None, watch: StreamWatch, settings: Settings
) -> dict[str, LogState]:
    """Return the states of operators at the beginning of a task, by computation id."""
    stream, snapshot = tables.stream, tables.constants
    if not any(each.has_state for each in snapshot.computations):
        return {}
    partition, first = begin.partition, begin.first + stream.base
    left_out, parts = watch.notes.left_out(), snapshot.by_computation() if watch.notes.quarantined else {}
    stopped = [name for name, part in parts.items() if name and left_out.issuperset(part.groups)]
    states = PROCESS.log_states(settings).begun(
        stream, snapshot, tables.views, partition, first, stopped, clock, partial(watch.schemas.parts, again=True)
    )
    _stop_full(states, tables, watch, settings)
    return states


def _stop_full(states: Mapping[str, LogState], tables: BatchTables, watch: StreamWatch, settings: Settings) -> None:
    """Quarantine all groups over computations whose state is too large."""
    for name in PROCESS.log_states(settings).full(states):
        watch.notes.quarantine(FULL, [*tables.constants.by_computation()[name].groups])


def _task_number() -> int:
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()
