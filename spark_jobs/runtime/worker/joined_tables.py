"""The tables that queries join, in a worker process: a replica of each, at the offsets pinned by a micro-batch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from grouping.model.ids import StreamId
from grouping.model.table import Table
from grouping.plan.computation import Computation
from grouping.settings.settings import Settings
from grouping.store.notes import TablePins
from grouping.store.table_store import TableStore
from spark_jobs.engine.operators.lookup_join.replica import Replica, TablePin
from spark_jobs.engine.operators.lookup_join.table_view import TableView
from spark_jobs.runtime.kafka.pin_log import MicroBatch, PinLog
from spark_jobs.runtime.kafka.table_log import TableAway, TableLog
from spark_jobs.runtime.worker.replica_notes import ReplicaNotes
from spark_jobs.runtime.worker.table_letters import TableLetters

__all__ = ["JoinedTables"]


class JoinedTables:
    """Replicas of tables, shared by all streams of the process. Only a single thread may use them."""

    def __init__(
        self,
        settings: Settings,
        open_log: Callable[[Settings], TableLog] = TableLog,
        open_pins: Callable[[Settings, TableLog], PinLog] = PinLog,
        clock: Callable[[], float] = time.monotonic,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        """Begin without replicas.

        Args:
            settings: The evaluator's settings.
            open_log: Opens the reader of the tables' topics.
            open_pins: Opens the log of the micro-batches' pins.
            clock: Returns seconds, for `forget_idle`.
            now_ms: Returns epoch milliseconds, for notes.
        """
        self._settings = settings
        self._open_log = open_log
        self._open_pins = open_pins
        self._clock = clock
        self._now_ms = now_ms
        self._tables: dict[str, _JoinedTable] = {}
        """The joined tables by `Table.source_id`."""

    def views(
        self, stream_id: StreamId, batch: MicroBatch, computations: Iterable[Computation], store: TableStore
    ) -> dict[str, TableView]:
        """Return the tables that computations join, by id, as they were when the batch was first evaluated.

        Raises:
            TableAway: A table's topic cannot be read, or lacks records that the batch's pins include.
            BatchCommitted: Another attempt of the task was carried out and committed while this task was suspended.
            OperationalError: Redis or Kafka did not answer; the caller should try again.
        """
        ids = sorted({table_id for each in computations for table_id in each.table_ids})
        if not ids:
            return {}
        tables = store.tables(ids)
        pins = self._pinned(stream_id, batch, tables, store)
        return {
            table_id: self._table(table).at(pins[table.source_id], stream_id, self._clock(), store)
            for table_id, table in tables.items()
        }

    def letters(self, store: TableStore) -> Iterator[pa.RecordBatch]:
        """Yield the dead letters of the tables' records, except the dead letters that a worker has already written."""
        for table in self._tables.values():
            yield from table.letters.due(store)

    def forget_idle(self, seconds: float) -> None:
        """Forget the tables that no stream has joined for `seconds`, since the table or its queries may be dropped."""
        before = self._clock() - seconds
        self._tables = {table_id: table for table_id, table in self._tables.items() if table.used_since(before)}

    def _pinned(
        self, stream_id: StreamId, batch: MicroBatch, tables: Mapping[str, Table], store: TableStore
    ) -> TablePins:
        """Return the offsets that a batch sees: from Redis if an earlier task has stored them, else from Kafka."""
        pins = store.table_pins(stream_id, batch.number)
        wanted = {table.source_id: table for table in tables.values()}
        if not wanted.keys() <= pins.keys():
            store.pin(stream_id, batch.number)  # raises if the batch is committed; then the log may lack its pins
            pins = self._pins.pins(batch, wanted)
            store.keep_table_pins(stream_id, batch.number, pins)
        return pins

    @cached_property
    def _log(self) -> TableLog:
        """The reader of the tables' topics, made at the first join, since a reader must not be forked or pickled."""
        return self._open_log(self._settings)

    @cached_property
    def _pins(self) -> PinLog:
        return self._open_pins(self._settings, self._log)

    def _table(self, table: Table) -> _JoinedTable:
        joined = self._tables.get(table.source_id)
        if joined is None:
            letters = TableLetters(table.table_id)
            replica = Replica(table, self._log, self._settings, letters.add)
            notes = ReplicaNotes(replica, self._now_ms, self._settings.evaluator.name)
            joined = self._tables[table.source_id] = _JoinedTable(replica, letters, notes)
        return joined


@dataclass(frozen=True, slots=True)
class _JoinedTable:
    """A table's replica, with the pins of its streams."""

    replica: Replica
    letters: TableLetters
    notes: ReplicaNotes
    _pins: dict[StreamId, tuple[TablePin, float]] = field(default_factory=dict)
    """For each stream: its latest pin, and when a task asked for it. The stream's earlier batches are committed."""

    def at(self, pin: TablePin, stream_id: StreamId, now: float, store: TableStore) -> TableView:
        """Return the table at a stream's pin; rows that are visible at no stream's pin are forgotten."""
        self._pins[stream_id] = pin, now
        pins = [each for each, _ in self._pins.values()]
        self.replica.forget_before({place: min(each.get(place, 0) for each in pins) for place in pin})
        self.notes.before(pin, store)
        try:
            view = self.replica.at(pin, lambda: self.notes.during(pin, store))
        except TableAway:
            self.notes.blocked(pin, store)
            raise
        self.notes.after(store)
        return view

    def used_since(self, before: float) -> bool:
        """Forget the streams that have not joined the table since a time, and tell whether any stream is left.

        Args:
            before: The time in seconds of the clock.
        """
        for stream_id in [each for each, (_, at) in self._pins.items() if at < before]:
            del self._pins[stream_id]
        return bool(self._pins)
