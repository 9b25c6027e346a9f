"""The tables that a stream's queries join, in a worker process: one replica each, at the offsets that a batch pins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from grouping.model.computation import Computation
from grouping.model.errors import OperationalError
from grouping.model.ids import StreamId
from grouping.model.table import Table
from grouping.settings import Settings
from grouping.store.redis_store import TablePins, TableStore
from spark_jobs.kafka.table_log import TableLog
from spark_jobs.replica.replica import Replica
from spark_jobs.replica.table_view import TableView
from spark_jobs.worker.table_letters import TableLetters

__all__ = ["JoinedTables"]


class JoinedTables:
    """Replicas of tables, shared by all streams of the process. For one thread."""

    def __init__(self, settings: Settings) -> None:
        """Begin without any."""
        self._settings = settings
        self._log: TableLog | None = None
        self._replicas: dict[str, Replica] = {}
        self._letters: dict[str, TableLetters] = {}

    def views(
        self, stream_id: StreamId, batch: int, computations: Iterable[Computation], store: TableStore
    ) -> dict[str, TableView]:
        """Return by id the tables that some computations join, as they were when the batch was first evaluated.

        Raises:
            OperationalError: Redis or Kafka did not answer, or a table's topic has not what the batch was evaluated
                with; ask again.
        """
        ids = sorted({join.table_id for computation in computations for join in computation.joins})
        if not ids:
            return {}
        tables = store.tables(ids)
        pins = store.pin_tables(stream_id, batch, lambda: self._ends(tables))
        return {each: self._replica(tables[each]).at(pins[each]) for each in ids}

    def letters(self, store: TableStore) -> Iterator[pa.RecordBatch]:
        """Yield the dead letters of the tables' records that no worker has written yet."""
        for letters in self._letters.values():
            yield from letters.due(store)

    def forget(self, live: Iterable[str]) -> None:
        """Let go of the tables that are gone."""
        for table_id in self._replicas.keys() - set(live):
            del self._replicas[table_id], self._letters[table_id]

    def _ends(self, tables: dict[str, Table]) -> TablePins:
        """Return how far the topics of tables go now: what was acknowledged before lies before."""
        if self._log is None:
            self._log = TableLog(self._settings)
        ends = self._log.ends({table.topic for table in tables.values()})
        if missing := [table for table in tables.values() if table.topic not in ends]:
            raise OperationalError(
                f'table "{missing[0].name}" cannot be read', detail=f'Its topic is "{missing[0].topic}".'
            )
        return {table_id: dict(ends[table.topic]) for table_id, table in tables.items()}

    def _replica(self, table: Table) -> Replica:
        replica = self._replicas.get(table.table_id)
        if replica is None:
            if self._log is None:
                self._log = TableLog(self._settings)
            letters = self._letters[table.table_id] = TableLetters(table.table_id)
            replica = Replica(table, self._log, self._settings, letters.add)
            self._replicas[table.table_id] = replica
        return replica
