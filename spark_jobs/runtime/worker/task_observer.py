"""Observes a task: statistics, counts of matches and results, and sampled events."""

from __future__ import annotations

import time
from collections import Counter

import numpy as np
import pyarrow as pa

from grouping.store.match_tally import MatchTally
from grouping.store.notes import Output
from spark_jobs.engine.match.matched_pairs import NO_NUMBER
from spark_jobs.engine.rows.events import Events
from spark_jobs.engine.rows.matches import Matches
from spark_jobs.engine.rows.output import dead_letter_code, record_bytes
from spark_jobs.engine.rows.row_source import RowSource
from spark_jobs.engine.stages.task import Observer
from spark_jobs.runtime.worker.event_traces import EventTraces, Trail
from spark_jobs.runtime.worker.watch import StreamWatch

__all__ = ["TaskCounts", "TaskObserver"]


class TaskObserver(Observer):
    """Observes a task for statistics, counts and traces."""

    def __init__(self, watch: StreamWatch, traces: EventTraces | None) -> None:
        self._watch = watch
        self._traces = traces
        self._trail: Trail | None = None
        self._began_ns = 0
        self.counts = TaskCounts()
        self.misfits: Counter[str] = Counter()

    def begin(self) -> None:
        """Begin a batch of records."""
        self._began_ns, self._trail = time.time_ns(), None

    def decoded(self, events: Events, letters: pa.RecordBatch | None) -> None:
        """Take note of values and records that did not fit, and begin to follow sampled events."""
        self._watch.first.take(events, letters)
        self.misfits.update(events.misfits)
        if events.count:
            self._trail = self._traces.trail(events, self._began_ns) if self._traces else None
            self._watch.last = events

    def found(self, rows: RowSource, matches: Matches) -> None:
        """Take note of the matches of sampled events."""
        if self._trail is not None:
            self._trail.found(rows, matches)

    def written(self, results: pa.RecordBatch) -> None:
        """Count results."""
        self.counts.written(results)

    def finished(self, rows: RowSource, matches: Matches) -> None:
        """Count matches."""
        self.counts.add(matches.number, rows)

    def end(self) -> None:
        """End a batch of records; must be called after the task's writer has taken the batch's output."""
        if self._trail is not None:
            self._trail.end()


class TaskCounts:
    """The counts of a task's matches, by destination number, and of its results."""

    def __init__(self) -> None:
        self._numbers: list[np.ndarray] = []
        self._last_ms = 0
        self._results = self._bytes = 0
        self.partition = 0
        """The source partition of the task."""

    def add(self, numbers: np.ndarray, events: RowSource) -> None:
        """Count matches by the numbers of their destinations."""
        numbers = numbers[numbers != NO_NUMBER]
        self.partition = int(events.partitions[0])
        if numbers.size:
            self._numbers.append(numbers)
            self._last_ms = max(self._last_ms, int(events.time_ms.max()))

    def written(self, rows: pa.RecordBatch) -> None:
        """Count results; dead letters are counted elsewhere."""
        if dead_letter_code(rows) is None:
            self._results += rows.num_rows
            self._bytes += record_bytes(rows)

    def output(self) -> Output:
        """Return the numbers of matches and results, and the bytes of the results."""
        return Output(sum(map(len, self._numbers)), self._results, self._bytes)

    def tally(self) -> MatchTally | None:
        """Return the matches by destination; None without a match."""
        return MatchTally.of(np.concatenate(self._numbers), self._last_ms) if self._numbers else None
