"""What a task does: one version of the tables, then batch by batch decode → match → split."""

from __future__ import annotations

import logging
import pickle
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial

import msgspec
import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from grouping.model.catalog import Stream
from grouping.model.errors import InternalError, OperationalError
from grouping.settings import Settings
from grouping.store.match_tally import MatchTally
from grouping.store.notes import TableVersion
from grouping.store.quarantine import QuarantineStore
from grouping.store.redis_store import TableStore
from spark_jobs.batch.events import Events
from spark_jobs.batch.faults import FAULTS
from spark_jobs.batch.matches import Matches
from spark_jobs.batch.output import dead_letter_code
from spark_jobs.decode.decode import decode
from spark_jobs.isolation.caution import NO_CAUTION, Harm
from spark_jobs.isolation.hang_guard import guarded
from spark_jobs.isolation.isolation import Isolation
from spark_jobs.isolation.not_evaluated import NotEvaluatedLetters
from spark_jobs.match.matched_pairs import NO_NUMBER
from spark_jobs.match.residual import evaluate_expression
from spark_jobs.results.pending import pending_records
from spark_jobs.results.split import split
from spark_jobs.tables.constant_cache import ConstantTables, Snapshot
from spark_jobs.tables.index_choice import IndexChoice
from spark_jobs.worker import digest_task
from spark_jobs.worker.garbage import GarbagePolicy
from spark_jobs.worker.statistics import StreamSampler

__all__ = ["Evaluation"]

log = logging.getLogger(__name__)

_BATCH_ID = "streaming.sql.batchId"
"""Spark's own name for the local property that holds the id of the micro-batch."""

_WAIT_SECONDS = 0.2

_stores: dict[str, TableStore] = {}
_settling = GarbagePolicy()
_tables: dict[str, ConstantTables] = {}
"""By stream id. A worker runs one task at a time, so nothing is locked."""
_used_at: dict[str, float] = {}
"""When each stream's tables were last used, monotonic seconds."""
_IDLE_SECONDS = 600.0
"""Tables that no task has used for so long go: their stream may be dropped, and loading them again is quick."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The function that `mapInArrow` runs; pickled once per task, so it holds no tables."""

    stream: bytes
    """The `Stream`, as JSON."""
    settings: bytes
    """The `Settings`, pickled, since JSON would mask its secrets."""
    cautious: bool = False
    """Whether shares of the stream's queries did harm before: only then do tasks ask which."""

    @classmethod
    def of(cls, stream: Stream, settings: Settings, *, cautious: bool = False) -> Evaluation:
        """Return the evaluation of a stream."""
        return cls(msgspec.json.encode(stream), pickle.dumps(settings), cautious)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Evaluate a task's records; yields rows of `spark_jobs.batch.output.OUTPUT`."""
        stream, settings = _unpacked(self.stream, self.settings)
        batch_id = _batch_id()
        _forget_idle(stream.stream_id, time.monotonic())
        digest_task.forget_idle(time.monotonic())
        watch = _watches.get(stream.stream_id) or _watches.setdefault(stream.stream_id, _Watch(stream, settings))
        task: _Task | None = None
        for batch in batches:
            if not batch.num_rows:
                continue
            if task is None:
                tables = _tables_of(stream.stream_id, batch_id, settings)
                task = _Task(stream, settings, tables, watch, self.cautious)
            yield from task.records(batch)
        if task is not None:
            task.end()
        _settling.task_done()


class _Task:
    """What a task does with its records, under one version of the tables."""

    def __init__(
        self, stream: Stream, settings: Settings, tables: tuple[TableVersion, Snapshot], watch: _Watch, cautious: bool
    ) -> None:
        self._stream = stream
        self._settings = settings
        self._version, self._snapshot = tables
        self._watch = watch
        self._matches = _MatchCounts()
        self._letters: Counter[str] = Counter()
        self._not_evaluated = NotEvaluatedLetters(stream, settings)
        caution = watch.harm.caution(_task_number(), _WAIT_SECONDS) if cautious else NO_CAUTION
        value_bytes = settings.evaluator.value_bytes
        self._evaluate = partial(evaluate_expression, value_bytes=value_bytes)
        self._isolation = Isolation(
            self._snapshot,
            self._write,
            self._not_evaluated,
            caution,
            watch.harm.failed,
            watch.sampler.loads,
            value_bytes,
        )

    def records(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the output of some records."""
        for rows in guarded(self._records(batch), self._settings.evaluator.hang_seconds):
            if (code := dead_letter_code(rows)) is not None:
                self._letters[code] += rows.num_rows
            yield rows

    def _records(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        events, dead_letters = decode(batch, self._stream, self._settings)
        if dead_letters is not None:
            yield dead_letters
        if events.count:
            yield from self._isolation.records(events)
            self._watch.last = events

    def _write(self, events: Events, found: Matches) -> Iterator[pa.RecordBatch]:
        stream, settings = self._stream, self._settings
        yield from split(events, found, stream, settings, self._evaluate)
        yield from pending_records(events, found, stream, self._version, settings, self._evaluate)
        self._matches.add(found.number, events.time_ms)

    def end(self) -> None:
        """Tell what was seen, and what could not be evaluated."""
        self._watch.tell(self._version, self._snapshot, self._settings)
        self._matches.publish(self._stream.stream_id, self._settings)
        if self._letters:
            self._watch.harm.tell(self._letters, self._not_evaluated.reasons)


class _Watch:
    """What a worker observes of a stream: it tells the gateway, and chooses indexes by it."""

    def __init__(self, stream: Stream, settings: Settings) -> None:
        self._stream_id = stream.stream_id
        self.harm = Harm(stream.stream_id, QuarantineStore(settings), _now_ms)
        self._choice = IndexChoice(time.monotonic)
        self.sampler = StreamSampler(stream, time.time)
        self.last: Events | None = None
        """The latest events of the task."""

    def tell(self, version: TableVersion, snapshot: Snapshot, settings: Settings) -> None:
        """Use what a task saw; called when nothing of the snapshot is in use any more."""
        events, self.last = self.last, None
        if events is None:
            return
        try:
            self._choice.revise(_tables[self._stream_id], snapshot, events, self.sampler.loads)
        except FAULTS:
            log.exception("index not chosen anew", extra={"stream": self._stream_id})
        told = self.sampler.take(events, version, snapshot)
        if told is None:
            return
        try:
            _store(settings).tell_statistics(self._stream_id, *told)
        except OperationalError as error:
            _stores.clear()
            log.warning("statistics not told", extra={"stream": self._stream_id, "reason": error.message})


_watches: dict[str, _Watch] = {}
"""By stream id; like the tables."""


@lru_cache(maxsize=64)
def _unpacked(stream: bytes, settings: bytes) -> tuple[Stream, Settings]:
    """Read what comes with each task, but is the same each time: 5 ms of a small batch."""
    return msgspec.json.decode(stream, type=Stream), pickle.loads(settings)


def _forget_idle(used: str, now: float) -> None:
    """Let go of what is kept for streams that are not used any more."""
    _used_at[used] = now
    for stream_id in [name for name, at in _used_at.items() if now - at > _IDLE_SECONDS]:
        for kept in (_used_at, _tables, _watches):
            kept.pop(stream_id, None)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _batch_id() -> int:
    context = TaskContext.get()
    batch_id = context.getLocalProperty(_BATCH_ID) if context is not None else None
    if batch_id is None:
        raise InternalError("evaluated outside of a micro-batch")
    return int(batch_id)


def _task_number() -> int:
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def _tables_of(stream_id: str, batch_id: int, settings: Settings) -> tuple[TableVersion, Snapshot]:
    """Return the tables that this micro-batch sees; waits as long as none are confirmed, never goes on without."""
    waits = 0
    while True:
        try:
            store = _store(settings)
            version = store.pin(stream_id, batch_id)
            return version, _tables.setdefault(stream_id, ConstantTables(stream_id)).at(version, store)
        except OperationalError as error:
            if waits % 50 == 0:
                log.warning("no constant tables yet", extra={"stream": stream_id, "reason": error.message})
            _stores.clear()
            waits += 1
            time.sleep(_WAIT_SECONDS)


def _store(settings: Settings) -> TableStore:
    url = settings.redis.url.get_secret_value()
    if url not in _stores:
        _stores[url] = TableStore(settings)
    return _stores[url]


class _MatchCounts:
    """A task's matches per destination number. For DESCRIBE only: a replayed task counts again."""

    def __init__(self) -> None:
        self._met: list[np.ndarray] = []
        self._last_ms = 0

    def add(self, numbers: np.ndarray, time_ms: np.ndarray) -> None:
        numbers = numbers[numbers != NO_NUMBER]
        if numbers.size:
            self._met.append(numbers)
            self._last_ms = max(self._last_ms, int(time_ms.max()))

    def publish(self, stream_id: str, settings: Settings) -> None:
        if not self._met:
            return
        tally = MatchTally.of(np.concatenate(self._met), self._last_ms)
        try:
            _store(settings).count_matches(stream_id, tally)
        except OperationalError as error:
            _stores.clear()
            log.warning("matches not counted", extra={"stream": stream_id, "reason": error.message})
